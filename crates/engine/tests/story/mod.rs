//! One harness for all scenarios: a small world as text in, its story as text out.
//!
//! Every line of a script either sets the world up, lets something happen in it, or tells
//! (`show …`) what is there. Every write that a plan makes is checked against the invariants before
//! the next one is made.
//!
//! Set-up and events:
//! ```text
//! config NAME VERSION            an AddOnHubConfig (again: an edit in place)
//! deploy NS/NAME KEY=VALUE…      an AddOnDeploymentConfig
//! no config NAME                 it is deleted
//! template VERSION… [vars X,Y]   AddOnTemplates of the add-on; it is rendered by us from then on
//! clusters NAME…                 clusters (a1..a9 is a range)
//! place PLACEMENT: NAME…         the placement exists and selects exactly these
//! unplace PLACEMENT              it does not exist any more
//! rollout PLACEMENT WORD…        an entry of the add-on's placements, added or replaced: UpdateAll, RollingUpdate, Canary, All,
//!                                Progressive, PerGroup; a limit (25%, 3); config=NAME deploy=NS/NAME template=NAME version=V
//!                                canary=PLACEMENT maxFailures=N progressDeadline=D minSuccessTime=D mandatory=G,G paused ns=NS
//! defaults WORD…                 the add-on's default configs: config=NAME deploy=NS/NAME template=NAME
//! drop PLACEMENT                 the entry is removed from the list
//! addon YAML                     the add-on's whole spec, as flow YAML
//! user CLUSTER [YAML]            a user makes or edits an instance's spec
//! remove CLUSTER…                a user deletes the instance
//! uninstall                      a user deletes the add-on, and with it all instances
//! offline|online|delete|ack|fail|unavailable|stuck CLUSTER…
//! unready|broken|degraded|unreported CLUSTER…   applied and available; its Deployment is not updated, has failed, misses no
//!                                more than it tolerates, or is not reported on
//! emptied CLUSTER…               the status of its works is emptied, and its agent says nothing until `ack`
//! restored CLUSTER…              its instance is restored without its status
//! bad VERSION MOOD               works of that version answer so on every cluster, in the words above; `good VERSION` ends it
//! refuse create|status|work|delete CLUSTER…   the hub refuses that write for them
//! accept CLUSTER…                it does not any more
//! annotate KEY=VALUE             on the add-on
//! hub ocm                        the hub has OCM's CRDs, and our records
//! policy NAME WORD…              an AddOnRolloutPolicy: paused canary=PLACEMENT placements=P,P maxFailures=N minSuccessTime=D
//!                                progressDeadline=D; without words, it is deleted
//! host CLUSTER HOSTING           the instance asks to be hosted there; without HOSTING, it does not any more
//! works CLUSTER HOSTING          its works are in the namespace of that cluster
//! wait DURATION                  time passes
//! back DURATION                  the clock is put back
//! pass [N]                       N passes of the plan; agents do nothing
//! crash N                        a pass that ends after N writes
//! settle                         passes with instant agents until nothing is left to do
//! show [status|clusters|all|problems|conditions|attempts|health|writes|works|progress|CLUSTER]
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a broken script must fail the test"
)]

mod agents;
pub(crate) mod first_version;
pub(crate) mod rendering;
mod show;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use aviary_engine::configs::{ConfigRef, GroupResource};
use aviary_engine::explain::Decision;
use aviary_engine::health::Health;
use aviary_engine::invariants;
use aviary_engine::name::{ClusterName, PlacementName};
use aviary_engine::normalise;
use aviary_engine::observed::{
    Cluster, ClusterGroup, Instance, InstanceStatus, Lookup, Observed, Refusal, RefusedWrite, Seen,
    Selection, Unreachable,
};
use aviary_engine::plan::{Plan, plan};
use aviary_engine::policy::{self, Policy};
use aviary_engine::served::Served;
use aviary_engine::simulate::world::World;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Runs a script and compares the story that it tells.
#[track_caller]
pub(crate) fn check(script: &str, expected: &expect_test::Expect) {
    let mut story = Story::new();
    story.run(script);
    expected.assert_eq(&story.told);
}

pub(crate) struct Story {
    pub(crate) world: World,
    pub(crate) now: Timestamp,
    pub(crate) told: String,
    addon: Value,
    /// What agents answer from now on.
    moods: BTreeMap<ClusterName, Mood>,
    /// What agents answer about works of a version.
    bad: BTreeMap<String, Mood>,
    policies: BTreeMap<String, Arc<Policy>>,
    last: Option<Plan>,
    events: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Fail,
    Unavailable,
    Silent,
    Unready,
    Broken,
    Degraded,
    Unreported,
}

