//! Text from agents, authors and servers cannot control the terminal or forge a line, in any
//! command.

use std::process::Output;

use aviary_api::visible::is_hidden;
use serde_json::{Value, json};

use crate::world::{World, addon};

/// Clears the screen, sets the title, starts a line that looks like ours, reverses text, and hides
/// some.
const HOSTILE: &str = "boom\u{1b}[2J\u{1b}]0;owned\u{7}\r\nforged  Done\u{9b}31m\u{7f}\u{202e}drow\u{2066}\u{200b}\u{2028}\u{feff}";
const SHOWN: &str = r"boom\u{1b}[2J\u{1b}]0;owned\u{7}\r\nforged  Done\u{9b}31m\u{7f}\u{202e}drow\u{2066}\u{200b}\u{2028}\u{feff}";

/// The canary rejects v3.0.0 with such a message; names and versions are hostile too.
fn world(name: &str) -> World {
    let world = World::installed(name);
    world.mood(|mood| {
        mood.refuse.extend(["v3.0.0".to_owned()]);
        mood.complaint = Some(HOSTILE.to_owned());
    });
    let mut addon = addon("three");
    addon["spec"]["addOnMeta"] = json!({"displayName": HOSTILE, "description": HOSTILE});
    world.give(addon);
    world.until("the canary to fail", |_, plan| {
        plan.report.placements.iter().any(|placement| placement.message.contains("stopped, 2 failed"))
    });
    world
}

/// The output, checked to be harmless.
#[track_caller]
fn harmless(command: &str, output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let all = format!("{stdout}{stderr}");
    assert!(!all.chars().any(|c| c != '\n' && is_hidden(c)), "{command}: {all:?}");
    assert!(!all.lines().any(|line| line.starts_with("forged")), "{command}: {all}");
    all
}

#[test]
fn a_message_of_an_agent_reaches_no_terminal_as_it_is() {
    let world = world("hostile-agent");
    for command in [
        "status",
        "status helloworld",
        "status helloworld -o wide",
        "status helloworld -w --timeout 1s",
        "explain helloworld",
        "explain helloworld canary-00",
        "rollout history helloworld",
        "rollout retry helloworld --dry-run",
        "rollout reprobe helloworld --dry-run",
        "rollout undo helloworld --dry-run",
        "rollout pause helloworld --dry-run",
        "plan helloworld",
        "rehearse helloworld",
    ] {
        let printed = harmless(command, &world.output(command));
        let quotes =
            ["status helloworld", "status helloworld -o wide", "explain helloworld", "plan helloworld"];
        if quotes.contains(&command) || command.ends_with("canary-00") {
            // Text may be broken into lines, and lines of a tree begin with its branches.
            let words =
                |text: &str| text.replace(['│', '├', '└', '─'], " ").split_whitespace().collect::<String>();
            assert!(words(&printed).contains(&words(SHOWN)), "{command}: {printed}");
        }
    }
    let status = world.json("status helloworld -o json", 4);
    let unsettled = status["addOns"][0]["unsettled"].as_array().unwrap();
    let kept = |one: &Value| one["message"].as_str().is_some_and(|message| message.contains(HOSTILE));
    assert!(unsettled.iter().any(kept), "{status:#}");
    harmless("status -o json", &world.output("status helloworld -o json"));
}

#[test]
fn what_files_and_arguments_hold_reaches_no_terminal_as_it_is() {
    let world = World::quiet("hostile-files");
    let name = json!(HOSTILE);
    let mut hostile = addon("three");
    hostile["metadata"]["name"] = name.clone();
    hostile["spec"]["installStrategy"]["type"] = name.clone();
    let mut unresolved = addon("three");
    unresolved["spec"]["installStrategy"]["placements"][0]["configs"][0]["name"] = name.clone();
    unresolved["spec"]["installStrategy"]["placements"][1]["rolloutStrategy"]["type"] = name.clone();
    let template = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate", "metadata": {"name": "one"},
        "spec": {"addonName": "helloworld", "version": HOSTILE, "agentSpec": {"workload": {"manifests": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": format!("{{{{{HOSTILE}}}}}")}}]}}},
    });
    let unknown =
        json!({"apiVersion": HOSTILE, "kind": HOSTILE, "metadata": {"name": HOSTILE, "namespace": HOSTILE}});
    let objects = [&hostile, &unresolved, &template, &unknown].map(Value::to_string).join("\n---\n");
    let world = world
        .file("objects.yaml", &objects)
        .file("unreadable.yaml", &format!("a: [{HOSTILE}"))
        .file("addon.yaml", &[&unresolved, &template].map(Value::to_string).join("\n---\n"));
    for command in [
        "lint -f objects.yaml".to_owned(),
        "lint -f unreadable.yaml".to_owned(),
        "hash -f objects.yaml".to_owned(),
        "plan -f objects.yaml".to_owned(),
        "plan -f addon.yaml".to_owned(),
        "rehearse -f addon.yaml --clusters 3".to_owned(),
        format!("explain helloworld '{HOSTILE}'"),
        format!("status '{HOSTILE}'"),
        format!("status --context '{HOSTILE}'"),
        format!("lint -f '{HOSTILE}'"),
    ] {
        let on_hub = command.starts_with("status") || command.starts_with("explain");
        let output = if on_hub { world.output(&command) } else { world.desk.output(&command) };
        harmless(&command, &output);
    }
}
