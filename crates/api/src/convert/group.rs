//! Fields that are converted together.

use serde_json::{Map, Value};

use super::ApiVersion;

/// The values of a group in one version, by name. A field that is absent has no value.
pub(super) type Fields = Map<String, Value>;

/// A field of a group: its name there, and its path in the object.
pub(super) type GroupField = (&'static str, &'static [&'static str]);

/// Fields of one version that correspond to fields of the other. The two functions need not be
/// inverse to each other: what gets lost is remembered.
#[derive(Debug)]
pub(super) struct FieldGroup {
    pub(super) name: &'static str,
    pub(super) alpha: &'static [GroupField],
    pub(super) beta: &'static [GroupField],
    /// Converts the fields of v1beta1. The second argument is what is remembered of v1alpha1.
    pub(super) to_alpha: fn(&Fields, Option<&Fields>) -> Fields,
    pub(super) to_beta: fn(&Fields) -> Fields,
}

impl FieldGroup {
    /// Replaces the fields of the object by those of `target`. Returns the original values if the
    /// new ones do not say all of it.
    pub(super) fn convert(
        &self,
        object: &mut Value,
        target: ApiVersion,
        remembered: Option<&Value>,
    ) -> Option<Value> {
        let source = self.fields(target.other()).iter().filter_map(|(name, path)| {
            let value = take(object, path)?;
            Some(((*name).to_owned(), value))
        });
        let source: Fields = source.collect();
        let remembered = remembered.and_then(Value::as_object);
        let says = |fields: &Fields| self.plainly(fields, target.other(), None) == source;
        let new = match remembered {
            // Nobody has changed the object since.
            Some(remembered) if says(remembered) => remembered.clone(),
            _ => {
                let new = self.plainly(&source, target, remembered);
                // What has to be remembered itself must be found again without the memory.
                if says(&new) { new } else { self.plainly(&source, target, None) }
            }
        };
        let says_all = says(&new);
        for (name, path) in self.fields(target) {
            if let Some(value) = new.get(*name) {
                put(object, path, value.clone());
            }
        }
        (!says_all).then_some(Value::Object(source))
    }

    fn fields(&self, version: ApiVersion) -> &'static [GroupField] {
        match version {
            ApiVersion::V1Alpha1 => self.alpha,
            ApiVersion::V1Beta1 => self.beta,
        }
    }

    fn plainly(&self, fields: &Fields, target: ApiVersion, remembered: Option<&Fields>) -> Fields {
        match target {
            ApiVersion::V1Alpha1 => (self.to_alpha)(fields, remembered),
            ApiVersion::V1Beta1 => (self.to_beta)(fields),
        }
    }
}

/// Removes a field. Annotations that become empty are removed as well.
pub(super) fn take(object: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let mut node = &mut *object;
    for parent in parents {
        node = node.get_mut(*parent)?;
    }
    let fields = node.as_object_mut()?;
    let value = fields.remove(*last);
    let is_empty = fields.is_empty();
    if value.is_some()
        && is_empty
        && path.get(1) == Some(&"annotations")
        && let Some(Value::Object(metadata)) = object.get_mut("metadata")
    {
        metadata.remove("annotations");
    }
    value
}

/// Sets a field. If a parent is something else than an object, nothing can be set in it.
pub(super) fn put(object: &mut Value, path: &[&str], value: Value) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut node = object;
    for parent in parents {
        let Value::Object(fields) = node else { return };
        node = fields.entry(*parent).or_insert_with(|| Value::Object(Map::new()));
    }
    if let Value::Object(fields) = node {
        fields.insert((*last).to_owned(), value);
    }
}
