//! Every object survives the way to the other version and back.

#![allow(clippy::needless_pass_by_value, reason = "JSON is written where it is used")]

use aviary_api::convert::{ConversionError, INSTALL_NAMESPACE, NO_DEFAULT, REMEMBERED, convert};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const ALPHA: &str = "addon.open-cluster-management.io/v1alpha1";
const BETA: &str = "addon.open-cluster-management.io/v1beta1";

/// Anything that may be stored where something else is expected.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z_]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[a-z]{1,5}", inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Mostly what belongs there, sometimes anything.
fn mostly(right: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    prop_oneof![9 => right, 1 => anything()].boxed()
}

/// An object with some of these fields.
fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let (names, values): (Vec<_>, Vec<_>) =
        fields.into_iter().map(|(name, value)| (name, option::of(value))).unzip();
    values
        .prop_map(move |values| {
            let some = names.iter().zip(values).filter_map(|(name, value)| Some((*name, value?)));
            Value::Object(some.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
        })
        .boxed()
}

fn word(pattern: &'static str) -> BoxedStrategy<Value> {
    mostly(pattern.prop_map(Value::from))
}

fn list(element: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    mostly(vec(element, 0..4).prop_map(Value::from))
}

/// Few values, so that kinds of config meet again in another list.
fn kind_fields() -> Vec<(&'static str, BoxedStrategy<Value>)> {
    vec![("group", word("(|x.io)")), ("resource", word("(as|bs|cs)"))]
}

fn name() -> BoxedStrategy<Value> {
    prop_oneof![4 => word("[a-c]"), 1 => Just(json!(NO_DEFAULT))].boxed()
}

fn referent() -> Vec<(&'static str, BoxedStrategy<Value>)> {
    vec![("namespace", word("(n|m)")), ("name", name())]
}

fn config() -> BoxedStrategy<Value> {
    mostly(object([kind_fields(), referent()].concat()))
}

fn supported() -> BoxedStrategy<Value> {
    mostly(object([kind_fields(), vec![("defaultConfig", mostly(object(referent())))]].concat()))
}

fn old_config() -> BoxedStrategy<Value> {
    mostly(object(vec![("crdName", word("[a-z]{1,3}")), ("crName", word("[a-z]{1,3}"))]))
}

fn references() -> BoxedStrategy<Value> {
    list(mostly(object([kind_fields(), vec![("desiredConfig", mostly(object(referent())))]].concat())))
}

fn subject(units: &'static str) -> BoxedStrategy<Value> {
    let texts = || list(word("[a-z]{1,3}"));
    mostly(object(vec![("user", word("[a-z]{0,3}")), ("groups", texts()), (units, texts())]))
}

fn signer() -> BoxedStrategy<Value> {
    prop_oneof![Just(json!("kubernetes.io/kube-apiserver-client")), word("x.io/[a-b]")].boxed()
}

fn driver() -> BoxedStrategy<Value> {
    word("(csr|token)")
}

fn registrations_alpha() -> BoxedStrategy<Value> {
    list(mostly(object(vec![
        ("signerName", signer()),
        ("subject", subject("organizationUnit")),
        ("driver", driver()),
    ])))
}

fn registrations_beta() -> BoxedStrategy<Value> {
    let client = mostly(object(vec![("subject", subject("organizationUnits")), ("driver", driver())]));
    let custom = mostly(object(vec![("signerName", signer()), ("subject", subject("organizationUnits"))]));
    list(mostly(object(vec![
        ("type", word("(kubeClient|customSigner)")),
        ("kubeClient", client),
        ("customSigner", custom),
    ])))
}

/// An object of a version. Every object has a spec, which the schemas require. Annotations are
/// absent or not empty, as the hub stores them.
fn whole(
    (api_version, kind): (&'static str, &'static str),
    annotations: BoxedStrategy<Option<Value>>,
    spec: BoxedStrategy<Value>,
    status: BoxedStrategy<Value>,
) -> impl Strategy<Value = Value> {
    (annotations, spec, option::of(status)).prop_map(move |(annotations, spec, status)| {
        let mut object = json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": "a", "namespace": "c", "uid": "u", "resourceVersion": "7", "labels": {"l": "v"}},
        });
        object["spec"] = spec;
        if let Some(status) = status {
            object["status"] = status;
        }
        if let Some(annotations) = annotations {
            object["metadata"]["annotations"] = annotations;
        }
        object
    })
}

fn plain_annotations() -> BoxedStrategy<Option<Value>> {
    option::of(Just(json!({"mine": "kept"}))).boxed()
}

