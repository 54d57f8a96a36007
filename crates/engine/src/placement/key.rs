//! The key of an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::name::Text;

/// The namespace and the name of an object; the namespace is empty for cluster-scoped kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub namespace: Text,
    pub name: Text,
}

impl Key {
    pub fn of(metadata: &ObjectMeta) -> Self {
        let text = |given: &Option<String>| Text::from(given.as_deref().unwrap_or_default());
        Self { namespace: text(&metadata.namespace), name: text(&metadata.name) }
    }
}
