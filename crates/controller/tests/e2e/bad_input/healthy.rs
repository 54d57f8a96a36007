//! The add-on beside the bad ones: what it is, and what it must come to whatever stands beside it.

use aviary_api::ManifestWork;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::objects::{addon, place, rolling};
use crate::rollout::{hub_config, template};
use crate::show;
use crate::world::{World, message, names};

fn wanted(config: &str) -> Value {
    addon(&[place("healthy", config, rolling(1))])
}

pub(super) async fn prepare(world: &World) {
    world.clusters("healthy", &names("healthy", 1..=3, 1)).await;
    for (config, version) in [("one", "v1.0.0"), ("two", "v2.0.0")] {
        world.put(template(version)).await;
        world.put(hub_config(config, version)).await;
    }
    world.put(wanted("one")).await;
}

pub(super) async fn until_installed(world: &World) {
    until(world, "3/3 install completed with no errors.").await;
}

/// Upgrades it, and holds against `COMES_TO` what has become of it.
pub(super) async fn upgrade(world: &World) {
    world.put(wanted("two")).await;
    until_upgraded(world).await;
    // The last instance is told a moment later.
    world
        .until_instances("helloworld", "all are upgraded", |all| {
            all.iter().all(|one| json!(one.status)["currentVersion"] == "v2.0.0")
        })
        .await;
    assert_eq!(show::plain(&tell(world).await), show::plain(COMES_TO), "it is not what it is alone");
}

pub(super) async fn until_upgraded(world: &World) {
    until(world, "3/3 upgrade completed with no errors.").await;
}

async fn until(world: &World, told: &str) {
    world.until("helloworld", told, |addon| message(addon, "healthy") == told).await;
}

/// All that is said of it.
async fn tell(world: &World) -> String {
    let addon = world.get(&wanted("two")).await.unwrap();
    let mut told = show::conditions(&addon) + &show::placements(&addon);
    let mut instances: Vec<Value> =
        world.instances("helloworld").await.iter().map(|one| json!(one)).collect();
    instances.sort_by_key(|one| one["metadata"]["namespace"].to_string());
    for instance in instances {
        let cluster = instance["metadata"]["namespace"].as_str().unwrap();
        told.push_str(&format!("{cluster}\n{}", show::instance(&instance)));
        let works: Api<ManifestWork> = Api::namespaced(world.client.clone(), cluster);
        for work in works.list(&ListParams::default()).await.unwrap() {
            let work = json!(work);
            let data = &work["spec"]["workload"]["manifests"][0]["data"];
            told.push_str(&format!("{} {data}\n", work["metadata"]["name"]));
        }
    }
    let offered = world.get(&hub_config("two", "")).await.unwrap();
    told + &format!("offers {}\n", offered["status"]["supportedVersions"])
}

const COMES_TO: &str = r#"
    Valid True Valid the spec is valid
    PlacementsResolved True Resolved all placements are known
    Progressing False UpgradeSucceed default/healthy: 3/3 upgrade completed with no errors.
    healthy False UpgradeSucceed 3/3 upgrade completed with no errors.
    desired two good two applied two
    healthy1
    addonhubconfigs desired two@f03ab756 applied two@f03ab756
    version desired v2.0.0 current v2.0.0 last v1.0.0
    Progressing False UpgradeSucceed: upgrade completed with no errors.
    Configured True ConfigurationsConfigured: all configurations are resolved
    Available True WorksAvailable: all works are available
    "addon-helloworld-deploy-0" {"cluster":"healthy1","version":"v2.0.0"}
    healthy2
    addonhubconfigs desired two@f03ab756 applied two@f03ab756
    version desired v2.0.0 current v2.0.0 last v1.0.0
    Progressing False UpgradeSucceed: upgrade completed with no errors.
    Configured True ConfigurationsConfigured: all configurations are resolved
    Available True WorksAvailable: all works are available
    "addon-helloworld-deploy-0" {"cluster":"healthy2","version":"v2.0.0"}
    healthy3
    addonhubconfigs desired two@f03ab756 applied two@f03ab756
    version desired v2.0.0 current v2.0.0 last v1.0.0
    Progressing False UpgradeSucceed: upgrade completed with no errors.
    Configured True ConfigurationsConfigured: all configurations are resolved
    Available True WorksAvailable: all works are available
    "addon-helloworld-deploy-0" {"cluster":"healthy3","version":"v2.0.0"}
    offers ["v2.0.0","v1.0.0"]
"#;
