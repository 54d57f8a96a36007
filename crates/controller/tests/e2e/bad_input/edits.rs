//! Edits that say nothing new, and edits that come faster than anybody can follow.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use super::row::Admission::Taken;
use super::row::Outcome::Does;
use super::row::{Row, row};
use super::site::{Site, deployment_config, deployment_reference};
use crate::audit::Auditor;
use crate::objects::{named_addon, update_all};

/// The largest number of plans in a second: news are gathered for a moment.
const PLANS_A_SECOND: usize = 20;

pub(super) fn rows() -> Vec<Row> {
    vec![
        quiet("a config written with another order of keys and other white space", |site| async move {
            let config = json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnDeploymentConfig"});
            let name = site.named("mine");
            let now = site.world.get(&deployment_config(&name, json!({}))).await.unwrap();
            let (version, kind) = (&config["apiVersion"], &config["kind"]);
            let (revision, namespace) = (&now["metadata"]["resourceVersion"], "open-cluster-management");
            let body = format!(
                "{{\n\t\"spec\" :  {{ \"nodePlacement\": {{ \"nodeSelector\" : {{\"b\" : \"2\",\n\"a\":\"1\"}} }}, \"customizedVariables\": [ {{\"value\":\"blue\" , \"name\":\"COLOUR\"}} ] }},\r\n \
                 \"metadata\": {{\"labels\": {{\"written\": \"again\"}}, \"namespace\":\"{namespace}\", \"resourceVersion\": {revision}, \"name\":\"{name}\"}}, \"kind\": {kind}, \"apiVersion\": {version}}}  \n"
            );
            let path = format!(
                "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/{namespace}/addondeploymentconfigs/{name}"
            );
            let request = http::Request::put(path)
                .header("content-type", "application/json")
                .body(body.into_bytes())
                .unwrap();
            site.world.client.request_text(request).await.unwrap();
        }),
        quiet("a change of a config's labels", |site| async move {
            let config = deployment_config(&site.named("mine"), json!({}));
            let before = site.world.get(&config).await.unwrap()["metadata"]["resourceVersion"].clone();
            site.merge(
                &config,
                json!({"metadata": {"labels": {"team": "birds"}, "annotations": {"note": "new"}}}),
            )
            .await;
            let after = site.world.get(&config).await.unwrap()["metadata"]["resourceVersion"].clone();
            assert_ne!(before, after, "{}: there is something to see", site.input);
        }),
        quiet("an edit that is reverted within 50 ms", |site| async move {
            site.gate.hold();
            for colour in ["green", "blue"] {
                site.world.put(config(&site, colour)).await;
            }
            site.gate.open();
        }),
        row("100 edits in a second", Taken, Does("the last one is rolled out; some of the others may be"))
            .before(|site| vec![painted(site), config(site, "blue"), addon(site)])
            .acts(|site| async move {
                site.until_run(&site.clusters, "v1.0.0").await;
                let audit = Auditor::start(&site.world.client, &site.name()).await;
                let mut next = tokio::time::interval(Duration::from_millis(10));
                let begun = std::time::Instant::now();
                for number in 0..100 {
                    next.tick().await;
                    site.world.put(config(&site, &format!("colour-{number}"))).await;
                }
                let cluster = site.clusters[0].clone();
                site.until_object(&site.work(&cluster), "the last colour", |work| {
                    colour(work) == "colour-99"
                })
                .await;
                site.until_upgraded().await;
                let seconds = begun.elapsed().as_secs_f64().ceil() as usize;
                let mut writes = 0;
                let fleet = audit
                    .end(|_, commit| {
                        writes += usize::from(commit.cluster == cluster && commit.kind == "ManifestWork");
                    })
                    .await;
                assert!(fleet.works().all(|(_, work)| colour(work) == "colour-99"), "{}", site.input);
                // Each of ours is followed by an answer of the agent's.
                assert!(
                    writes <= 2 * PLANS_A_SECOND * seconds,
                    "{}: {writes} writes in {seconds} s",
                    site.input
                );
            }),
    ]
}

