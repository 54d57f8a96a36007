//! `aviary explain`.

use aviary_api::ClusterManagementAddOn;
use aviary_controller::why_skipped;
use axum::http::{Request, Response};
use expect_test::expect;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use crate::world::{LIMIT, World, addon, hub_config, template};

/// The objects exist, and so the work is available; one of them is not healthy.
#[test]
fn an_object_that_is_not_healthy_is_named() {
    let world = World::installed("explain-unhealthy");
    let mut version = template("v4.0.0");
    let manifests = version["spec"]["agentSpec"]["workload"]["manifests"].as_array_mut().unwrap();
    manifests.push(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent", "namespace": "agents"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": []}},
        },
    }));
    world.give(version);
    world.give(hub_config("four", "v4.0.0"));
    world.mood(|mood| mood.unready.extend(["v4.0.0".to_owned()]));
    world.give(addon("four"));
    let object = "Deployment agents/agent";
    world.until("an object that is not healthy", |_, plan| {
        plan.report.clusters.iter().filter(|one| one.object.as_deref() == Some(object)).count() == 2
    });
    let said = |arguments: &str| world.run(arguments).split_whitespace().collect::<Vec<_>>().join(" ");
    let detail = format!("{object}: 0 of 3 updated replicas available");
    let all = said("explain helloworld");
    assert!(all.contains(&format!("not healthy yet: {detail} (canary-00, canary-01)")), "{all}");
    let one = said("explain helloworld canary-00");
    assert!(one.contains(&format!("state not healthy yet: {detail}")), "{one}");
    // The work is applied and available all the same.
    assert!(one.contains(&format!("yes yes yes not healthy: {detail}")), "{one}");
}

