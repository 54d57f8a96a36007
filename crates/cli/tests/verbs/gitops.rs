//! What GitOps tools see of an add-on: `docs/argocd-health.lua` in the interpreter of Argo CD, and
//! the conditions in the kstatus of Flux, on the real objects of a rollout.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use aviary_api::ClusterManagementAddOn;
use aviary_testing::objects::{manifest, template_of};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::{World, addon, names};

/// The repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).unwrap()
}

/// A value as a Lua expression.
fn lua(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => {
            let bytes: String = text.bytes().map(|byte| format!("\\{byte:03}")).collect();
            format!("\"{bytes}\"")
        }
        Value::Array(items) => format!("{{{}}}", items.iter().map(lua).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("[{}]={}", lua(&json!(key)), lua(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
        }
    }
}

/// `tools/gitops`, which has the interpreter of Argo CD and the kstatus of Flux. `None` on a
/// machine that cannot build it.
static TOOL: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let built = Command::new(root().join("hack/install-gitops.sh")).output().unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    match built.status.code() {
        Some(0) => Some(PathBuf::from(String::from_utf8(built.stdout).unwrap().trim_end())),
        Some(3) => {
            let instead = "lua 5.3 and the rules of kstatus in this test are used instead";
            #[allow(clippy::explicit_write, reason = "the test harness hides what a macro prints")]
            writeln!(std::io::stderr(), "{said}{instead}").unwrap();
            None
        }
        code => panic!("hack/install-gitops.sh ended with {code:?}: {said}"),
    }
});

/// What the tool prints about an object.
fn tool(tool: &Path, object: &Value) -> Value {
    let mut command = Command::new(tool);
    command.arg(root().join("docs/argocd-health.lua"));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(object.to_string().as_bytes()).unwrap();
    let run = child.wait_with_output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).unwrap()
}

/// What Argo CD would show.
fn argo(object: &Value) -> (String, String) {
    let Some(program) = &*TOOL else { return in_lua(object) };
    let said = tool(program, object);
    let text = |field: &str| said["argo"][field].as_str().unwrap().to_owned();
    (text("status"), text("message"))
}

/// The health check, run by lua 5.3.
fn in_lua(object: &Value) -> (String, String) {
    let installed = Command::new(root().join("hack/install-lua.sh")).status().unwrap();
    assert!(installed.success(), "hack/install-lua.sh could not install an interpreter");
    let check = fs::read_to_string(root().join("docs/argocd-health.lua")).unwrap();
    let program = format!(
        "obj = {}\nlocal function check()\n{check}\nend\nlocal health = check()\nprint(health.status)\nprint(health.message)",
        lua(object)
    );
    let interpreter = std::env::var("AVIARY_LUA").unwrap_or_else(|_| "lua5.3".to_owned());
    let run = Command::new(interpreter).args(["-e", &program]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let said = String::from_utf8(run.stdout).unwrap();
    let (status, message) = said.trim_end().split_once('\n').unwrap();
    (status.to_owned(), message.to_owned())
}

/// What Flux would see.
fn kstatus(object: &Value) -> &'static str {
    let expected = by_the_rules_of_kstatus(object);
    if let Some(program) = &*TOOL {
        assert_eq!(tool(program, object)["kstatus"], expected, "{object:#}");
    }
    expected
}

/// What kstatus computes from the generic conditions.
fn by_the_rules_of_kstatus(object: &Value) -> &'static str {
    let is = |kind: &str| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == kind && one["status"] == "True")
    };
    let generation = &object["status"]["observedGeneration"];
    match () {
        () if generation.is_i64() && *generation != object["metadata"]["generation"] => "InProgress",
        () if is("Reconciling") => "InProgress",
        () if is("Stalled") => "Failed",
        () => "Current",
    }
}