fn beta_annotations() -> BoxedStrategy<Option<Value>> {
    let namespace = option::of("(|[a-z][a-z0-9-]{0,3}x)");
    (option::of(Just(())), namespace)
        .prop_map(|(mine, namespace)| {
            let mut all = Map::new();
            all.extend(mine.map(|()| ("mine".to_owned(), json!("kept"))));
            all.extend(namespace.map(|namespace| (INSTALL_NAMESPACE.to_owned(), json!(namespace))));
            (!all.is_empty()).then_some(Value::Object(all))
        })
        .boxed()
}

fn others() -> Vec<(&'static str, BoxedStrategy<Value>)> {
    vec![
        ("addOnMeta", anything().boxed()),
        ("configs", anything().boxed()),
        ("conditions", anything().boxed()),
    ]
}

fn alpha() -> impl Strategy<Value = Value> {
    let addon = vec![
        ("supportedConfigs", list(supported())),
        ("defaultConfigs", list(config())),
        ("addOnConfiguration", old_config()),
    ];
    let addon_status =
        vec![("defaultConfigReferences", references()), ("defaultconfigReferences", references())];
    let instance = vec![("installNamespace", word("[a-z]{0,4}"))];
    let instance_status = vec![
        ("addOnConfiguration", old_config()),
        ("registrations", registrations_alpha()),
        ("kubeClientDriver", driver()),
    ];
    prop_oneof![
        whole(
            (ALPHA, "ClusterManagementAddOn"),
            plain_annotations(),
            object([addon, others()].concat()),
            object([addon_status, others()].concat())
        ),
        whole(
            (ALPHA, "ManagedClusterAddOn"),
            plain_annotations(),
            object([instance, others()].concat()),
            object([instance_status, others()].concat())
        ),
    ]
}