#[test]
fn a_canary_that_refuses_is_why() {
    let world = World::refused("explain-refused");
    world.check(
        "explain helloworld",
        &expect![[r#"
            $ aviary explain helloworld
            helloworld  Failed  default/canary: upgrade failed: stopped, 2 failed, 2 of 2
                slots taken: canary-00, canary-01

            default/canary  Failed  upgrade failed: stopped, 2 failed, 2 of 2 slots taken:
                canary-00, canary-01
              4 clusters, at most 2 at once: 0 settled, 0 in flight, 2 failed, 2 waiting
                  2  Failed  failed: work reports Applied=False: image of v3.0.0 cannot be
                     pulled (canary-00, canary-01)
                     -> fix the cause: it settles when its agent succeeds; aviary rollout
                        retry helloworld makes it try again;
                        aviary rollout undo helloworld rolls
                        back
                  2  BudgetFull  budget full: 2 of 2 slots taken: 2 failed (canary-02,
                     canary-03)
                     -> starts when a slot frees up; maxConcurrentlyUpdating sets the number
                        of slots

            default/fleet  WaitingForCanary  waitingForCanary... canary default/canary: 4 of
                4 not passed, first canary-00
              12 clusters, at most 3 at once: 0 settled, 0 in flight, 0 failed, 12 waiting
              behind the canary default/canary
                 12  WaitingForCanary  canary default/canary: 4 of 4 not passed, first
                     canary-00 (fleet-00, fleet-01, fleet-02 and 9 more)
                     -> aviary explain helloworld canary-00
                        shows why the canary has not passed

            Next: aviary explain helloworld canary-00 # details of one of them
        "#]],
    );
    world.check(
        "explain helloworld canary-00",
        &expect![[r#"
        $ aviary explain helloworld canary-00
        helloworld on canary-00
          placement  default/canary
          state      failed: work reports Applied=False: image of v3.0.0 cannot be
                     pulled (Failed)
          suggested  fix the cause: it settles when its agent succeeds; aviary rollout
                     retry helloworld makes it try again;
                     aviary rollout undo helloworld rolls
                     back
          desired    v3.0.0 (revision 4845b5792654)
          assigned   v3.0.0 (revision 4845b5792654)
          applied    v1.0.0 (revision 4a82aa8ca91f)
          cluster    reachable

        Configs
          addonhubconfigs.addon.open-cluster-management.io
            desired   three@8ed3adae
            assigned  three@8ed3adae
            applied   one@5b12c19f
          addontemplates.addon.open-cluster-management.io
            desired   helloworld-v3.0.0@2a1f2fc2
            assigned  helloworld-v3.0.0@2a1f2fc2
            applied   helloworld-v1.0.0@9134b7b1

        Conditions
          TYPE             STATUS  REASON                    SINCE
          Progressing      False   UpgradeFailed             TIME
              upgrade failed: work reports Applied=False: image of v3.0.0 cannot be
              pulled
          Configured       True    ConfigurationsConfigured  TIME
              all configurations are resolved
          Available        False   WorkNotAvailable          TIME
              work reports Available=False: image of v3.0.0 cannot be pulled
          RevisionHealthy  False   NotYetHealthy             TIME
              revision 4845b5792654 started at TIME by placement
              default/canary

        Works
          addon-helloworld-deploy-0
            generation  2
            assigned    yes
            applied     no: work reports Applied=False: image of v3.0.0 cannot be pulled
            available   no: work reports Available=False: image of v3.0.0 cannot be
                        pulled
            health      unknown: not applied

        Next: aviary status helloworld
    "#]],
    );
    world.check(
        "explain helloworld fleet-03",
        &expect![[r#"
        $ aviary explain helloworld fleet-03
        helloworld on fleet-03
          placement  default/fleet
          state      canary default/canary: 4 of 4 not passed, first canary-00
                     (WaitingForCanary)
          suggested  aviary explain helloworld canary-00
                     shows why the canary has not passed
          desired    v3.0.0 (revision 4845b5792654)
          assigned   v1.0.0 (revision 4a82aa8ca91f)
          applied    v1.0.0 (revision 4a82aa8ca91f)
          cluster    reachable

        Configs
          addonhubconfigs.addon.open-cluster-management.io
            desired   three@8ed3adae
            assigned  one@5b12c19f
            applied   one@5b12c19f
          addontemplates.addon.open-cluster-management.io
            desired   helloworld-v3.0.0@2a1f2fc2
            assigned  helloworld-v1.0.0@9134b7b1
            applied   helloworld-v1.0.0@9134b7b1

        Conditions
          TYPE             STATUS  REASON                    SINCE
          Progressing      False   InstallSucceed            TIME
              install completed with no errors.
          Configured       True    ConfigurationsConfigured  TIME
              all configurations are resolved
          Available        True    WorksAvailable            TIME
              all works are available
          RevisionHealthy  True    Healthy                   TIME
              revision 4a82aa8ca91f started at TIME by placement
              default/fleet

        Works
          NAME                       GENERATION  ASSIGNED  APPLIED  AVAILABLE  HEALTH
          addon-helloworld-deploy-0           1  yes       yes      yes        healthy

        Next: aviary status helloworld
    "#]],
    );
    let told = world.json("explain helloworld -o json", 0);
    expect![[r#"
        {
          "advice": "fix the cause: it settles when its agent succeeds; aviary rollout retry helloworld --kubeconfig hub.kubeconfig makes it try again; aviary rollout undo helloworld --kubeconfig hub.kubeconfig rolls back",
          "clusters": [
            "canary-00",
            "canary-01"
          ],
          "count": 2,
          "message": "failed: work reports Applied=False: image of v3.0.0 cannot be pulled",
          "placement": "default/canary",
          "reason": "Failed"
        }"#]].assert_eq(&serde_json::to_string_pretty(&told["reasons"][1]).unwrap());
    let told = world.json("explain helloworld canary-00 -o json", 0);
    assert_eq!(told["told"]["version"], "v3.0.0");
    assert_eq!(told["applied"]["version"], "v1.0.0");
    assert_eq!(told["decision"]["reason"], "Failed");
    assert_eq!(told["works"][0]["asTold"], true);
    assert_eq!(told["managedCluster"]["labels"]["stage"], "canary");
}

#[test]
fn what_has_settled_needs_nothing_and_who_is_not_there_is_named() {
    let world = World::installed("explain-settled");
    world.check(
        "explain helloworld",
        &expect![[r#"
            $ aviary explain helloworld
            helloworld  Done  16 of 16 clusters settled

            default/canary  Installed  install completed with no errors.
              4 clusters, at most 2 at once: 4 settled, 0 in flight, 0 failed, 0 waiting

            default/fleet  Installed  install completed with no errors.
              12 clusters, at most 3 at once: 12 settled, 0 in flight, 0 failed, 0 waiting
              behind the canary default/canary

            Nothing is waiting. Next: aviary rollout history helloworld
        "#]],
    );
    world.check(
        "explain helloworld fleet-03",
        &expect![[r#"
        $ aviary explain helloworld fleet-03
        helloworld on fleet-03
          placement  default/fleet
          state      settled (Settled)
          suggested  nothing: it is up to date
          desired    v1.0.0 (revision 4a82aa8ca91f)
          assigned   v1.0.0 (revision 4a82aa8ca91f)
          applied    v1.0.0 (revision 4a82aa8ca91f)
          cluster    reachable

        Configs
          addonhubconfigs.addon.open-cluster-management.io
            desired   one@5b12c19f
            assigned  one@5b12c19f
            applied   one@5b12c19f
          addontemplates.addon.open-cluster-management.io
            desired   helloworld-v1.0.0@9134b7b1
            assigned  helloworld-v1.0.0@9134b7b1
            applied   helloworld-v1.0.0@9134b7b1

        Conditions
          TYPE             STATUS  REASON                    SINCE
          Progressing      False   InstallSucceed            TIME
              install completed with no errors.
          Configured       True    ConfigurationsConfigured  TIME
              all configurations are resolved
          Available        True    WorksAvailable            TIME
              all works are available
          RevisionHealthy  True    Healthy                   TIME
              revision 4a82aa8ca91f started at TIME by placement
              default/fleet

        Works
          NAME                       GENERATION  ASSIGNED  APPLIED  AVAILABLE  HEALTH
          addon-helloworld-deploy-0           1  yes       yes      yes        healthy

        Next: aviary status helloworld
    "#]],
    );
    world.check(
        "explain helloworld nowhere",
        &expect![[r#"
        $ aviary explain helloworld nowhere
        ! aviary: there is no cluster nowhere, and add-on helloworld has no instance there
        exit 1
    "#]],
    );
    world.check("explain helloworld UPPER", &expect![[r#"
        $ aviary explain helloworld UPPER
        ! aviary: "UPPER" is not a valid cluster name: it may only have lower-case letters, digits and '-', and must start and end with a letter or digit
        exit 1
    "#]]);
    world.block_on(world.clusters("others", &["other-00".to_owned()]));
    world.check("explain helloworld other-00", &expect![[r#"
        $ aviary explain helloworld other-00
        ! aviary: add-on helloworld is not installed on cluster other-00: no placement selects it, and it has no instance
        exit 1
    "#]]);
    world.check(
        "explain hallo",
        &expect![[r#"
        $ aviary explain hallo
        ! aviary: there is no add-on hallo on https://127.0.0.1:PORT: it has helloworld
        exit 1
    "#]],
    );
}

#[test]
fn a_write_that_the_hub_refuses_is_not_promised() {
    let world = World::quiet("explain-refused-write");
    world.block_on(world.fleet());
    world.block_on(world.led());
    world.give(addon("one"));
    let refused = json!({
        "type": "WritesRefused", "status": "True", "reason": "WriteRefused",
        "message": "5 clusters: canary-00: the hub refuses to write the new instance: too large (500); and 4 more",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let addons: Api<ClusterManagementAddOn> = Api::all(world.client.clone());
    let patch = Patch::Merge(json!({"status": {"conditions": [refused]}}));
    world.block_on(addons.patch_status("helloworld", &PatchParams::default(), &patch)).unwrap();

    let named = world.json("explain helloworld canary-00 -o json", 0);
    assert_eq!(named["decision"]["reason"], "WriteRefused", "{named}");
    assert_eq!(
        named["decision"]["message"], "the hub refuses to write the new instance: too large (500)",
        "{named}"
    );
    let other = world.json("explain helloworld canary-01 -o json", 0);
    let advice = other["decision"]["advice"].as_str().unwrap();
    assert!(advice.contains("it refuses writes for 4 more clusters"), "{advice}");
    let all = world.json("explain helloworld -o json", 0);
    let promised = all["reasons"].as_array().unwrap().iter().any(|group| {
        group["advice"].as_str().is_some_and(|advice| advice.starts_with("nothing: the leading manager"))
    });
    assert!(!promised, "{all}");
}

#[test]
fn what_the_leader_does_next_is_not_promised_for_an_add_on_that_it_skips() {
    let world = World::quiet("explain-skipped");
    world.block_on(world.fleet());
    world.give(addon("one"));
    let client = world.block_on(async { without_addon_status(&world.client) });
    let (world, mut health) = world.looked_after_through(client);
    let skipped = async {
        let skipped = health.wait_for(|health| !health.skipped.is_empty());
        tokio::time::timeout(LIMIT, skipped).await.expect("it is skipped").unwrap().clone()
    };
    let told = world.block_on(skipped).skipped.to_string();
    assert!(told.starts_with("add-on helloworld is skipped: "), "{told}");

    world.block_on(world.until_lease(|lease| why_skipped(lease, "helloworld").is_some()));
    let why = "it skips this add-on: the hub refuses to write its status or its revisions";
    let says = |advice: &Value| advice.as_str().is_some_and(|advice| advice.contains(why));
    let one = world.json("explain helloworld canary-01 -o json", 0);
    assert!(says(&one["decision"]["advice"]), "{one}");
    assert!(
        one["notes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|note| note.as_str().unwrap().contains("skips this add-on")),
        "{one}"
    );
    let all = world.json("explain helloworld -o json", 0);
    let groups = all["reasons"].as_array().unwrap();
    assert!(groups.iter().any(|group| says(&group["advice"])), "{all}");
    assert!(!all.to_string().contains("does this next"), "{all}");
}

#[test]
fn what_a_leader_would_do_next_is_not_promised_where_nobody_leads() {
    let world = World::quiet("explain-nobody");
    world.block_on(world.fleet());
    world.give(addon("one"));
    let check = |note: &str| {
        for arguments in ["explain helloworld -o json", "explain helloworld canary-01 -o json"] {
            let told = world.json(arguments, 0).to_string();
            assert!(told.contains("start a manager: none leads"), "{told}");
            assert!(told.contains(note) && !told.contains("does this next"), "{note}: {told}");
        }
    };
    check("no manager has ever run here");
    let lease = |holder: &str, renewed: Option<&str>| {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "aviary-manager", "namespace": "open-cluster-management"},
            "spec": {"holderIdentity": holder, "renewTime": renewed}})
    };
    world.give(lease("gone", Some("2026-01-01T00:00:00.000000Z")));
    check("has not renewed its lease");
    world.give(lease("ahead", Some("2999-01-01T00:00:00.000000Z")));
    check("has not renewed its lease");
    world.give(lease("", Some("2026-01-01T00:00:00.000000Z")));
    check("was released at");
    world.give(lease("never-renewed", None));
    check("has not renewed its lease");
}

/// A client with which no status of an add-on can be written.
fn without_addon_status(inner: &Client) -> Client {
    let inner = inner.clone();
    let service = service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            let path = request.uri().path();
            if !path.contains("/clustermanagementaddons/") || !path.ends_with("/status") {
                return inner.send(request).await;
            }
            let refusal = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
                "message": "etcdserver: request is too large"});
            let answer = Response::builder().status(500).body(Body::from(refusal.to_string().into_bytes()));
            Ok(answer.unwrap())
        }
    });
    Client::new(service, "default")
}