#[test]
fn argo_cd_and_flux_see_a_rollout_as_it_is() {
    let world = World::installed("gitops");
    let see = || world.get("ClusterManagementAddOn", "helloworld");
    let (status, message) = argo(&see());
    assert_eq!((status.as_str(), kstatus(&see())), ("Healthy", "Current"), "{message}");

    // The spec has changed, and the conditions are about the one before.
    let mut edited = see();
    edited["metadata"]["generation"] = json!(99);
    assert_eq!((argo(&edited).0.as_str(), kstatus(&edited)), ("Progressing", "InProgress"));
    let new = json!({"apiVersion": "v1", "kind": "New", "metadata": {"generation": 1}});
    assert_eq!(argo(&new).0, "Progressing");

    world.mood(|mood| mood.ignore.extend(["v2.0.0".to_owned()]));
    world.give(addon("two"));
    world.until("the canary to start", |_, plan| {
        plan.report.placements.iter().any(|one| one.tally.in_flight > 0)
    });
    let (status, message) = argo(&see());
    assert_eq!((status.as_str(), kstatus(&see())), ("Progressing", "InProgress"), "{message}");
    world.output("rollout pause helloworld");
    world.until("the pause", |observed, _| {
        observed.addon.status.observed_generation == Some(observed.addon.generation)
    });
    let (status, message) = argo(&see());
    assert_eq!(status, "Progressing", "two clusters are still in flight: {message}");
    assert!(message.contains("paused"), "{message}");
    world.output("rollout resume helloworld");

    world.mood(|mood| mood.refuse.extend(["v3.0.0".to_owned()]));
    world.give(addon("three"));
    world.until("the canary to fail", |_, plan| {
        plan.report.placements.iter().any(|placement| placement.message.contains("stopped, 2 failed"))
    });
    let (status, message) = argo(&see());
    assert_eq!((status.as_str(), kstatus(&see())), ("Degraded", "Failed"), "{message}");
    assert!(message.contains("canary-00"), "{message}");
}

/// Whoever pauses it: a policy or a placement.
#[test]
fn argo_cd_suspends_what_a_pause_keeps_from_moving() {
    let world = World::installed("gitops-paused");
    let see = || world.get("ClusterManagementAddOn", "helloworld");
    let policy = |paused: bool| {
        world.give(json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnRolloutPolicy",
            "metadata": {"name": "freeze"},
            "spec": {"addOns": {"names": ["helloworld"]}, "paused": paused},
        }));
        world.until("the policy", |observed, _| {
            observed.addon.strategy.placements().iter().all(|spec| spec.rollout.paused == paused)
        });
    };
    policy(true);
    assert_eq!(argo(&see()).0, "Healthy", "a pause does not take back what is done");
    world.mood(|mood| mood.ignore.extend(["v2.0.0".to_owned()]));
    world.give(addon("two"));
    world.until("the pause", |observed, _| {
        let mut conditions = observed.addon.status.conditions.iter();
        conditions.any(|one| one.kind == "Reconciling" && one.reason.as_str() == "Paused")
    });
    let (status, message) = argo(&see());
    assert_eq!((status.as_str(), kstatus(&see())), ("Suspended", "InProgress"), "{message}");

    policy(false);
    world.until("the canary to start", |_, plan| {
        plan.report.placements.iter().any(|one| one.tally.in_flight > 0)
    });
    world.output("rollout pause helloworld --placement default/fleet");
    world.until("the pause of the fleet", |observed, _| {
        observed.addon.status.observed_generation == Some(observed.addon.generation)
    });
    let (status, message) = argo(&see());
    assert_eq!((status.as_str(), kstatus(&see())), ("Progressing", "InProgress"), "{message}");
}