fn beta() -> impl Strategy<Value = Value> {
    let addon = vec![("defaultConfigs", list(config()))];
    let addon_status = vec![("defaultConfigReferences", references())];
    let instance_status = vec![("registrations", registrations_beta())];
    prop_oneof![
        whole(
            (BETA, "ClusterManagementAddOn"),
            plain_annotations(),
            object([addon, others()].concat()),
            object([addon_status, others()].concat())
        ),
        whole(
            (BETA, "ManagedClusterAddOn"),
            beta_annotations(),
            object(others()),
            object([instance_status, others()].concat())
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_stored_survives_being_read_in_v1beta1(object in alpha()) {
        let there = convert(object.clone(), BETA).unwrap();
        for gone in ["/spec/supportedConfigs", "/spec/addOnConfiguration", "/spec/installNamespace", "/status/kubeClientDriver"] {
            prop_assert!(there.pointer(gone).is_none(), "{gone} in {there}");
        }
        prop_assert_eq!(convert(there, ALPHA).unwrap(), object);
    }

    #[test]
    fn what_is_written_in_v1beta1_survives_being_stored(object in beta()) {
        let there = convert(object.clone(), ALPHA).unwrap();
        prop_assert_eq!(convert(there, BETA).unwrap(), object);
    }

    /// A client reads v1beta1, replaces fields of it and writes it back: what it wrote is what it
    /// reads, whatever was remembered.
    #[test]
    fn fields_of_v1beta1_win(object in alpha(), other in beta()) {
        let mut read = convert(object, BETA).unwrap();
        if read["kind"] != other["kind"] {
            return Ok(());
        }
        for part in ["spec", "status"] {
            if let Some(value) = other.get(part) {
                read[part] = value.clone();
            }
        }
        let again = convert(convert(read.clone(), ALPHA).unwrap(), BETA).unwrap();
        let fields = |object: &Value| (object.get("spec").cloned(), object.get("status").cloned());
        prop_assert_eq!(fields(&again), fields(&read));
    }

    /// The hub refuses a conversion that changes anything else of the metadata.
    #[test]
    fn of_the_metadata_only_annotations_change(object in prop_oneof![alpha(), beta()]) {
        let to = if object["apiVersion"] == ALPHA { BETA } else { ALPHA };
        let there = convert(object.clone(), to).unwrap();
        let without = |object: &Value| {
            let mut metadata = object["metadata"].clone();
            metadata.as_object_mut().unwrap().remove("annotations");
            metadata
        };
        prop_assert_eq!(without(&there), without(&object));
        prop_assert_eq!(&there["apiVersion"], to);
    }

    /// Whatever somebody writes into the annotation, it changes no field that v1beta1 has.
    #[test]
    fn a_forged_memory_changes_no_field_of_v1beta1(object in beta(), forged in anything()) {
        let mut object = object;
        object["metadata"]["annotations"][REMEMBERED] = forged.to_string().into();
        let again = convert(convert(object.clone(), ALPHA).unwrap(), BETA).unwrap();
        prop_assert_eq!(again.get("spec"), object.get("spec"));
        prop_assert_eq!(again.get("status"), object.get("status"));
    }
}

fn addon(api_version: &str, spec: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": "ClusterManagementAddOn", "metadata": {"name": "a"}, "spec": spec})
}

#[test]
fn a_kind_without_a_default_has_the_reserved_name() {
    let alpha = addon(
        ALPHA,
        &json!({"supportedConfigs": [
            {"group": "x.io", "resource": "as"},
            {"group": "x.io", "resource": "bs", "defaultConfig": {"namespace": "n", "name": "b"}},
        ]}),
    );
    let beta = addon(
        BETA,
        &json!({"defaultConfigs": [
            {"group": "x.io", "resource": "as", "name": NO_DEFAULT},
            {"group": "x.io", "resource": "bs", "namespace": "n", "name": "b"},
        ]}),
    );
    assert_eq!(convert(alpha.clone(), BETA).unwrap(), beta);
    assert_eq!(convert(beta, ALPHA).unwrap(), alpha);
}

/// Only the entry that changed becomes a supported kind; the other stays where it was.
#[test]
fn an_entry_that_a_client_changes_leaves_the_others_as_they_were() {
    let alpha = addon(
        ALPHA,
        &json!({
            "supportedConfigs": [{"resource": "as"}],
            "defaultConfigs": [{"resource": "bs", "name": "b"}, {"resource": "cs", "name": "c"}],
        }),
    );
    let mut beta = convert(alpha, BETA).unwrap();
    beta["spec"]["defaultConfigs"][1]["name"] = json!("other");
    let stored = convert(beta, ALPHA).unwrap();
    assert_eq!(
        stored["spec"],
        json!({
            "supportedConfigs": [{"resource": "as"}, {"resource": "bs", "defaultConfig": {"name": "other"}}],
            "defaultConfigs": [{"resource": "cs", "name": "c"}],
        })
    );
    assert_eq!(stored["metadata"], json!({"name": "a"}), "nothing is left to remember");
}

#[test]
fn an_instance_is_what_add_ons_of_v1beta1_expect() {
    let alpha = json!({
        "apiVersion": ALPHA, "kind": "ManagedClusterAddOn", "metadata": {"name": "a", "namespace": "c"},
        "spec": {"installNamespace": "agents"},
        "status": {
            "kubeClientDriver": "csr",
            "registrations": [
                {"signerName": "kubernetes.io/kube-apiserver-client", "subject": {"user": "u", "groups": ["g"]}},
                {"signerName": "x.io/y", "subject": {"user": "v", "organizationUnit": ["o"]}},
            ],
        },
    });
    let beta = json!({
        "apiVersion": BETA, "kind": "ManagedClusterAddOn",
        "metadata": {"name": "a", "namespace": "c", "annotations": {INSTALL_NAMESPACE: "agents"}},
        "spec": {},
        "status": {"registrations": [
            {"type": "kubeClient", "kubeClient": {"driver": "csr", "subject": {"user": "u", "groups": ["g"]}}},
            {"type": "customSigner", "customSigner": {"signerName": "x.io/y", "subject": {"user": "v", "organizationUnits": ["o"]}}},
        ]},
    });
    assert_eq!(convert(alpha.clone(), BETA).unwrap(), beta);
    assert_eq!(convert(beta, ALPHA).unwrap(), alpha);
}

#[test]
fn a_namespace_that_cannot_exist_is_refused() {
    for name in ["Agents", "-a", "a_b", "a/b", &"a".repeat(64)] {
        let object = json!({
            "apiVersion": BETA, "kind": "ManagedClusterAddOn",
            "metadata": {"name": "a", "annotations": {INSTALL_NAMESPACE: name}}, "spec": {},
        });
        let refused = convert(object, ALPHA).unwrap_err();
        assert_eq!(refused, ConversionError::InstallNamespace { value: name.to_owned() });
        assert!(refused.to_string().contains(INSTALL_NAMESPACE), "{refused}");
    }
}

#[test]
fn other_kinds_and_versions_are_not_converted() {
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork"});
    assert!(matches!(convert(work, BETA), Err(ConversionError::Kind { .. })));
    for to in ["addon.open-cluster-management.io/v1", "other.io/v1beta1", ""] {
        let refused = convert(addon(ALPHA, &json!({})), to).unwrap_err();
        assert!(refused.to_string().starts_with("ClusterManagementAddOn cannot be converted"), "{refused}");
    }
}
