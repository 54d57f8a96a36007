//! What goes wrong on the way to a hub, in words that say what to do.

use std::net::TcpListener;

use aviary_hub::security::Role;
use expect_test::expect;

use crate::transcript::{desk, told};
use crate::world::{World, addon, mask};

/// One command of each verb.
const VERBS: [&str; 9] = [
    "status",
    "explain helloworld",
    "plan helloworld",
    "rehearse helloworld",
    "rollout pause helloworld",
    "rollout resume helloworld",
    "rollout undo helloworld",
    "rollout history helloworld",
    "rollout retry helloworld",
];

#[test]
fn without_a_kubeconfig_every_verb_says_how_to_give_one() {
    let desk = desk("verbs-no-kubeconfig").file("home/.keep", "");
    for verb in VERBS {
        let mut command = desk.command(verb);
        command.env_clear().env("HOME", desk.path("home"));
        let told = mask(&told(verb, &command.output().unwrap()));
        let said = told.strip_prefix(&format!("$ {verb}\n")).unwrap();
        expect![[""]].assert_eq(said);
    }
    let told = desk.run("status --kubeconfig nowhere.yaml");
    expect![[""]].assert_eq(&told);
    let desk = desk.file("empty.yaml", "apiVersion: v1\nkind: Config\ncurrent-context: none\n");
    expect![[""]].assert_eq(&desk.run("status --kubeconfig empty.yaml"));
}

#[test]
fn a_hub_that_is_not_there_is_named_with_its_address() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let kubeconfig = aviary_hub::security::kubeconfig(&format!("https://{address}"), "", "token", "gone");
    let desk = desk("verbs-gone").file("gone.kubeconfig", kubeconfig.replace("certificate-authority-data: \n", "insecure-skip-tls-verify: true\n"));
    for verb in VERBS {
        let told = mask(&desk.run(&format!("{verb} --kubeconfig gone.kubeconfig")));
        assert!(told.contains("https://127.0.0.1:PORT cannot be reached: connection refused: is it running"), "{told}");
        assert!(told.ends_with("exit 1\n"), "{told}");
    }
}

#[test]
fn a_context_that_is_not_there_is_answered_with_those_that_are() {
    let world = World::quiet("context");
    world.check("status --context other", &expect![[""]]);
    world.check("status --context aviary", &expect![[""]]);
}

#[test]
fn credentials_that_are_not_accepted_and_rights_that_are_missing_are_named() {
    let world = World::quiet("rights")
        .with_wrong_token("nobody.kubeconfig")
        .with_token("agent.kubeconfig", "agent", Role::Agent { namespace: "fleet-00".into() })
        .with_token("reader.kubeconfig", "reader", Role::ReadOnly);
    world.block_on(world.fleet());
    world.give(addon("one"));
    for verb in VERBS {
        let told = world.run(&format!("{verb} --kubeconfig nobody.kubeconfig"));
        assert!(told.contains("https://127.0.0.1:PORT does not accept your credentials: log in again"), "{told}");
        let told = world.run(&format!("{verb} --kubeconfig agent.kubeconfig"));
        assert!(told.contains("is forbidden: User \"agent\" cannot ") && told.contains(": ask the hub's administrator for that right"), "{told}");
        assert!(told.ends_with("exit 1\n"), "{told}");
    }
    world.check("status --kubeconfig agent.kubeconfig", &expect![[""]]);
    world.check("rollout pause helloworld --kubeconfig reader.kubeconfig", &expect![[""]]);
    // Who may look may look.
    assert!(world.run("status --kubeconfig reader.kubeconfig").ends_with("exit 3\n"));
}

#[test]
fn a_hub_without_the_kinds_is_told_how_to_get_them() {
    let world = World::bare("no-kinds");
    for verb in VERBS {
        let told = world.run(verb);
        assert!(told.contains("does not serve that kind: install the custom resource definitions with: aviary crds | kubectl apply --server-side -f -"), "{told}");
        assert!(told.ends_with("exit 1\n"), "{told}");
    }
    world.check("status", &expect![[""]]);
}

#[test]
fn an_add_on_that_is_not_there_is_answered_with_those_that_are() {
    let world = World::quiet("unknown-add-on");
    world.check("status hello", &expect![[""]]);
    world.give(addon("one"));
    for verb in VERBS.iter().map(|verb| verb.replace("helloworld", "hello")).filter(|verb| verb != "status") {
        let told = world.run(&verb);
        assert!(told.contains("there is no add-on hello on https://127.0.0.1:PORT: it has helloworld"), "{told}");
        assert!(told.ends_with("exit 1\n"), "{told}");
    }
    world.check("status 'a,metadata.name!=b'", &expect![[""]]);
}

#[test]
fn wrong_usage_is_exit_2() {
    let desk = desk("verbs-usage");
    expect![[""]].assert_eq(&desk.run("explain"));
    expect![[""]].assert_eq(&desk.run("status --timeout soon"));
    expect![[""]].assert_eq(&desk.run("plan"));
    expect![[""]].assert_eq(&desk.run("rollout undo helloworld --to-revision 0"));
    expect![[""]].assert_eq(&desk.run("rollout stop helloworld"));
}