impl Mood {
    fn parse(text: &str) -> Self {
        match text {
            "fail" => Self::Fail,
            "unavailable" => Self::Unavailable,
            "stuck" => Self::Silent,
            "unready" => Self::Unready,
            "broken" => Self::Broken,
            "degraded" => Self::Degraded,
            "unreported" => Self::Unreported,
            other => panic!("no such mood: {other}"),
        }
    }

    /// What it says of the health of the template's Deployment.
    fn health(self) -> Option<Health> {
        let why =
            |detail: &str| format!("Deployment open-cluster-management-agent-addon/agent: {detail}").into();
        match self {
            Self::Fail | Self::Unavailable | Self::Silent => None,
            Self::Unready => Some(Health::Progressing {
                why: why("1 of 3 replicas updated, 3 available"),
                tolerable: false,
            }),
            Self::Broken => Some(Health::Failed {
                why: why("1 of 3 replicas updated, 3 available; its progress deadline has passed"),
                tolerable: false,
            }),
            Self::Degraded => {
                Some(Health::Progressing { why: why("2 of 3 updated replicas available"), tolerable: true })
            }
            Self::Unreported => {
                Some(Health::Unknown { why: why("the work agent has not reported its health yet") })
            }
        }
    }
}

impl Story {
    pub(crate) fn new() -> Self {
        let mut observed = Observed::default();
        observed.addon.name = "helloworld".into();
        observed.addon.uid = "addon-uid".into();
        let mut story = Self {
            world: World::new(observed),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            told: String::new(),
            addon: json!({}),
            moods: BTreeMap::new(),
            bad: BTreeMap::new(),
            policies: BTreeMap::new(),
            last: None,
            events: Vec::new(),
        };
        story.read_addon(json!({}));
        story
    }

