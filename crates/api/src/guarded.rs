//! Reads objects one by one, so that an unreadable object does not affect the others.
//!
//! Owns how the text of an object becomes its type, for lists and for watches. Must not know any
//! kind.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use kube::Resource;
use kube::core::ObjectMeta;
use kube::core::error_boundary::InvalidObject;
use serde::de::{DeserializeOwned, DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::managers::is_only_by_ocm;

/// An object without `metadata.managedFields`, but for a mark that OCM's manager alone has written
/// it; or its metadata and the reason why the rest cannot
/// be read.
///
/// Does what kube's `DeserializeGuard` does, but parses the type directly from the text, without a
/// second copy of every object as a tree.
#[derive(Clone, Debug)]
pub struct Guarded<K>(pub Result<K, InvalidObject>);

/// serde_json returns a value's text for this type name. If that ever changes, the value is parsed
/// instead, which costs more.
const TEXT: &str = "$serde_json::private::RawValue";

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_newtype_struct(TEXT, Whole(PhantomData))
    }
}

impl<K: DeserializeOwned> Guarded<K> {
    /// Fails only if not even the metadata can be read.
    fn read(text: &str) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Named {
            #[serde(default)]
            metadata: ObjectMeta,
        }
        let text = without_managed_fields(text);
        match serde_json::from_str(&text) {
            Ok(object) => Ok(Self(Ok(object))),
            Err(error) => {
                let Named { metadata } = serde_json::from_str(&text)?;
                Ok(Self(Err(InvalidObject { error: without_place(&error), metadata })))
            }
        }
    }
}

struct Whole<K>(PhantomData<K>);

impl<'de, K: DeserializeOwned> Visitor<'de> for Whole<K> {
    type Value = Guarded<K>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    /// The text is the only value of a map.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        map.next_key::<IgnoredAny>()?;
        map.next_value_seed(self)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Guarded::read(text).map_err(E::custom)
    }

    /// There is no text if serde had to buffer the object before it knew its type: in a watch event
    /// whose type comes last.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        self.visit_str(&Value::deserialize(from)?.to_string())
    }
}

impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for Whole<K> {
    type Value = Guarded<K>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

/// Managed fields are often more than half of an object, and nothing here uses them but for whether
/// OCM's manager alone has written it.
fn without_managed_fields(text: &str) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Outline<'a> {
        #[serde(borrow)]
        metadata: Head<'a>,
    }
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow, rename = "managedFields")]
        managed_fields: &'a RawValue,
    }
    // Most texts do not contain the name at all. Content of an object may contain it too, and is
    // kept.
    if !text.contains("\"managedFields\"") {
        return text.into();
    }
    let Ok(Outline { metadata: Head { managed_fields } }) = serde_json::from_str(text) else {
        return text.into();
    };
    let fields = managed_fields.get();
    let from = fields.as_ptr().addr() - text.as_ptr().addr();
    match (text.get(..from), text.get(from + fields.len()..)) {
        (Some(before), Some(after)) => [before, condensed(fields), after].concat().into(),
        _ => text.into(),
    }
}

/// What is left of managed fields: whether nobody but OCM's manager has written the object. Most
/// objects do not contain its name, so that is looked for first.
fn condensed(fields: &str) -> &'static str {
    #[derive(Deserialize)]
    struct FieldOwner<'a> {
        #[serde(borrow, default)]
        manager: Cow<'a, str>,
        #[serde(borrow, default)]
        subresource: Cow<'a, str>,
    }
    if !fields.contains("\"addon\"") {
        return "null";
    }
    let entries: Vec<FieldOwner<'_>> = serde_json::from_str(fields).unwrap_or_default();
    match is_only_by_ocm(entries.iter().map(|entry| (&*entry.manager, &*entry.subresource))) {
        true => r#"[{"manager":"addon"}]"#,
        false => "null",
    }
}

