//! Commands that output suggests: each of them reaches the hub that the user selected.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::json;

use crate::transcript::told;
use crate::world::{World, addon};

/// The start of a suggested command that reads or writes a hub.
static COMMAND: LazyLock<Regex> = LazyLock::new(|| {
    let verbs = "status|explain|plan|rehearse|rollout|fleet|clusters|cleanup";
    let own = format!(r"aviary ({verbs}) ");
    let of_kubectl = r"kubectl( --\S+ \S+)*( -n \S+)? (get|annotate|edit|apply|delete|patch|label) ";
    Regex::new(&format!(r"\b({own}|{of_kubectl})")).unwrap()
});

/// The suggested commands of an output that lack these options. The first line is what was typed.
pub(crate) fn without(told: &str, options: &str) -> Vec<String> {
    let printed = told.split_once('\n').map_or("", |(_, printed)| printed);
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let starts: Vec<usize> = COMMAND.find_iter(&words).map(|found| found.start()).collect();
    let ends = starts.iter().skip(1).copied().chain([words.len()]);
    let commands = starts.iter().zip(ends).map(|(&start, end)| words[start..end].trim_end().to_owned());
    commands.filter(|command| !command.contains(options) && !is_general(command)).collect()
}

/// A hint for whoever installs a hub, or about files, is not about the selected hub.
fn is_general(command: &str) -> bool {
    command.starts_with("kubectl apply --server-side -f -")
}

#[test]
fn a_command_that_would_reach_another_hub_is_found() {
    let told = "$ aviary plan one\nNext: kubectl annotate x # and\naviary explain one\n--context a # it";
    assert_eq!(without(told, "--context a"), ["kubectl annotate x # and"]);
}

/// Every command on a hub without a manager, where most hints differ from those of a hub at rest.
#[test]
fn hints_name_the_hub_and_the_namespace_of_its_manager() {
    let world = World::quiet("hints");
    world.block_on(world.fleet());
    world.give(addon("one"));
    world.give(json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnRolloutPolicy",
        "metadata": {"name": "freeze"}, "spec": {"addOns": {"names": ["helloworld"]}, "paused": true},
    }));
    let options = "--manager-namespace elsewhere --kubeconfig hub.kubeconfig";
    let commands = [
        "status",
        "status helloworld",
        "explain helloworld",
        "explain helloworld fleet-00",
        "plan helloworld",
        "rehearse helloworld",
        "rollout history helloworld",
        "rollout pause helloworld",
        "rollout pause helloworld --dry-run",
        "rollout resume helloworld",
        "rollout retry helloworld --dry-run",
        "rollout reprobe helloworld",
        "rollout reprobe helloworld --dry-run",
        "rollout status helloworld",
    ];
    for command in commands {
        let line = format!("{command} {options}");
        let told = told(&line, &world.output(&line));
        assert!(told.contains("Next: "), "{told}");
        let mut lost = without(&told, "--kubeconfig hub.kubeconfig");
        let ours = |command: &String| command.starts_with("aviary");
        lost.extend(without(&told, "--manager-namespace elsewhere").into_iter().filter(ours));
        assert_eq!(lost, [""; 0], "{told}");
    }
}
