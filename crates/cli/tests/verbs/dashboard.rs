//! `aviary dashboard`: its errors, and its actions on a real rollout.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use aviary_api::ClusterManagementAddOn;
use aviary_engine::tally::ClusterState;
use aviary_testing::Process;
use expect_test::expect;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::transcript::desk;
use crate::world::{World, addon, mask};

/// The running command.
struct Page {
    process: Process,
    address: String,
    token: String,
}

impl Page {
    fn open(world: &World, options: &str) -> Self {
        let line = format!("dashboard --listen 127.0.0.1:0 {options} --kubeconfig hub.kubeconfig");
        let process = Process::start_until(world.desk.command(&line), "Ctrl-C");
        let url = process.word("dashboard");
        let (address, token) = url.strip_prefix("http://").unwrap().split_once("/#token=").unwrap();
        let (address, token) = (address.to_owned(), token.to_owned());
        Self { process, address, token }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        let Self { address, token, .. } = self;
        let length = body.len();
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let status = answer.split_whitespace().nth(1).unwrap().parse().unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        (status, serde_json::from_str(body).unwrap_or_else(|_| json!(body)))
    }

    fn act(&self, action: &Value) -> (u16, Value) {
        self.ask("POST", "/api/addons/helloworld/actions", &action.to_string())
    }

    fn stop(self) {
        self.process.stop("TERM");
    }
}

