//! An object of any kind as text, for kinds whose objects are large and mostly not needed.

use std::borrow::Cow;

use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope, ObjectMeta};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An object of which only the metadata is parsed. Its text is valid JSON.
#[derive(Clone, Debug)]
pub struct ObjectText {
    pub metadata: ObjectMeta,
    pub text: Box<str>,
}

impl<'de> Deserialize<'de> for ObjectText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct WithMetadata {
            #[serde(default)]
            metadata: ObjectMeta,
        }
        let text: Box<str> = Box::<RawValue>::deserialize(from)?.into();
        let WithMetadata { metadata } = serde_json::from_str(&text).map_err(serde::de::Error::custom)?;
        Ok(Self { metadata, text })
    }
}

impl Resource for ObjectText {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Guarded;

    #[test]
    fn an_object_is_kept_as_the_text_that_it_was_read_from() {
        let text = r#"{ "spec" : {"a":[{ }]}, "metadata":{"name":"one","uid":"u"}}"#;
        let read: ObjectText = serde_json::from_str(text).unwrap();
        assert_eq!((read.metadata.name.as_deref(), &*read.text), (Some("one"), text));
        let guarded: Guarded<ObjectText> = serde_json::from_str(text).unwrap();
        assert_eq!(&*guarded.0.unwrap().text, text);
        let value = json!({"metadata": {"name": "one"}});
        let read: ObjectText = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(&*read.text, value.to_string());
    }

    #[test]
    fn what_has_no_metadata_is_no_object() {
        assert!(serde_json::from_str::<ObjectText>("1").is_err());
        assert!(serde_json::from_str::<ObjectText>(r#"{"metadata":1}"#).is_err());
    }
}
