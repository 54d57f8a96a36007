//! Properties of arbitrary objects.

use aviary_schema::{Admission, default, prune, validate};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{admission, yaml};

/// A schema with every construct, over field names the generator uses.
fn everything() -> Admission {
    admission(&yaml(
        "
type: object
properties:
  a: {type: string, pattern: '^[0-9]', format: date-time, default: '2026-01-01T00:00:00Z'}
  b: {type: integer, minimum: 1, multipleOf: 2, nullable: true, enum: [2, 4, null]}
  c:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [a]
    items:
      type: object
      required: [a]
      properties:
        a: {type: string}
        b: {type: integer, default: 3}
        c: {type: array, x-kubernetes-list-type: set, items: {type: number}}
  d:
    type: object
    additionalProperties: {type: object, default: {a: x}, properties: {a: {type: string, default: z}, d: {x-kubernetes-int-or-string: true}}}
    x-kubernetes-validations: [{rule: 'self.all(k, k.size() < 3)'}]
  e:
    type: object
    x-kubernetes-preserve-unknown-fields: true
    properties: {a: {type: object, properties: {b: {type: boolean, default: true}}}}
    oneOf: [{required: [a]}, {required: [b]}]
  metadata: {type: object}
x-kubernetes-validations:
- rule: '!has(self.b) || self.b == null || self.b > 1'
- rule: '!has(self.a) || self.a != timestamp(\"2026-01-01T00:00:00Z\")'
",
    ))
}

fn any_json() -> impl Strategy<Value = Value> {
    let name = prop_oneof!["[a-f]", Just("metadata".to_owned()), ".{0,4}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5i64..5).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        Just(json!("2026-01-01T00:00:00Z")),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pruning_and_defaulting_twice_is_once(object in any_json()) {
        let admission = everything();
        let mut once = object;
        prune::prune(admission.schema(), &mut once);
        default::apply(admission.schema(), &mut once);
        let mut twice = once.clone();
        prop_assert_eq!(prune::prune(admission.schema(), &mut twice), Vec::<String>::new());
        default::apply(admission.schema(), &mut twice);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn validating_never_panics(new in any_json(), old in prop::option::of(any_json())) {
        let _ = validate(everything().schema(), &new, old.as_ref());
    }

    #[test]
    fn an_unchanged_object_stays_valid(object in any_json()) {
        let admission = everything();
        let old = object.clone();
        let causes = validate(admission.schema(), &object, Some(&old));
        // Only duplicates are reported for an unchanged object.
        prop_assert!(causes.iter().all(|cause| cause.message.starts_with("Duplicate value") || cause.message.contains("list-type map")), "{causes:?}");
    }

    #[test]
    fn parsing_any_json_as_a_schema_never_panics(schema in any_json()) {
        let _ = Admission::new(&schema);
    }
}
