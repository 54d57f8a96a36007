//! What differs between the versions of ManagedClusterAddOn.

use serde_json::{Map, Value, json};

use super::addon::{not_in_beta, only_in_alpha};
use super::group::{FieldGroup, Fields};
use super::{ConversionError, INSTALL_NAMESPACE};
use crate::names::MAX_NAME;

/// The signer of the certificates with which agents reach the hub.
const KUBE_CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

const NAMESPACE: &str = "installNamespace";
const REGISTRATIONS: &str = "registrations";
const DRIVER: &str = "kubeClientDriver";

pub(super) const GROUPS: &[FieldGroup] = &[
    FieldGroup {
        name: NAMESPACE,
        alpha: &[(NAMESPACE, &["spec", NAMESPACE])],
        beta: &[(NAMESPACE, &["metadata", "annotations", INSTALL_NAMESPACE])],
        to_alpha: namespace,
        to_beta: |alpha| namespace(alpha, None),
    },
    FieldGroup {
        name: "addOnConfiguration",
        alpha: &[("addOnConfiguration", &["status", "addOnConfiguration"])],
        beta: &[],
        to_alpha: only_in_alpha,
        to_beta: not_in_beta,
    },
    FieldGroup {
        name: REGISTRATIONS,
        alpha: &[(REGISTRATIONS, &["status", REGISTRATIONS]), (DRIVER, &["status", DRIVER])],
        beta: &[(REGISTRATIONS, &["status", REGISTRATIONS])],
        to_alpha: registrations_to_alpha,
        to_beta: registrations_to_beta,
    },
];

/// Refuses what v1alpha1 would not accept in `spec.installNamespace`.
pub(super) fn check(object: &Value) -> Result<(), ConversionError> {
    let annotations = object.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let Some(Value::String(value)) = annotations.and_then(|all| all.get(INSTALL_NAMESPACE)) else {
        return Ok(());
    };
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = value.len() <= MAX_NAME
        && value.chars().all(fits)
        && !value.starts_with('-')
        && !value.ends_with('-');
    if is_label { Ok(()) } else { Err(ConversionError::InstallNamespace { value: value.clone() }) }
}

/// The same in both versions; an empty name is none.
fn namespace(fields: &Fields, _: Option<&Fields>) -> Fields {
    let named = |value: &&Value| value.as_str().is_some_and(|name| !name.is_empty());
    let name = fields.get(NAMESPACE).filter(named);
    name.map(|name| (NAMESPACE.to_owned(), name.clone())).into_iter().collect()
}

fn list(fields: &Fields) -> impl Iterator<Item = &Map<String, Value>> {
    fields.get(REGISTRATIONS).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// Copies fields, with the name in the original and the name in the copy.
fn copied(from: Option<&Value>, names: &[(&str, &str)]) -> Option<Value> {
    let from = from?.as_object()?;
    let found = names.iter().filter_map(|(old, new)| Some(((*new).to_owned(), from.get(*old)?.clone())));
    Some(Value::Object(found.collect()))
}

fn registrations_to_beta(alpha: &Fields) -> Fields {
    let convert = |registration: &Map<String, Value>| {
        let subject = registration.get("subject");
        let signer = registration.get("signerName").cloned().unwrap_or_default();
        if signer == KUBE_CLIENT_SIGNER {
            let mut client = Map::new();
            let subject = copied(subject, &[("user", "user"), ("groups", "groups")]);
            client.extend(subject.map(|subject| ("subject".to_owned(), subject)));
            let driver = registration.get("driver").or_else(|| alpha.get(DRIVER));
            client.extend(driver.map(|driver| ("driver".to_owned(), driver.clone())));
            json!({"type": "kubeClient", "kubeClient": client})
        } else {
            let names = [("user", "user"), ("groups", "groups"), ("organizationUnit", "organizationUnits")];
            let mut custom = Map::from_iter([("signerName".to_owned(), signer)]);
            custom.extend(copied(subject, &names).map(|subject| ("subject".to_owned(), subject)));
            json!({"type": "customSigner", "customSigner": custom})
        }
    };
    if !alpha.contains_key(REGISTRATIONS) {
        return Fields::new();
    }
    let registrations: Vec<Value> = list(alpha).map(convert).collect();
    Fields::from_iter([(REGISTRATIONS.to_owned(), registrations.into())])
}

fn registrations_to_alpha(beta: &Fields, _: Option<&Fields>) -> Fields {
    let mut driver = None;
    let mut registrations = Vec::new();
    for registration in list(beta) {
        let kind = registration.get("type").and_then(Value::as_str).unwrap_or_default();
        let Some(settings) = registration.get(kind) else { continue };
        let subject = settings.get("subject");
        let (signer, subject) = if kind == "kubeClient" {
            driver = driver.or_else(|| settings.get("driver").cloned());
            (KUBE_CLIENT_SIGNER.into(), copied(subject, &[("user", "user"), ("groups", "groups")]))
        } else {
            let names = [("user", "user"), ("groups", "groups"), ("organizationUnits", "organizationUnit")];
            (settings.get("signerName").cloned().unwrap_or_default(), copied(subject, &names))
        };
        let mut new = Map::from_iter([("signerName".to_owned(), signer)]);
        new.extend(subject.map(|subject| ("subject".to_owned(), subject)));
        registrations.push(Value::Object(new));
    }
    let mut alpha = Fields::new();
    if beta.contains_key(REGISTRATIONS) {
        alpha.insert(REGISTRATIONS.to_owned(), registrations.into());
    }
    alpha.extend(driver.map(|driver| (DRIVER.to_owned(), driver)));
    alpha
}
