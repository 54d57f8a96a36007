//! Conversion of add-ons and instances between v1alpha1, which is stored, and v1beta1.
//!
//! Works on JSON, so that no field is lost only because this program does not know it, and a
//! malformed stored object does not make a whole list unreadable. Most fields are the same in both
//! versions and are not touched. The others form groups (`group`) that are converted together.
//!
//! A value that the other version cannot express is remembered in an annotation ([`REMEMBERED`]).
//! It is used only as long as it still agrees with the fields of the object: so a client that
//! changes a field in the other version always wins.

mod addon;
mod group;
mod instance;

use std::fmt;

use serde_json::{Map, Value};

use crate::names::ADDON_GROUP;

/// The name of a config that does not exist: the add-on supports this kind of config, and has no
/// default for it. Only in `spec.defaultConfigs` of a v1beta1 add-on.
pub const NO_DEFAULT: &str = "__reserved_no_default__";

/// On v1beta1 instances: the namespace that v1alpha1 has in `spec.installNamespace`. The name is
/// OCM's, because add-ons read it.
pub const INSTALL_NAMESPACE: &str = "addon.open-cluster-management.io/v1alpha1-install-namespace";

/// On converted objects: what the version of the object cannot express, as JSON. Its keys are the
/// version that the values are from, and the names of the groups.
pub const REMEMBERED: &str = "conversion.addon.open-cluster-management.io/remembered";

/// A longer annotation is ignored: the hub allows 256 KiB for all annotations of an object.
const LONGEST: usize = 128 << 10;

/// The versions of the add-on kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiVersion {
    V1Alpha1,
    V1Beta1,
}

impl ApiVersion {
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1Alpha1 => "v1alpha1",
            Self::V1Beta1 => "v1beta1",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::V1Alpha1 => Self::V1Beta1,
            Self::V1Beta1 => Self::V1Alpha1,
        }
    }

    /// The version in an apiVersion of the add-on group.
    fn parse(api_version: &str) -> Option<Self> {
        let (group, version) = api_version.split_once('/')?;
        let known = [Self::V1Alpha1, Self::V1Beta1].into_iter().find(|known| known.name() == version)?;
        (group == ADDON_GROUP).then_some(known)
    }
}

/// Why an object cannot be converted. Never because of what is stored: only because of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversionError {
    /// The object, or the version asked for, is not of a kind that is converted.
    Kind { kind: String, from: String, to: String },
    /// A v1beta1 instance names a namespace that cannot exist.
    InstallNamespace { value: String },
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { kind, from, to } => {
                write!(f, "{kind:.100} cannot be converted from {from:.100} to {to:.100}")
            }
            Self::InstallNamespace { value } => write!(
                f,
                "metadata.annotations[{INSTALL_NAMESPACE}]: {value:.100?} is not the name of a namespace: it must consist of at \
                 most 63 lower-case letters, digits and dashes, and start and end with a letter or digit"
            ),
        }
    }
}

impl std::error::Error for ConversionError {}

/// Converts an object to the version that `api_version` names. From v1alpha1 to v1beta1 it cannot
/// fail, whatever is stored.
///
/// # Errors
/// If the kind has no conversion, or a request in v1beta1 has a value that cannot be stored.
pub fn convert(mut object: Value, api_version: &str) -> Result<Value, ConversionError> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (from, kind) = (text("apiVersion"), text("kind"));
    let groups = match kind.as_str() {
        "ClusterManagementAddOn" => Some(addon::GROUPS),
        "ManagedClusterAddOn" => Some(instance::GROUPS),
        _ => None,
    };
    let (Some(groups), Some(source), Some(target)) =
        (groups, ApiVersion::parse(&from), ApiVersion::parse(api_version))
    else {
        return Err(ConversionError::Kind { kind, from, to: api_version.to_owned() });
    };
    if source == target {
        return Ok(object);
    }
    if target == ApiVersion::V1Alpha1 {
        instance::check(&object)?;
    }
    let before = remembered(&mut object, target);
    let mut kept = Map::new();
    for group in groups {
        if let Some(unexpressed) = group.convert(&mut object, target, before.get(group.name)) {
            kept.insert(group.name.to_owned(), unexpressed);
        }
    }
    remember(&mut object, source, kept);
    if let Value::Object(fields) = &mut object {
        fields.insert("apiVersion".to_owned(), api_version.into());
    }
    Ok(object)
}

/// Takes the annotation from the object, and returns what it says about the version `of`.
fn remembered(object: &mut Value, of: ApiVersion) -> Map<String, Value> {
    let Some(Value::String(text)) = group::take(object, &["metadata", "annotations", REMEMBERED]) else {
        return Map::new();
    };
    let known = (text.len() <= LONGEST).then(|| serde_json::from_str::<Map<String, Value>>(&text).ok());
    match known.flatten().and_then(|mut known| known.remove(of.name())) {
        Some(Value::Object(groups)) => groups,
        _ => Map::new(),
    }
}

fn remember(object: &mut Value, of: ApiVersion, kept: Map<String, Value>) {
    if kept.is_empty() {
        return;
    }
    let mut all = Map::new();
    all.insert(of.name().to_owned(), kept.into());
    group::put(object, &["metadata", "annotations", REMEMBERED], Value::Object(all).to_string().into());
}