#[test]
fn help_says_what_it_is_whose_rights_it_uses_and_how_to_begin() {
    let desk = desk("verbs-dashboard-help");
    let help = String::from_utf8(desk.output("dashboard --help").stdout).unwrap();
    for part in [
        "Usage: aviary dashboard [OPTIONS]",
        "has no rights of its own.",
        "[default: 127.0.0.1:16480]",
        "--enable-writes",
        "--tls-cert <FILE>",
        "--tls-key <FILE>",
        "--allowed-host <HOST>",
        "--token-file <FILE>",
        "--kubeconfig",
        "Examples:\n",
        "$ aviary dashboard --listen 0.0.0.0:8443 --tls-cert tls.crt --tls-key tls.key",
        "Exit codes: 0 stopped",
    ] {
        assert!(help.contains(part), "no {part:?} in {help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 100), "too wide: {help}");
    let short = String::from_utf8(desk.output("dashboard -h").stdout).unwrap();
    assert!(
        short.contains("Serve the web page that shows rollouts live") && short.contains("Examples:\n"),
        "{short}"
    );
}

#[test]
fn where_it_cannot_be_served_it_says_what_to_do() {
    let desk = desk("verbs-dashboard-usage").file("home/.keep", "");
    desk.check(
        "dashboard --listen nowhere",
        &expect![[r#"
        $ aviary dashboard --listen nowhere
        ! error: invalid value 'nowhere' for '--listen <ADDR>': invalid socket address syntax
        !
        ! For more information, try '--help'.
        exit 2
    "#]],
    );
    desk.check(
        "dashboard --tls-cert tls.crt",
        &expect![[r#"
        $ aviary dashboard --tls-cert tls.crt
        ! error: the following required arguments were not provided:
        !   --tls-key <FILE>
        !
        ! Usage: aviary dashboard --tls-cert <FILE> --tls-key <FILE>
        !
        ! For more information, try '--help'.
        exit 2
    "#]],
    );
    desk.check("dashboard --listen 0.0.0.0:0", &expect![[r#"
        $ aviary dashboard --listen 0.0.0.0:0
        ! aviary: other machines can reach 0.0.0.0:0, which requires TLS: give --tls-cert and --tls-key, or listen on 127.0.0.1
        exit 1
    "#]]);
    desk.check(
        "dashboard --listen 127.0.0.1:0 --tls-cert tls.crt --tls-key tls.key",
        &expect![[r#"
        $ aviary dashboard --listen 127.0.0.1:0 --tls-cert tls.crt --tls-key tls.key
        ! aviary: --tls-cert is only for an address that other machines can reach; loopback is unencrypted
        exit 1
    "#]],
    );
    desk.check(
        "dashboard --listen 127.0.0.1:0 --allowed-host a/b",
        &expect![[r#"
        $ aviary dashboard --listen 127.0.0.1:0 --allowed-host a/b
        ! aviary: --allowed-host is not a valid host name: "a/b" is neither an IP address nor a DNS name
        exit 1
    "#]],
    );
    desk.check("dashboard --listen 127.0.0.1:0 --kubeconfig nowhere.yaml", &expect![[r#"
        $ aviary dashboard --listen 127.0.0.1:0 --kubeconfig nowhere.yaml
        ! aviary: failed to read the kubeconfig nowhere.yaml: no such file or directory: give the hub's kubeconfig with --kubeconfig
        exit 1
    "#]]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let told = mask(&desk.run(&format!("dashboard --listen {}", taken.local_addr().unwrap())));
    expect![[r#"
        $ aviary dashboard --listen 127.0.0.1:PORT
        ! aviary: failed to listen on 127.0.0.1:PORT: the port is in use: choose another with --listen; port 0 picks a free port
        exit 1
    "#]]
    .assert_eq(&told);
    let desk = desk.file("wrong.token", "guess me");
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let kubeconfig = aviary_hub::security::kubeconfig(&format!("https://{address}"), "", "token", "gone");
    let desk = desk.file(
        "gone.kubeconfig",
        kubeconfig.replace("certificate-authority-data: \n", "insecure-skip-tls-verify: true\n"),
    );
    let line = "dashboard --listen 127.0.0.1:0 --kubeconfig gone.kubeconfig";
    expect![[r#"
        $ aviary dashboard --listen 127.0.0.1:0 --kubeconfig gone.kubeconfig --token-file wrong.token
        ! aviary: wrong.token does not contain a dashboard token: delete it, and a new one is created
        exit 1
    "#]]
    .assert_eq(&desk.run(&format!("{line} --token-file wrong.token")));
    let told = mask(&desk.run(line));
    assert!(
        told.contains("https://127.0.0.1:PORT cannot be reached: connection refused: is it running"),
        "{told}"
    );
}

#[test]
fn it_looks_with_the_rights_of_the_kubeconfig_and_changes_nothing_unless_told() {
    let world = World::quiet("dashboard-looks").with_wrong_token("wrong.kubeconfig");
    let page = Page::open(&world, "--token-file page.token");
    expect![[r#"
          dashboard  http://127.0.0.1:PORT/#token=TOKEN
          hub        https://127.0.0.1:PORT
        Anyone who has this address can use the rights of your kubeconfig. Read-only.
        Press Ctrl-C to stop.
    "#]]
    .assert_eq(&mask(&page.process.printed().replace(&page.token, "TOKEN")));
    let (status, info) = page.ask("GET", "/api/info", "");
    assert_eq!((status, &info["mode"], &info["writes"]), (200, &json!("kubeconfig"), &json!(false)));
    assert_eq!(page.act(&json!({"action": "pause", "dryRun": true})).0, 403);
    let token = page.token.clone();
    page.stop();
    let page = Page::open(&world, "--token-file page.token");
    assert_eq!(page.token, token, "the same after a restart");
    let line = "dashboard --listen 127.0.0.1:0 --kubeconfig wrong.kubeconfig";
    let told = world.run(line);
    assert!(told.contains("does not accept your credentials") && told.ends_with("exit 1\n"), "{told}");
}

#[test]
fn a_rollout_is_paused_resumed_and_undone_and_each_answer_says_how_many_it_concerns() {
    let world = World::refused("dashboard-acts");
    let page = Page::open(&world, "--enable-writes");
    let generation = || world.get("ClusterManagementAddOn", "helloworld")["metadata"]["generation"].clone();
    let before = generation();

    let (status, answer) =
        page.act(&json!({"action": "pause", "placement": "default/fleet", "dryRun": true}));
    assert_eq!((status, &answer["done"]), (200, &json!(false)), "{answer}");
    let blast = answer["blast"].as_str().unwrap();
    assert!(blast.contains("default/fleet") && blast.contains("12 of 12 clusters"), "{blast}");
    assert_eq!(generation(), before, "a dry run writes nothing");
    let (status, answer) =
        page.act(&json!({"action": "pause", "placement": "default/fleet", "dryRun": false}));
    assert_eq!((status, &answer["done"]), (200, &json!(true)), "{answer}");
    let paused = |index: usize| {
        let addon = world.get("ClusterManagementAddOn", "helloworld");
        addon["spec"]["installStrategy"]["placements"][index]["rolloutStrategy"]["paused"].clone()
    };
    assert_eq!((paused(0), paused(1)), (json!(true), Value::Null));
    let (_, answer) = page.act(&json!({"action": "pause", "placement": "default/fleet", "dryRun": true}));
    assert!(answer["lines"].to_string().contains("default/fleet was paused already"), "{answer}");
    assert_eq!(page.act(&json!({"action": "resume", "dryRun": false})).0, 200);
    assert_eq!(paused(0), json!(false));

    let (status, answer) = page.act(&json!({"action": "undo", "dryRun": true}));
    assert_eq!(status, 200, "{answer}");
    let blast = answer["blast"].as_str().unwrap();
    assert!(blast.contains("2 of 16 clusters have to move"), "{blast}");
    assert!(
        answer["lines"]
            .to_string()
            .contains("default/canary rolls back from v3.0.0 to v1.0.0, its revision 1: 2 of 4"),
        "{answer}"
    );
    let (status, answer) =
        page.act(&json!({"action": "undo", "placement": "default/canary", "toRevision": 9, "dryRun": true}));
    assert_eq!(status, 409, "{answer}");
    assert!(answer["error"].as_str().unwrap().contains("has no revision 9"), "{answer}");
    assert_eq!(page.act(&json!({"action": "undo", "dryRun": false})).0, 200);
    world.until("the way back", |_, plan| {
        plan.report.clusters.iter().all(|cluster| cluster.told.as_deref() == Some("v1.0.0"))
            && plan
                .report
                .placements
                .iter()
                .all(|placement| placement.counts.settled == placement.counts.governed)
    });

    let (status, answer) = page.act(&json!({"action": "acknowledge", "dryRun": true}));
    assert_eq!(status, 409, "nothing is held: {answer}");
    let (status, answer) =
        page.ask("POST", "/api/addons/nothing/actions", r#"{"action": "pause", "dryRun": true}"#);
    assert_eq!(status, 409, "{answer}");
    assert!(answer["error"].as_str().unwrap().contains("there is no add-on nothing"), "{answer}");
    page.stop();
}

/// The agents of both failed clusters have healed, and learn of it only by a new generation.
#[test]
fn failed_clusters_are_retried_one_by_one_and_all_together() {
    let world = World::refused("dashboard-retry");
    world.mood(|mood| mood.refuse.clear());
    let page = Page::open(&world, "--enable-writes");
    let generation = |cluster: &str| {
        let work = world.get("ManifestWork", &format!("{cluster}/addon-helloworld-deploy-0"));
        work["metadata"]["generation"].as_i64().unwrap()
    };
    let generations = || ["canary-00", "canary-01"].map(generation);
    let before = generations();

    let (status, answer) = page.act(&json!({"action": "retry", "dryRun": true}));
    let affected = json!({
        "blast": "2 clusters try the same revision again, within the budget.",
        "lines": ["canary-00", "canary-01"], "done": false,
    });
    assert_eq!((status, &answer), (200, &affected));
    let (status, answer) = page.act(&json!({"action": "retry", "cluster": "canary-02", "dryRun": false}));
    assert_eq!(status, 409, "it has not failed: {answer}");
    assert!(answer["error"].as_str().unwrap().contains("has not failed on cluster canary-02"), "{answer}");
    assert_eq!(generations(), before, "nothing was written");

    let (status, answer) = page.act(&json!({"action": "retry", "cluster": "canary-00", "dryRun": false}));
    let affected = json!({
        "blast": "1 cluster tries the same revision again, within the budget.",
        "lines": ["canary-00"], "done": true,
    });
    assert_eq!((status, &answer), (200, &affected));
    world.until("one cluster to settle", |_, plan| {
        let state = |name: &str| plan.report.clusters.iter().find(|one| one.cluster.as_str() == name);
        state("canary-00").is_some_and(|one| one.decision.state() == ClusterState::Settled)
            && state("canary-01").is_some_and(|one| one.decision.state() == ClusterState::Failed)
    });
    let after = generations();
    assert!(after[0] > before[0] && after[1] == before[1], "{before:?} {after:?}");

    let (status, answer) = page.act(&json!({"action": "retry", "dryRun": false}));
    assert_eq!((status, &answer["lines"]), (200, &json!(["canary-01"])), "{answer}");
    world.until_all("upgrade completed with no errors.");
    let (status, answer) = page.act(&json!({"action": "retry", "dryRun": true}));
    let nothing = "No cluster has failed: there is nothing to retry.";
    assert_eq!((status, &answer["blast"]), (200, &json!(nothing)), "{answer}");
    page.stop();
}

#[test]
fn an_undo_warns_that_argo_cd_restores_what_is_in_its_repository() {
    let world = World::installed("dashboard-undo-gitops");
    let addons: Api<ClusterManagementAddOn> = Api::all(world.client.clone());
    let apply = PatchParams::apply("argocd-controller").force();
    world.block_on(addons.patch("helloworld", &apply, &Patch::Apply(addon("two")))).unwrap();
    world.until_all("upgrade completed with no errors.");
    let page = Page::open(&world, "--enable-writes");
    let (status, answer) = page.act(&json!({"action": "undo", "dryRun": true}));
    assert_eq!(status, 200, "{answer}");
    let warning = answer["lines"].as_array().unwrap().last().unwrap().as_str().unwrap();
    assert!(warning.starts_with("Warning: Argo CD manages this add-on and will restore"), "{answer}");
    page.stop();
}

#[test]
fn a_braked_deletion_goes_only_with_the_number_that_was_seen() {
    let world = World::installed("dashboard-brake");
    world.block_on(world.clusters("fleet", &[]));
    world.until("the brake", |observed, plan| {
        observed.instances.len() == 16
            && plan.report.problems.iter().any(|problem| problem.code().as_str() == "DeletionHeld")
    });
    let page = Page::open(&world, "--enable-writes");
    let (status, answer) = page.act(&json!({"action": "acknowledge", "dryRun": true}));
    assert_eq!((status, &answer["done"]), (200, &json!(false)), "{answer}");
    let blast = answer["blast"].as_str().unwrap();
    assert!(blast.starts_with("helloworld is removed from 12 clusters of the 16 that have it"), "{blast}");
    assert_eq!(answer["lines"].as_array().unwrap().len(), 12);
    assert_eq!(page.act(&json!({"action": "acknowledge", "dryRun": false})).0, 400, "without the number");
    let (status, answer) = page.act(&json!({"action": "acknowledge", "acknowledge": "11", "dryRun": false}));
    assert_eq!(status, 409, "{answer}");
    let annotations = || world.get("ClusterManagementAddOn", "helloworld")["metadata"]["annotations"].clone();
    let allowed =
        |annotations: &Value| annotations["addon.open-cluster-management.io/allow-deletions"].clone();
    assert_eq!(allowed(&annotations()), Value::Null);
    assert_eq!(page.act(&json!({"action": "acknowledge", "acknowledge": "12", "dryRun": false})).0, 200);
    assert_eq!(allowed(&annotations()), json!("12"));
    world.until("the deletions", |observed, _| observed.instances.len() == 4);
    page.stop();
}
