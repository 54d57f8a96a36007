//! Bounds on what others give: more than that is reported, and nothing is lost.

use std::collections::BTreeMap;

use aviary_engine::configs::{ConfigRef, GroupResource};
use aviary_engine::observed::Offers;
use aviary_engine::plan::{Plan, Write, plan};
use aviary_engine::problem::Problem;
use aviary_engine::reason::Reason;
use serde_json::json;

use crate::story::Story;

fn next(story: &Story) -> Plan {
    plan(&story.world.observed, story.now)
}

fn reasons(plan: &Plan) -> Vec<Reason> {
    plan.report.problems.iter().map(Problem::code).collect()
}

fn template(version: usize, agent: &serde_json::Value) -> serde_json::Value {
    let name = format!("tpl-{version}");
    json!({
        "metadata": { "name": name },
        "spec": { "addonName": "helloworld", "version": format!("v1.0.{version}"), "agentSpec": agent },
    })
}

fn agent() -> serde_json::Value {
    let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings" } });
    json!({ "workload": { "manifests": [manifest] } })
}

#[test]
fn a_status_lists_the_newest_256_versions_and_all_can_be_used() {
    let mut story = Story::new();
    for version in 0..256 {
        story.put_template(&template(version, &agent()));
    }
    story.run("config old v1.0.0\n place prod: a1\n rollout prod config=old\n settle");
    assert_eq!(reasons(&next(&story)), []);
    story.put_template(&template(256, &agent()));
    story.settle();
    assert_eq!(reasons(&next(&story)), [Reason::VersionsTooMany]);
    let status = &story.world.observed.addon.status;
    let (first, last) = (status.supported_versions.first(), status.supported_versions.last());
    assert_eq!((first.map(|one| &**one), last.map(|one| &**one)), (Some("v1.0.256"), Some("v1.0.1")));
    assert_eq!(status.supported_versions.len(), 256);
    let instances = &story.world.observed.instances;
    let versions: Vec<_> = instances.iter().map(|(_, one)| one.status.current_version.clone()).collect();
    assert_eq!(versions, [Some("v1.0.0".into())], "a version that is not listed can be used");
}

#[test]
fn an_add_on_whose_name_is_no_label_gets_a_status_and_nothing_else() {
    for (length, is_too_long) in [(63, false), (64, true)] {
        let mut story = Story::new();
        story.run("config A v1\n place prod: a1\n rollout prod config=A");
        story.world.observed.addon.name = "a".repeat(length).into();
        let plan = next(&story);
        assert_eq!(reasons(&plan).contains(&Reason::AddOnNameTooLong), is_too_long, "{length}");
        let creates = plan.writes().any(|write| matches!(write, Write::Create(_)));
        assert_eq!(creates, !is_too_long, "{length}");
        if is_too_long {
            assert!(next(&story).writes().all(|write| matches!(write, Write::AddOn(_))), "{length}");
        }
    }
}

#[test]
fn options_of_more_than_64_kib_beside_the_manifests_are_refused() {
    for (kib, is_too_large) in [(63, false), (64, true)] {
        let mut story = Story::new();
        let mut agent = agent();
        agent["manifestConfigs"] = json!([{
            "resourceIdentifier": {"resource": "configmaps", "name": "other"},
            "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [
                {"name": "long", "path": format!(".{}", "x".repeat(kib * 1024))},
            ]}],
        }]);
        story.put_template(&template(0, &agent));
        story.run("place prod: a1\n rollout prod\n settle");
        assert_eq!(story.world.observed.works.is_empty(), is_too_large, "{kib}");
        let report = next(&story).report;
        let told: Vec<String> = report.clusters.iter().map(|one| one.decision.to_string()).collect();
        let is_named =
            told.iter().any(|one| one.contains("agentSpec has more than 64 KiB beside its manifests"));
        assert_eq!(is_named, is_too_large, "{kib}: {told:?}");
    }
}

#[test]
fn the_versions_of_an_add_on_that_no_longer_references_a_config_are_taken_off_its_list() {
    let mut story = Story::new();
    story.run("template v1\n config A v1\n place prod: a1\n rollout prod config=A\n settle");
    let config = ConfigRef { kind: GroupResource::hub_configs().clone(), namespace: None, name: "A".into() };
    let mut offers = Offers {
        listed: vec!["v1".into(), "theirs".into()],
        others: BTreeMap::from([("other".into(), vec!["theirs".into()])]),
    };
    let offered = |story: &Story| -> Vec<Vec<aviary_engine::name::Text>> {
        let offer = |write: Write| match write {
            Write::Offer(offer) => Some(offer.versions),
            _ => None,
        };
        next(story).writes().filter_map(offer).collect()
    };
    story.world.observed.offers.insert(config.clone(), offers.clone());
    assert_eq!(offered(&story), Vec::<Vec<_>>::new(), "the list is right");
    offers.others.clear();
    story.world.observed.offers.insert(config, offers);
    assert_eq!(offered(&story), [["v1".into()]]);
}
