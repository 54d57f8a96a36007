//! An add-on is installed, upgraded behind its canary, and taken back.

use aviary_testing::objects::names;
pub(crate) use aviary_testing::objects::{addon, hub_config, template};
use serde_json::json;

use crate::agents::Agents;
use crate::world::{World, message};

async fn fleet() -> World {
    let world = World::new().await;
    world.clusters("fleet", &names("fleet", 12)).await;
    world.clusters("canary", &names("canary", 4)).await;
    for version in ["v1.0.0", "v2.0.0"] {
        world.put(template(version)).await;
    }
    world.put(hub_config("one", "v1.0.0")).await;
    world.put(hub_config("two", "v2.0.0")).await;
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_is_installed_upgraded_behind_its_canary_and_taken_back() {
    let world = fleet().await;
    let _agents = Agents::start(&world.client, |_| Ok(()));
    let manager = world.manager("first");
    world.put(addon("one")).await;
    world
        .until("helloworld", "the install", |addon| {
            message(addon, "fleet") == "12/12 install completed with no errors."
                && message(addon, "canary") == "4/4 install completed with no errors."
        })
        .await;
    world.put(addon("two")).await;
    world
        .until("helloworld", "the upgrade", |addon| {
            message(addon, "fleet") == "12/12 upgrade completed with no errors."
                && message(addon, "canary") == "4/4 upgrade completed with no errors."
        })
        .await;
    world
        .until_instances("helloworld", "the new version everywhere", |all| {
            all.len() == 16 && all.iter().all(|one| json!(one.status)["currentVersion"] == "v2.0.0")
        })
        .await;
    world.put(addon("one")).await;
    world
        .until("helloworld", "the way back", |addon| {
            let status = json!(addon.status);
            let good =
                |placement: usize| status["installProgressions"][placement]["configReferences"][0].clone();
            [0, 1].iter().all(|placement| {
                good(*placement)["lastAppliedConfig"]["name"] == "one"
                    && good(*placement)["desiredConfig"]["name"] == "one"
            })
        })
        .await;
    manager.stop().await;
}