/// An add-on with OCM's fields only.
fn ocm_addon(version: &str) -> Value {
    let template = json!({
        "group": "addon.open-cluster-management.io", "resource": "addontemplates",
        "name": format!("helloworld-{version}"),
    });
    json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": {"name": "helloworld"},
        "spec": {
            "supportedConfigs": [{"group": "addon.open-cluster-management.io", "resource": "addontemplates"}],
            "installStrategy": {"type": "Placements", "placements": [{
                "name": "fleet", "namespace": "default", "configs": [template],
                "rolloutStrategy": {"type": "Progressive", "progressive": {"maxConcurrency": 2}},
            }]},
        },
    })
}

/// A hub with the kinds of Open Cluster Management, and four clusters that run v1.0.0.
fn ocm_world(name: &str) -> World {
    let world = World::bare(name);
    world.block_on(aviary_testing::prepare_ocm_hub(&world.client, None));
    let world = world.looked_after();
    world.block_on(world.clusters("fleet", &names("fleet", 4)));
    for version in ["v1.0.0", "v2.0.0", "v3.0.0"] {
        // OCM's schema refuses a variable as the namespace of a manifest.
        let mut manifest = manifest(version);
        manifest["metadata"]["namespace"] = json!("open-cluster-management-agent-addon");
        world.give(template_of("helloworld", version, &json!([manifest])));
    }
    world.give(ocm_addon("v1.0.0"));
    world.until("the install", |_, plan| {
        plan.report.placements.iter().any(|placement| placement.tally.settled == 4)
    });
    world
}

#[test]
fn on_an_ocm_hub_argo_cd_reads_the_conditions_of_the_placements() {
    let world = ocm_world("gitops-ocm");
    let see = || world.get("ClusterManagementAddOn", "helloworld");
    let record = || world.get("AddOnRolloutRecord", "helloworld");
    assert_eq!(see()["status"]["conditions"], Value::Null, "{:#}", see());
    let (status, message) = argo(&see());
    assert_eq!((status.as_str(), kstatus(&record())), ("Healthy", "Current"), "{message}");
    let mut edited = see();
    edited["metadata"]["generation"] = json!(99);
    assert_eq!(argo(&edited).0, "Progressing");
    edited["status"]["installProgressions"] = json!([]);
    assert_eq!(argo(&edited).0, "Progressing");

    world.mood(|mood| mood.ignore.extend(["v2.0.0".to_owned()]));
    world.give(ocm_addon("v2.0.0"));
    world.until("the first clusters", |_, plan| {
        plan.report.placements.iter().any(|placement| placement.tally.in_flight == 2)
    });
    let (status, message) = argo(&see());
    assert_eq!((status.as_str(), kstatus(&record())), ("Progressing", "InProgress"), "{message}");
    assert!(message.starts_with("default/fleet: selected clusters 4."), "{message}");
    // Without conditions, Flux takes the add-on for ready at once.
    assert_eq!(kstatus(&see()), "Current");

    world.mood(|mood| mood.refuse.extend(["v3.0.0".to_owned()]));
    world.give(ocm_addon("v3.0.0"));
    world.until("the first clusters to fail", |_, plan| {
        plan.report.placements.iter().any(|placement| placement.tally.failed == 2)
    });
    let (status, message) = argo(&see());
    assert_eq!((status.as_str(), kstatus(&record())), ("Degraded", "Failed"), "{message}");
    assert!(message.starts_with("default/fleet: ") && message.contains("2 failed"), "{message}");
}