    pub(crate) fn run(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
            self.line(verb, rest.trim());
        }
    }

    fn line(&mut self, verb: &str, rest: &str) {
        match verb {
            "config" => self.hub_config(rest),
            "deploy" => self.deployment_config(rest),
            "no" => self.no_config(rest.strip_prefix("config ").expect("no config NAME")),
            "template" => self.templates(rest),
            "clusters" => names(rest).iter().for_each(|name| self.cluster(name)),
            "place" => self.place(rest),
            "unplace" => {
                self.world.observed.placements.remove(&placement(rest));
            }
            "addon" => self.read_addon(yaml(rest)),
            "rollout" => self.rollout(rest),
            "defaults" => {
                self.addon["spec"]["defaultConfigs"] =
                    rest.split_whitespace().filter_map(config_word).collect();
                self.read_addon_again();
            }
            "drop" => {
                if let Some(entries) = self.addon["spec"]["installStrategy"]["placements"].as_array_mut() {
                    entries.retain(|entry| entry["name"] != rest);
                }
                self.read_addon_again();
            }
            "install" => {
                self.addon["spec"]["installStrategy"]["type"] = json!(rest);
                self.read_addon_again();
            }
            "user" => self.user(rest),
            "offline" => self.reach(rest, Some(Unreachable { since: Some(self.now) })),
            "online" => self.reach(rest, None),
            "delete" => names(rest).iter().for_each(|name| self.deleting(name)),
            "remove" => names(rest).iter().for_each(|name| self.remove(name)),
            "uninstall" => {
                self.world.observed.addon.deleting = true;
                let all: Vec<String> =
                    self.world.observed.instances.keys().map(ToString::to_string).collect();
                all.iter().for_each(|name| self.remove(name));
            }
            "gone" => names(rest).iter().for_each(|name| {
                self.world.observed.clusters.remove(&cluster(name));
            }),
            "homeless" => {
                self.world.observed.without_namespace =
                    Arc::new(names(rest).iter().map(|name| cluster(name)).collect());
            }
            "refuse" => self.refuse(rest),
            "accept" => names(rest).iter().for_each(|name| {
                Arc::make_mut(&mut self.world.observed.refused).remove(&cluster(name));
            }),
            "ack" => names(rest).iter().for_each(|name| self.answer(name, None)),
            "fail" | "unavailable" | "stuck" | "unready" | "broken" | "degraded" | "unreported" => {
                names(rest).iter().for_each(|name| self.answer(name, Some(Mood::parse(verb))));
            }
            "emptied" => names(rest).iter().for_each(|name| self.empty_works(name)),
            "restored" => names(rest).iter().for_each(|name| {
                let mut instance =
                    self.world.observed.instances.get_mut(&cluster(name)).expect("an instance");
                instance.status = InstanceStatus::default();
            }),
            "bad" => {
                let (version, mood) = rest.split_once(' ').expect("bad VERSION MOOD");
                self.bad.insert(version.to_owned(), Mood::parse(mood));
            }
            "good" => {
                self.bad.remove(rest);
            }
            "annotate" => self.annotate(rest),
            "edit" => self.edit_work(rest),
            "host" => self.host(rest),
            "works" => self.move_works(rest),
            "wait" => {
                let by = aviary_engine::duration::parse(rest).unwrap().unwrap_or(Duration::ZERO);
                self.now = self.now.checked_add(by).unwrap();
            }
            "back" => {
                let by = aviary_engine::duration::parse(rest).unwrap().unwrap_or(Duration::ZERO);
                self.now = self.now.checked_sub(by).unwrap();
            }
            "pass" => (0..rest.parse().unwrap_or(1)).for_each(|_| {
                self.pass();
            }),
            "crash" => {
                self.pass_until(rest.parse().expect("crash WRITES"));
            }
            "hub" => {
                let status = |fields: &[&str]| {
                    let fields: serde_json::Map<String, Value> =
                        fields.iter().map(|field| ((*field).to_owned(), json!({}))).collect();
                    json!({ "properties": { "status": { "properties": fields } } })
                };
                let addon = status(&["installProgressions", "defaultconfigReferences"]);
                let instance = status(&["conditions", "configReferences", "supportedConfigs"]);
                self.world.observed.served = Served::of(Some(&addon), Some(&instance));
                self.world.observed.record = Some(Default::default());
            }
            "policy" => self.policy(rest),
            "settle" => self.settle(),
            "show" => self.show(rest),
            "events" => {
                for event in std::mem::take(&mut self.events) {
                    writeln!(self.told, "event  {event}").unwrap();
                }
            }
            "note" => writeln!(self.told, "-- {rest}").unwrap(),
            other => panic!("no such verb: {other}"),
        }
    }

    fn remove(&mut self, name: &str) {
        assert!(self.world.delete(&cluster(name), format!("removed-{name}").into()));
    }

    // --- set-up
    // -----------------------------------------------------------------------------------------------------

    fn refuse(&mut self, rest: &str) {
        let (what, clusters) = rest.split_once(' ').expect("refuse WRITE CLUSTER…");
        let what = match what {
            "create" => RefusedWrite::Create,
            "status" => RefusedWrite::Status,
            "work" => RefusedWrite::Work,
            "delete" => RefusedWrite::Delete,
            other => panic!("no such write: {other}"),
        };
        for name in names(clusters) {
            let refusal = Refusal { what, why: "etcdserver: request is too large".into() };
            Arc::make_mut(&mut self.world.observed.refused).insert(cluster(&name), refusal);
        }
    }

    fn hub_config(&mut self, rest: &str) {
        let (name, version) = rest.split_once(' ').unwrap_or((rest, ""));
        let spec = if version.is_empty() { json!({}) } else { json!({ "desiredVersion": version.trim() }) };
        self.put_config("addonhubconfigs", None, name, &json!({ "spec": spec }));
    }

    fn deployment_config(&mut self, rest: &str) {
        let mut words = rest.split_whitespace();
        let (namespace, name) = words.next().and_then(|name| name.split_once('/')).expect("deploy NS/NAME");
        let variables: Vec<Value> = words
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| json!({ "name": name, "value": value }))
            .collect();
        let object = json!({ "spec": { "customizedVariables": variables } });
        self.put_config("addondeploymentconfigs", Some(namespace), name, &object);
    }

    pub(crate) fn put_config(&mut self, resource: &str, namespace: Option<&str>, name: &str, object: &Value) {
        let reference = config(resource, namespace, name);
        let generation = match self.world.observed.configs.get(&reference) {
            Some(Lookup::Found(live)) => live.generation + 1,
            _ => 1,
        };
        let mut live = normalise::config(object);
        live.generation = generation;
        self.world.observed.configs.insert(reference, Lookup::Found(live));
    }

    fn no_config(&mut self, name: &str) {
        self.world.observed.configs.retain(|config, _| *config.name != *name);
        self.world.observed.templates.retain(|template| *template.name != *name);
    }

    /// `template v1 v2 vars IMAGE`: one template per version, whose Deployment shows its version
    /// and the variables.
    fn templates(&mut self, rest: &str) {
        let (versions, variables) = rest.split_once("vars").unwrap_or((rest, ""));
        for version in versions.split_whitespace() {
            let image: Vec<String> = variables
                .split(',')
                .map(str::trim)
                .filter(|v| !v.is_empty())
                .map(|v| format!("{{{{{v}}}}}"))
                .collect();
            let object = json!({
                "metadata": { "name": format!("helloworld-{version}"), "generation": 1 },
                "spec": {
                    "addonName": "helloworld",
                    "version": version,
                    "agentSpec": { "workload": { "manifests": [{
                        "apiVersion": "apps/v1", "kind": "Deployment",
                        "metadata": { "name": "agent", "namespace": "{{INSTALL_NAMESPACE}}" },
                        "spec": { "version": "{{VERSION}}", "args": image },
                    }] } },
                },
            });
            self.put_template(&object);
        }
    }

    pub(crate) fn put_template(&mut self, object: &Value) {
        let (_, template) = normalise::template(object);
        let reference = config("addontemplates", None, &template.name);
        self.world.observed.configs.insert(reference, Lookup::Found(normalise::config(object)));
        self.world.observed.templates.retain(|known| known.name != template.name);
        self.world.observed.templates.push(template);
    }

    fn cluster(&mut self, name: &str) {
        let name = cluster(name);
        let labels = BTreeMap::from([("name".to_owned(), name.to_string())]);
        let cluster = Cluster {
            name: name.clone(),
            labels,
            deleting: false,
            opted_out: false,
            unreachable: None,
            reachable_since: None,
            addon_annotations: BTreeMap::new(),
        };
        self.world.observed.clusters.get_or_insert_with(name, || cluster);
    }

    /// `place aws: a1..a4` or, with decision groups, `place aws: a1 a2 | a3 a4`; `place aws (9): …`
    /// publishes a count of 9; `place aws (undecided):` is not decided yet.
    fn place(&mut self, rest: &str) {
        let (head, members) = rest.split_once(':').expect("place NAME: CLUSTERS");
        let (name, published) = match head.split_once('(') {
            Some((name, count)) => (name.trim(), count.trim_end_matches(')').parse().ok()),
            None => (head.trim(), None),
        };
        let mut groups = Vec::new();
        for (index, group) in members.split('|').enumerate() {
            let members = names(group);
            members.iter().for_each(|name| self.cluster(name));
            let mut clusters: Vec<ClusterName> = members.iter().map(|name| cluster(name)).collect();
            clusters.sort();
            groups.push(ClusterGroup {
                name: if members.is_empty() { "".into() } else { format!("g{index}").into() },
                clusters,
            });
        }
        let mut selection = Selection { published, groups, ..Selection::default() };
        // A controller says that there are none.
        if selection.is_empty() && !head.contains('(') {
            (selection.published, selection.counted) = (Some(0), true);
        }
        self.world.observed.placements.insert(placement(name), selection);
    }

    fn rollout(&mut self, rest: &str) {
        let mut words = rest.split_whitespace();
        let name = words.next().expect("rollout PLACEMENT");
        let mut entry = json!({ "name": name, "namespace": "default" });
        let mut strategy = json!({});
        let mut limit = None;
        let mut canary = None;
        let mut mandatory = json!([]);
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("Canary", "") => strategy["type"] = json!("RollingUpdateWithCanary"),
                ("PerGroup", "") => strategy["type"] = json!("ProgressivePerGroup"),
                (kind @ ("UpdateAll" | "RollingUpdate" | "All" | "Progressive"), "") => {
                    strategy["type"] = json!(kind);
                }
                ("paused", "") => strategy["paused"] = json!(true),
                ("canary", name) => canary = Some(json!({ "name": name, "namespace": "default" })),
                ("version", version) => entry["addonTemplate"]["desiredVersion"] = json!(version),
                ("installVersion", version) => entry["addonTemplate"]["installVersion"] = json!(version),
                ("ns", namespace) => entry["addonTemplate"]["installNamespace"] = json!(namespace),
                ("maxFailures", count) => strategy["maxFailures"] = number_or_text(count),
                (key @ ("progressDeadline" | "minSuccessTime"), duration) => strategy[key] = json!(duration),
                ("mandatory", groups) => {
                    mandatory = groups.split(',').map(|group| json!({ "groupName": group })).collect();
                }
                ("config" | "deploy" | "template", _) => {
                    let configs = entry["configs"].take();
                    let mut configs = configs.as_array().cloned().unwrap_or_default();
                    configs.extend(config_word(word));
                    entry["configs"] = json!(configs);
                }
                (number, "") => limit = Some(number_or_text(number)),
                other => panic!("no such word: {other:?}"),
            }
        }
        match strategy["type"].as_str() {
            Some("RollingUpdate") => strategy["rollingUpdate"]["maxConcurrentlyUpdating"] = json!(limit),
            Some("RollingUpdateWithCanary") => {
                strategy["rollingUpdateWithCanary"] =
                    json!({ "maxConcurrentlyUpdating": limit, "placement": canary });
            }
            Some("Progressive") => {
                strategy["progressive"] =
                    json!({ "maxConcurrency": limit, "mandatoryDecisionGroups": mandatory });
            }
            Some("ProgressivePerGroup") => {
                strategy["progressivePerGroup"] = json!({ "mandatoryDecisionGroups": mandatory });
            }
            _ => {}
        }
        entry["rolloutStrategy"] = strategy;
        let install = &mut self.addon["spec"]["installStrategy"];
        install["type"] = json!("Placements");
        let mut entries = install["placements"].as_array().cloned().unwrap_or_default();
        match entries.iter_mut().find(|known| known["name"] == name) {
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
        install["placements"] = json!(entries);
        self.read_addon_again();
    }

    fn read_addon(&mut self, spec: Value) {
        self.addon["spec"] = spec;
        self.read_addon_again();
    }

    fn read_addon_again(&mut self) {
        let mut object = self.addon.clone();
        object["apiVersion"] = json!("addon.open-cluster-management.io/v1alpha1");
        object["kind"] = json!("ClusterManagementAddOn");
        object["metadata"]["name"] = json!("helloworld");
        object["metadata"]["uid"] = json!("addon-uid");
        let object = serde_json::from_value(object).expect("an add-on");
        let (mut addon, mut problems) = normalise::addon(&object);
        problems.extend(policy::apply(&mut addon, self.policies.values()));
        let status = std::mem::take(&mut self.world.observed.addon.status);
        let generation = self.world.observed.addon.generation + 1;
        self.world.observed.addon = addon;
        self.world.observed.addon.status = status;
        self.world.observed.addon.generation = generation;
        self.world.observed.problems = problems;
    }

    fn policy(&mut self, rest: &str) {
        let mut words = rest.split_whitespace();
        let name = words.next().expect("policy NAME WORD…");
        let reference = |name: &str| json!({ "namespace": "default", "name": name });
        let mut spec = json!({});
        for word in words {
            match word.split_once('=') {
                None => spec[word] = json!(true),
                Some(("canary", canary)) => spec["canary"] = json!({ "placement": reference(canary) }),
                Some(("placements", names)) => spec["placements"] = names.split(',').map(reference).collect(),
                Some((field, value)) => spec[field] = json!(value),
            }
        }
        if spec == json!({}) {
            self.policies.remove(name);
        } else {
            let object =
                serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap();
            self.policies.insert(name.to_owned(), Arc::new(normalise::policy(&object)));
        }
        self.read_addon_again();
    }

    fn annotate(&mut self, rest: &str) {
        let (key, value) = rest.split_once('=').expect("annotate KEY=VALUE");
        self.addon["metadata"]["annotations"][format!("addon.open-cluster-management.io/{key}")] =
            json!(value);
        self.read_addon_again();
    }

    fn user(&mut self, rest: &str) {
        let (name, spec) = rest.split_once(' ').unwrap_or((rest, "{}"));
        let object = json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
            "metadata": { "name": "helloworld", "namespace": name, "uid": format!("user-{name}"), "generation": 1 },
            "spec": yaml(spec),
        });
        let (mut instance, _) =
            normalise::instance(&serde_json::from_value(object).expect("an instance")).unwrap();
        let key = instance.cluster.clone();
        if let Some(known) = self.world.observed.instances.get(&key) {
            let Instance { overrides, version, .. } = instance;
            instance = Instance { overrides, version, generation: known.generation + 1, ..(**known).clone() };
        }
        self.world.observed.instances.insert(key, Arc::new(instance));
    }

    fn reach(&mut self, rest: &str, unreachable: Option<Unreachable>) {
        for name in names(rest) {
            if let Some(mut cluster) = self.world.observed.clusters.get_mut(&cluster(&name)) {
                cluster.unreachable = unreachable;
                cluster.reachable_since = unreachable.is_none().then_some(self.now);
            }
        }
    }

    fn deleting(&mut self, name: &str) {
        if let Some(mut cluster) = self.world.observed.clusters.get_mut(&cluster(name)) {
            cluster.deleting = true;
        }
    }

    fn edit_work(&mut self, name: &str) {
        if let Some(mut works) = self.world.observed.works.get_mut(&cluster(name)) {
            for work in works.iter_mut() {
                work.digest = Some("edited".into());
                work.generation += 1;
                work.applied = Seen::NotYet;
                work.available = Seen::NotYet;
            }
        }
    }

    fn host(&mut self, rest: &str) {
        let (name, hosting) = rest.split_once(' ').unwrap_or((rest, ""));
        let mut instance = self.world.observed.instances.get_mut(&cluster(name)).expect("an instance");
        instance.hosting = Some(hosting).filter(|hosting| !hosting.is_empty()).map(Into::into);
    }

    fn move_works(&mut self, rest: &str) {
        let (name, hosting) = rest.split_once(' ').expect("works CLUSTER HOSTING");
        for work in self.world.observed.works.get_mut(&cluster(name)).expect("works").iter_mut() {
            work.hosted_on = Some(hosting.into());
        }
    }

    // --- passes
    // -----------------------------------------------------------------------------------------------------

    /// One pass. Says whether anything was written.
    pub(crate) fn pass(&mut self) -> bool {
        self.pass_until(usize::MAX)
    }

    /// A pass that ends after so many writes, as in a crash.
    fn pass_until(&mut self, most: usize) -> bool {
        let decided = plan(&self.world.observed, self.now);
        let at_rest = decided.is_at_rest();
        self.events.extend(
            decided
                .events
                .iter()
                .map(|event| format!("{} {}: {}", event.placement, event.reason, event.message)),
        );
        let again = plan(&self.world.observed, self.now);
        self.last = Some(again);
        for write in decided.writes().take(most) {
            let before = self.world.observed.clone();
            assert!(self.world.commit(&write), "the world refuses {write:?}");
            let violations = invariants::check(&before, &write, &self.world.observed);
            assert!(
                violations.is_empty(),
                "{} by {write:?}",
                violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            );
        }
        !at_rest
    }

    pub(crate) fn settle(&mut self) {
        for _ in 0..1000 {
            let wrote = self.pass();
            let reported = self.agents_work();
            if !wrote && !reported {
                return;
            }
        }
        panic!("the world does not settle");
    }

    // --- telling
    // ----------------------------------------------------------------------------------------------------
}