/// The error without its position, because the text is not shown.
fn without_place(error: &serde_json::Error) -> String {
    let mut said = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    said.truncate(said.strip_suffix(&place).map_or(said.len(), str::len));
    said
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(of: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(of)
    }

    fn group(of: &Self::DynamicType) -> Cow<'_, str> {
        K::group(of)
    }

    fn version(of: &Self::DynamicType) -> Cow<'_, str> {
        K::version(of)
    }

    fn plural(of: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(of)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.as_ref().map_or_else(|invalid| &invalid.metadata, K::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.as_mut().map_or_else(|invalid| &mut invalid.metadata, K::meta_mut)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use k8s_openapi::api::apps::v1::ControllerRevision;
    use kube::core::{DynamicObject, ObjectList, WatchEvent};
    use serde_json::json;

    use super::*;
    use crate::{AddOnTemplate, ManagedCluster};

    fn fields() -> Value {
        json!([{
            "manager": "somebody", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:spec": {".": {}, "k:{\"name\":\"a\"}": {"f:]}": {}}}},
        }])
    }

    fn template() -> Value {
        json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "AddOnTemplate",
            "metadata": {
                "annotations": {"noted": "{\"managedFields\":[1]}"}, "finalizers": ["f"], "generation": 7, "labels": {"ä": "ö\n"},
                "managedFields": fields(), "name": "w", "namespace": "c1", "resourceVersion": "12", "uid": "u",
            },
            "spec": {"addonName": "a", "agentSpec": {"workload": {"manifests": [
                {"metadata": {"name": "inner", "managedFields": [{"manager": "x"}]}, "n": 1.5},
            ]}}},
        })
    }

    fn bad_template() -> Value {
        let mut bad = template();
        bad["metadata"]["name"] = json!("bad");
        bad["spec"]["addonName"] = json!(["none"]);
        bad
    }

    /// The expected result of reading `template()`.
    fn expected() -> AddOnTemplate {
        let mut expected: AddOnTemplate = serde_json::from_value(template()).unwrap();
        assert!(expected.metadata.managed_fields.take().is_some(), "the plain type has them");
        expected
    }

    fn is_good(read: &Guarded<AddOnTemplate>) {
        let read = read.0.as_ref().unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), serde_json::to_value(expected()).unwrap());
        let inner = &serde_json::to_value(read).unwrap()["spec"]["agentSpec"]["workload"]["manifests"][0];
        assert_eq!(inner["metadata"]["managedFields"][0]["manager"], "x", "a content is left as it is");
    }

    fn is_bad(read: &Guarded<AddOnTemplate>) {
        let mut metadata = expected().metadata;
        metadata.name = Some("bad".to_owned());
        assert_eq!(*read.meta(), metadata);
        let error = read.0.as_ref().unwrap_err().to_string();
        assert!(error.starts_with("invalid type: sequence"), "{error}");
        assert!(!error.contains("line 1"), "{error}");
    }

    #[test]
    fn of_a_list_only_the_object_that_cannot_be_read_is_left_out() {
        let list = json!({
            "items": [template(), bad_template(), template()],
            "kind": "AddOnTemplateList", "apiVersion": "addon.open-cluster-management.io/v1alpha1",
            "metadata": {"resourceVersion": "15", "continue": "more"},
        });
        let text = serde_json::to_string_pretty(&list).unwrap();
        let from_reader = serde_json::from_reader(text.as_bytes()).unwrap();
        for page in [serde_json::from_str(&text).unwrap(), serde_json::from_value(list).unwrap(), from_reader]
        {
            let page: ObjectList<Guarded<AddOnTemplate>> = page;
            assert_eq!(page.metadata.continue_.as_deref(), Some("more"));
            assert_eq!(page.items.len(), 3);
            is_good(&page.items[0]);
            is_bad(&page.items[1]);
            is_good(&page.items[2]);
        }
    }

    #[test]
    fn a_watch_event_is_read_whichever_of_its_fields_comes_first() {
        for (object, check) in [(template(), is_good as fn(&_)), (bad_template(), is_bad)] {
            for text in [
                format!(r#"{{"type":"MODIFIED","object":{object}}}"#),
                format!(r#"{{"object":{object},"type":"MODIFIED"}}"#),
                format!(r#"{{"unknown":[1],"object":{object},"more":{{}},"type":"MODIFIED"}}"#),
            ] {
                match serde_json::from_str(&text).unwrap() {
                    WatchEvent::Modified(read) => check(&read),
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn events_that_carry_no_object_of_the_kind_are_what_they_were() {
        let read = |text: &str| serde_json::from_str::<WatchEvent<Guarded<AddOnTemplate>>>(text).unwrap();
        let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"AddOnTemplate","apiVersion":"v1","metadata":{"resourceVersion":"9"}}}"#;
        assert!(
            matches!(read(bookmark), WatchEvent::Bookmark(mark) if mark.metadata.resource_version == "9")
        );
        let error = r#"{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"reason":"Expired","message":"too old"}}"#;
        assert!(matches!(read(error), WatchEvent::Error(status) if status.code == 410));
    }

    #[test]
    fn the_text_is_read_and_not_a_copy_of_the_object() {
        /// Records the text that it was parsed from.
        #[derive(Clone, Debug)]
        struct Probe(String);
        impl<'de> Deserialize<'de> for Probe {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Box::<RawValue>::deserialize(from).map(|raw| Self(raw.get().to_owned()))
            }
        }
        // A copy would have lost the white space.
        let read: Vec<Guarded<Probe>> = serde_json::from_str("[ { \"a\" :  1 } ]").unwrap();
        assert_eq!(read[0].0.as_ref().unwrap().0, "{ \"a\" :  1 }");
    }

    #[test]
    fn every_sort_of_kind_loses_its_managed_fields_and_nothing_else() {
        fn check<K: Resource + DeserializeOwned + serde::Serialize + fmt::Debug>(object: &Value) {
            let mut expected: K = serde_json::from_value(object.clone()).unwrap();
            assert!(expected.meta_mut().managed_fields.take().is_some());
            let read: Guarded<K> = serde_json::from_str(&object.to_string()).unwrap();
            assert_eq!(
                serde_json::to_value(read.0.unwrap()).unwrap(),
                serde_json::to_value(expected).unwrap()
            );
        }
        let object = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "a", "managedFields": fields(), "labels": {"a": "b"}},
            "spec": {"hubAcceptsClient": true}, "revision": 3, "data": {"metadata": {"managedFields": []}},
        });
        check::<DynamicObject>(&object);
        check::<ManagedCluster>(&object);
        check::<ControllerRevision>(&object);
    }

    #[test]
    fn of_managed_fields_only_a_mark_is_left_that_ocm_alone_has_written_the_object() {
        let mark = Some("addon");
        for (writers, left) in [
            (json!([{"manager": "addon"}]), mark),
            (json!([{"manager": "addon", "fieldsV1": {"f:spec": {}}}, {"manager": "aviary"}]), mark),
            (json!([{"manager": "kubectl", "subresource": "status"}, {"manager": "addon"}]), mark),
            (json!([{"manager": "addon"}, {"manager": "kubectl-edit", "fieldsV1": {}}]), None),
            (json!([{"manager": "addon", "subresource": "status"}, {"manager": "kubectl"}]), None),
            (json!([{"manager": "addon", "subresource": "status"}]), None),
            (json!([{"manager": "aviary"}]), None),
            (json!([{"manager": "addon"}, {"operation": "Update"}]), None),
            (json!([{"manager": "kubectl", "fieldsV1": {"f:addon": "addon"}}]), None),
            (json!([{"manager": "addon"}, 7]), None),
            (json!({"manager": "addon"}), None),
        ] {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": writers}});
            let read: Guarded<DynamicObject> = serde_json::from_str(&object.to_string()).unwrap();
            let fields = read.0.unwrap().metadata.managed_fields.unwrap_or_default();
            let managers: Vec<Option<&str>> = fields.iter().map(|one| one.manager.as_deref()).collect();
            assert_eq!(managers, left.map(Some).into_iter().collect::<Vec<_>>(), "{writers}");
        }
    }

    #[test]
    fn managed_fields_are_found_in_the_metadata_and_nowhere_else() {
        let all = r#"{"a":{"managedFields":1},"metadata": {"x":{"managedFields":2},"managedFields" : [ "]}" ] ,"n":"m"}}"#;
        let cut = r#"{"a":{"managedFields":1},"metadata": {"x":{"managedFields":2},"managedFields" : null ,"n":"m"}}"#;
        assert_eq!(without_managed_fields(all), cut);
        for none in [
            r#"{"managedFields":[1],"metadata":{"name":"a"}}"#,
            r#"{"metadata":{"name":"managedFields","note":"\"managedFields\":[]"}}"#,
            r#"{"metadata":"managedFields"}"#,
            r#"["metadata","managedFields"]"#,
            r#"{"metadata":{"managedFields":[1]}"#,
        ] {
            assert_eq!(without_managed_fields(none), none);
        }
    }

    #[test]
    fn an_object_that_nests_deeper_than_can_be_read_stops_no_other() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let object = format!(
            r#"{{"metadata":{{"name":"deep"}},"spec":{{"agentSpec":{{"workload":{{"manifests":[{deep}]}}}}}}}}"#
        );
        let text = format!(r#"{{"metadata":{{}},"items":[{object},{}]}}"#, template());
        let page: ObjectList<Guarded<AddOnTemplate>> = serde_json::from_str(&text).unwrap();
        assert_eq!(page.items[0].meta().name.as_deref(), Some("deep"));
        assert_eq!(page.items[0].0.as_ref().unwrap_err().error, "recursion limit exceeded");
        is_good(&page.items[1]);
    }

    #[test]
    fn a_key_that_the_parser_keeps_for_itself_hurts_only_the_object_that_has_it() {
        let hostile = json!({"metadata": {"name": "odd"}, "spec": {TEXT: "not a text of JSON"}});
        let text = format!(r#"{{"metadata":{{}},"items":[{hostile},{}]}}"#, template());
        let page: ObjectList<Guarded<DynamicObject>> = serde_json::from_str(&text).unwrap();
        assert_eq!(page.items[0].meta().name.as_deref(), Some("odd"));
        page.items[0].0.as_ref().unwrap_err();
        page.items[1].0.as_ref().unwrap();
    }

    #[test]
    fn what_has_no_metadata_at_all_is_no_object() {
        for text in ["1", "\"text\"", r#"{"metadata":"x","spec":1}"#] {
            assert!(serde_json::from_str::<Guarded<AddOnTemplate>>(text).is_err(), "{text}");
        }
        let unnamed: Guarded<AddOnTemplate> = serde_json::from_str(r#"{"spec":1}"#).unwrap();
        unnamed.0.unwrap_err();
        let cut_off: Result<Guarded<AddOnTemplate>, _> = serde_json::from_str(r#"{"metadata":{"name":"a""#);
        assert!(cut_off.unwrap_err().is_eof(), "kube waits for the rest of it");
    }
}
