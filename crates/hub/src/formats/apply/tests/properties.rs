//! What holds for all objects.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::element::Element;
use super::super::fields::fields_of;
use super::super::merge::merge;
use super::super::set::Set;
use super::super::types::ValueType;
use super::{SCHEMA, World};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        (-1.5_f64..1.5).prop_map(Value::from),
        "[abc]{0,2}".prop_map(Value::from),
    ]
}

const NAMES: [&str; 18] = [
    "text",
    "set",
    "list",
    "pairs",
    "plain",
    "atom",
    "map",
    "maps",
    "struct",
    "free",
    "name",
    "value",
    "a",
    "b",
    "metadata",
    "finalizers",
    "ownerReferences",
    "uid",
];

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => proptest::sample::select(&NAMES[..]).prop_map(str::to_owned), 1 => "[a-z.:]{0,3}"]
}

/// Anything at all.
fn anything() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::Array),
            btree_map(name(), inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    btree_map(name(), anything(), 0..8).prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// An object that fits the schema of the stories.
fn fitting() -> impl Strategy<Value = Value> {
    let word = || "[abc]";
    let text = || word().prop_map(Value::from);
    let number = || (0_i64..3).prop_map(Value::from);
    let set = btree_map(word(), Just(()), 0..4)
        .prop_map(|set| json!(set.into_keys().collect::<Vec<_>>()))
        .prop_shuffle_list();
    let list = btree_map(word(), proptest::option::of(0_i64..3), 0..4).prop_map(|items| {
        let item = |(name, value): (String, Option<i64>)| match value {
            Some(value) => json!({"name": name, "value": value}),
            None => json!({"name": name}),
        };
        Value::Array(items.into_iter().map(item).collect())
    });
    let map = || btree_map(word(), text(), 0..3).prop_map(|map| json!(map));
    let plain = vec(word(), 0..3).prop_map(|list| json!(list));
    let inner = btree_map(proptest::sample::select(vec!["name", "text"]), text(), 0..2);
    let inner = inner.prop_map(|mut map| {
        map.remove("text");
        json!(map)
    });
    let field = prop_oneof![
        text().prop_map(|value| ("text", value)),
        number().prop_map(|value| ("number", value)),
        set.prop_map(|value| ("set", value)),
        list.prop_map(|value| ("list", value)),
        plain.prop_map(|value| ("plain", value)),
        map().prop_map(|value| ("map", value)),
        btree_map(word(), map(), 0..3).prop_map(|value| ("maps", json!(value))),
        inner.prop_map(|value| ("struct", value)),
        btree_map(word(), prop_oneof![number(), map()], 0..3).prop_map(|value| ("free", json!(value))),
    ];
    vec(field, 0..6).prop_map(|fields| {
        Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    })
}

trait ShuffleList: Strategy<Value = Value> + Sized {
    /// In any order.
    fn prop_shuffle_list(self) -> impl Strategy<Value = Value> {
        self.prop_map(|list| list.as_array().cloned().unwrap_or_default())
            .prop_shuffle()
            .prop_map(Value::Array)
    }
}

impl<S: Strategy<Value = Value>> ShuffleList for S {}

fn element() -> impl Strategy<Value = Element> {
    prop_oneof![
        ".{0,4}".prop_map(Element::Field),
        btree_map("[a-c\"]{1,2}", scalar(), 1..3).prop_map(|keys| Element::key(keys.into_iter().collect())),
        scalar().prop_map(Element::Item),
        any::<i64>().prop_map(Element::Index),
    ]
}

proptest! {
    #[test]
    fn an_element_is_read_as_it_is_written(element in element()) {
        prop_assert_eq!(Element::parse(&element.text()).unwrap(), Some(element));
    }

    #[test]
    fn a_set_is_read_as_it_is_written(object in object()) {
        let set = fields_of(ValueType::resource(&SCHEMA), &object);
        prop_assert_eq!(Set::from_fields(&set.to_fields()).unwrap(), set);
    }

    #[test]
    fn no_story_panics(steps in vec((0..3_usize, 0..3_u8, object()), 0..6)) {
        let mut world = World::new(&[("v1", &SCHEMA)]);
        for (who, how, object) in steps {
            let name = ["one", "two", "three"][who];
            let _ = super::super::check(ValueType::resource(&SCHEMA), &object);
            match how {
                0 => world.update(name, object),
                how => { let _ = world.apply(name, &object, how == 2); }
            }
            let _ = world.show();
        }
    }

    #[test]
    fn what_is_applied_twice_is_applied_once(before in fitting(), other in fitting(), first in fitting(), config in fitting()) {
        let mut world = World::new(&[("v1", &SCHEMA)]);
        world.update("ctl", before);
        world.apply("two", &other, true).unwrap();
        world.apply("one", &first, true).unwrap();
        world.apply("one", &config, true).unwrap();
        let (object, managers) = (world.object.clone(), world.managers.to_value());
        world.apply("one", &config, false).unwrap();
        prop_assert_eq!(&world.object, &object);
        prop_assert_eq!(world.managers.to_value(), managers);
    }

    #[test]
    fn a_forced_apply_has_its_way(before in fitting(), config in fitting()) {
        let mut world = World::new(&[("v1", &SCHEMA)]);
        world.update("ctl", before);
        world.apply("one", &config, true).unwrap();
        let ty = ValueType::resource(&SCHEMA);
        prop_assert_eq!(merge(ty, &world.object, &config), world.object.clone());
        world.apply("one", &json!({}), false).unwrap();
        prop_assert!(world.managers.0.iter().all(|entry| entry.manager.name != "one"));
    }

    #[test]
    fn who_applies_alone_leaves_nothing_behind(first in fitting(), second in fitting()) {
        let mut world = World::new(&[("v1", &SCHEMA)]);
        world.apply("one", &first, false).unwrap();
        world.apply("one", &second, false).unwrap();
        world.apply("one", &json!({}), false).unwrap();
        let left = world.object.as_object().cloned().unwrap_or_else(Map::new);
        // An empty list is nobody's.
        prop_assert!(left.values().all(|value| value == &json!([])), "{:?}", left);
    }
}