/// An edit after which nothing is written.
fn quiet<F: Future<Output = ()> + Send + 'static>(
    input: &'static str,
    edit: impl Fn(Arc<Site>) -> F + Send + Sync + 'static,
) -> Row {
    let edit = Arc::new(edit);
    row(input, Taken, Does("nothing is written"))
        .before(|site| {
            let watcher = named_addon(&site.named("watcher"), &[json!({
                "name": "nowhere", "namespace": "default", "configs": [deployment_reference(&site.named("others"))], "rolloutStrategy": update_all(),
            })]);
            vec![painted(site), config(site, "blue"), addon(site), others(site, 0), watcher]
        })
        .acts(move |site| {
            let edit = Arc::clone(&edit);
            async move {
                site.until_run(&site.clusters, "v1.0.0").await;
                // The manager has seen the objects that it wrote itself.
                site.until_seen(1).await;
                let before = (site.all_versions().await, Auditor::start(&site.world.client, &site.name()).await);
                edit(Arc::clone(&site)).await;
                for number in 2..=3 {
                    site.until_seen(number).await;
                }
                let mut commits = Vec::new();
                before.1.end(|_, commit| commits.push(format!("{} {}/{}", commit.kind, commit.cluster, commit.name))).await;
                assert!(commits.is_empty(), "{}: {commits:?}", site.input);
                assert_eq!(before.0, site.all_versions().await, "{}", site.input);
            }
        })
}

fn config(site: &Site, colour: &str) -> Value {
    deployment_config(
        &site.named("mine"),
        json!({"customizedVariables": [{"name": "COLOUR", "value": colour}], "nodePlacement": {"nodeSelector": {"a": "1", "b": "2"}}}),
    )
}

/// A config of another add-on, of the same kind: whoever has seen it change has seen all that came
/// before.
fn others(site: &Site, number: usize) -> Value {
    deployment_config(
        &site.named("others"),
        json!({"customizedVariables": [{"name": "NUMBER", "value": number.to_string()}]}),
    )
}

/// The add-on with its colour.
fn addon(site: &Site) -> Value {
    let mut addon = site.addon_with("one", update_all());
    let reference = deployment_reference(&site.named("mine"));
    addon["spec"]["installStrategy"]["placements"][0]["configs"].as_array_mut().unwrap().push(reference);
    addon
}

/// Its template, with its colour in it.
fn painted(site: &Site) -> Value {
    let mut manifest = site.manifest("agent", "v1.0.0");
    manifest["data"]["colour"] = json!("{{COLOUR}}");
    site.template_of("v1.0.0", json!([manifest]))
}

fn colour(work: &Value) -> Value {
    work["spec"]["workload"]["manifests"][0]["data"]["colour"].clone()
}

impl Site {
    /// Changes another add-on's config, and waits until the manager says that it has seen it.
    async fn until_seen(&self, number: usize) {
        let config = others(self, number);
        let hash = aviary_engine::hash::spec_hash(&config);
        self.world.put(config).await;
        let watcher = named_addon(&self.named("watcher"), &[]);
        self.until_object(&watcher, "the other add-on's config", |addon| {
            addon["status"]["installProgression"].to_string().contains(hash.as_str())
        })
        .await;
    }

    /// The resource versions of the add-on and of the revisions that are kept for it.
    async fn all_versions(&self) -> Vec<(String, Option<String>)> {
        let label = format!("open-cluster-management.io/addon-name={}", self.name());
        let revisions: Api<ControllerRevision> = Api::all(self.world.client.clone());
        let kept = revisions.list(&ListParams::default().labels(&label)).await.unwrap();
        let mut all: Vec<_> = kept.iter().map(|one| (one.name_any(), one.resource_version())).collect();
        let addon = self.world.get(&self.addon()).await.unwrap();
        all.push((self.name(), addon["metadata"]["resourceVersion"].as_str().map(str::to_owned)));
        all
    }
}