/// `kubectl wait` ignores a condition only if its generation is lower than that of its object.
#[test]
fn the_conditions_of_a_record_are_about_the_generation_of_the_add_on() {
    let world = ocm_world("gitops-record");
    let seen = || {
        let record = world.get("AddOnRolloutRecord", "helloworld");
        let conditions = record["status"]["conditions"].as_array().unwrap();
        let succeeded = conditions.iter().find(|one| one["type"] == "Succeeded").unwrap().clone();
        (record, succeeded)
    };
    let generation = || world.get("ClusterManagementAddOn", "helloworld")["metadata"]["generation"].clone();
    world.mood(|mood| mood.ignore.extend(["v2.0.0".to_owned()]));
    world.give(ocm_addon("v2.0.0"));
    world.until("the first clusters", |_, plan| {
        plan.report.placements.iter().any(|placement| placement.tally.in_flight == 2)
    });
    world.give(ocm_addon("v1.0.0"));
    world.until("the way back", |_, plan| {
        plan.report.placements.iter().any(|placement| placement.tally.settled == 4)
    });
    let (record, succeeded) = seen();
    assert_eq!(succeeded["status"], "True");
    assert_eq!(
        (&record["status"]["addOnGeneration"], &succeeded["observedGeneration"]),
        (&generation(), &generation())
    );
    assert_eq!(record["metadata"]["generation"], 1);

    world.dismiss_manager();
    world.give(ocm_addon("v3.0.0"));
    let (record, succeeded) = seen();
    assert_eq!(succeeded["status"], "True");
    assert!(succeeded["observedGeneration"].as_i64() >= record["metadata"]["generation"].as_i64());
    assert_ne!(record["status"]["addOnGeneration"], generation(), "this tells the two apart");
}

#[test]
fn undo_warns_that_argo_cd_restores_what_is_in_its_repository() {
    let world = World::installed("gitops-undo");
    let addons: Api<ClusterManagementAddOn> = Api::all(world.client.clone());
    let apply = PatchParams::apply("argocd-controller").force();
    world.block_on(addons.patch("helloworld", &apply, &Patch::Apply(addon("two")))).unwrap();
    world.until_all("upgrade completed with no errors.");
    let told = world.run("rollout undo helloworld --dry-run");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let warning = "Warning: Argo CD manages this add-on and will restore what is in its repository";
    assert!(told.contains(warning), "{told}");
}

#[test]
fn history_names_the_field_manager_of_the_last_change() {
    let world = World::quiet("gitops-history").looked_after();
    world.block_on(world.fleet());
    let addons: Api<ClusterManagementAddOn> = Api::all(world.client.clone());
    let apply = PatchParams::apply("alice-at-her-desk").force();
    world.block_on(addons.patch("helloworld", &apply, &Patch::Apply(addon("one")))).unwrap();
    world.until_all("install completed with no errors.");
    let told = world.run("rollout history helloworld");
    assert!(told.contains("\nLast change: the add-on by alice-at-her-desk at TIME\n"), "{told}");
    let told = world.json("rollout history helloworld -o json", 0);
    let author = &told["changedBy"][0];
    assert_eq!((&author["manager"], &author["changed"]), (&json!("alice-at-her-desk"), &json!("the add-on")));
    // The manager writes statuses, which are nobody's changes.
    let managers: Vec<&Value> =
        told["changedBy"].as_array().unwrap().iter().map(|one| &one["manager"]).collect();
    assert!(!managers.contains(&&json!("aviary-manager")), "{told:#}");
}

#[test]
fn history_names_the_field_manager_that_approved_deletions() {
    let world = World::installed("gitops-approval");
    let told = world.json("rollout history helloworld -o json", 0);
    assert_eq!(told["approval"], Value::Null);
    let addons: Api<ClusterManagementAddOn> = Api::all(world.client.clone());
    let annotated = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
        "metadata": {
            "name": "helloworld",
            "annotations": {"addon.open-cluster-management.io/allow-deletions": "12"},
        },
    });
    let bob = PatchParams::apply("bob");
    world.block_on(addons.patch("helloworld", &bob, &Patch::Apply(annotated))).unwrap();
    let told = world.run("rollout history helloworld");
    assert!(told.contains("\nApproval: 12 deletions by bob at TIME\n"), "{told}");
    let told = world.json("rollout history helloworld -o json", 0);
    assert_eq!((&told["approval"]["deletions"], &told["approval"]["manager"]), (&json!(12), &json!("bob")));
    // The manager of the last change of the spec is still somebody else.
    assert_ne!(told["changedBy"][0]["manager"], "bob");
}