fn config(resource: &str, namespace: Option<&str>, name: &str) -> ConfigRef {
    ConfigRef {
        kind: GroupResource::new("addon.open-cluster-management.io", resource),
        namespace: namespace.map(Into::into),
        name: name.into(),
    }
}

/// `config=NAME`, `deploy=NS/NAME`, `template=NAME`, or `any=RESOURCE:NAME`, as a reference.
fn config_word(word: &str) -> Option<Value> {
    let (kind, name) = word.split_once('=')?;
    let group = "addon.open-cluster-management.io";
    Some(match kind {
        "config" => json!({ "group": group, "resource": "addonhubconfigs", "name": name }),
        "template" => json!({ "group": group, "resource": "addontemplates", "name": name }),
        "deploy" => {
            let (namespace, name) = name.split_once('/')?;
            json!({ "group": group, "resource": "addondeploymentconfigs", "namespace": namespace, "name": name })
        }
        _ => return None,
    })
}

fn number_or_text(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number))
}

pub(crate) fn cluster(name: &str) -> ClusterName {
    ClusterName::parse(name).expect("a cluster name")
}

pub(crate) fn placement(name: &str) -> PlacementName {
    PlacementName::new("default", name.trim())
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// `a1 a3..a5` names a1, a3, a4, a5; numbers keep their width.
fn names(text: &str) -> Vec<String> {
    let mut all = BTreeSet::new();
    for word in text.split_whitespace() {
        match word.split_once("..") {
            None => {
                all.insert(word.to_owned());
            }
            Some((first, last)) => {
                let digits = first.trim_start_matches(|c: char| !c.is_ascii_digit());
                let prefix = first.strip_suffix(digits).unwrap();
                let until: usize = last.strip_prefix(prefix).unwrap().parse().unwrap();
                let width = digits.len();
                all.extend(
                    (digits.parse::<usize>().unwrap()..=until).map(|n| format!("{prefix}{n:0width$}")),
                );
            }
        }
    }
    all.into_iter().collect()
}
