//! What is sent has the fields that `page/messages.d.ts` declares, and no others.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::world::{World, addon};

const TYPES: &str = include_str!("../../page/messages.d.ts");

/// The fields of each interface, those that it extends included.
fn interfaces() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut name = "";
    for line in TYPES.lines() {
        if let Some(head) = line.strip_prefix("export interface ") {
            let (declared, extended) =
                head.trim_end_matches(" {").split_once(" extends ").unwrap_or((head, ""));
            name = declared.trim_end_matches(" {");
            let inherited = found.get(extended).cloned().unwrap_or_default();
            found.insert(name, inherited);
        } else if let Some((field, _)) = line.trim().split_once(": ")
            && line.starts_with("  ")
            && !line.trim().starts_with('/')
        {
            found.get_mut(name).unwrap().push(field.trim_end_matches('?'));
        }
    }
    found
}

#[track_caller]
fn check(interface: &str, sent: &Value) {
    let mut declared = interfaces()[interface].clone();
    declared.sort_unstable();
    let mut fields: Vec<&str> = sent
        .as_object()
        .unwrap_or_else(|| panic!("{interface}: {sent}"))
        .keys()
        .map(String::as_str)
        .collect();
    fields.sort_unstable();
    assert_eq!(fields, declared, "{interface}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_have_the_fields_that_the_page_declares() {
    let world = World::installed(4, 2).await;
    world.put(addon("v3.0.0")).await;
    let whole = |state: &Value| state["failed"] == 1 && !state["events"].as_array().unwrap().is_empty();
    let state = world.until("the canary to fail", whole).await;
    check("AddOnMessage", &state);
    check("ClusterColumns", &state["clusters"]);
    check("Placement", &state["placements"][0]);
    check("Gate", &state["placements"][0]["gate"]);
    check("Reason", &state["reasons"][0]);
    check("Revision", &state["revisions"][0]);
    check("Event", &state["events"][0]);
    let first = world.stream("/api/stream").await.next().await;
    check("ListMessage", &first.data);
    check("Summary", &first.data["addons"][0]);
    let failed = state["reasons"][0]["examples"][0].as_str().unwrap();
    let (_, detail) = world.get(&format!("/api/addons/helloworld/clusters/{failed}")).await;
    check("ClusterDetail", &detail);
    check("Condition", &detail["conditions"][0]);
    check("Work", &detail["works"][0]);
    check("Manifest", &detail["works"][0]["manifests"][0]);
    check("Info", &world.get("/api/info").await.1);
}
