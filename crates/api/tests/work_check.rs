//! A spec that OCM's API server or webhook would refuse or prune is found before it is written.

use aviary_api::work::check::{MANIFESTS_LIMIT, MAX_FAULTS};
use aviary_api::work::{Fault, check_spec, check_template};
use serde_json::{Value, json};

use crate::manifest_work::{at, facts, whole};

/// The facts about the spec, without what is inside of manifests.
fn spec_facts() -> impl Iterator<Item = (&'static str, &'static str, Vec<&'static str>)> {
    facts().filter_map(|(path, type_, rest)| Some((path.strip_prefix("spec.")?, type_, rest)))
}

fn spec() -> Value {
    whole()["spec"].take()
}

fn faults(spec: &Value) -> Vec<Fault> {
    check_spec(spec).err().unwrap_or_default()
}

fn without_indices(field: &str) -> String {
    let parts = field.split('[').map(|part| part.split_once(']').map_or(part, |(_, after)| after));
    let mut parts: Vec<String> = parts.map(str::to_owned).collect();
    for part in parts.iter_mut().skip(1) {
        part.insert_str(0, "[]");
    }
    parts.concat()
}

fn faulty_fields(spec: &Value) -> Vec<String> {
    faults(spec).iter().map(|fault| without_indices(&fault.field)).collect()
}

#[track_caller]
fn assert_says(spec: &Value, expected: &[&str]) {
    let said: Vec<String> = faults(spec).iter().map(Fault::to_string).collect();
    assert_eq!(said, expected);
}

#[test]
fn what_has_every_field_is_right() {
    assert_says(&spec(), &[]);
    assert_eq!(check_template(&spec()), Ok(()));
}

#[test]
fn every_unknown_field_is_found() {
    for (path, ..) in
        spec_facts().filter(|(path, type_, _)| *type_ == "object" && !path.ends_with("manifests[]"))
    {
        let mut changed = spec();
        at(&mut changed, path, &mut |object| object["surprise"] = json!(1));
        assert!(faulty_fields(&changed).contains(&format!("{path}.surprise")), "{path}");
    }
    let mut changed = spec();
    changed["surprise"] = json!(1);
    assert_eq!(faulty_fields(&changed), ["surprise"]);
}

#[test]
fn every_wrong_type_is_found() {
    for (path, type_, _) in spec_facts() {
        for (name, value) in [
            ("null", json!(null)),
            ("boolean", json!(true)),
            ("integer", json!(3)),
            ("number", json!(1.5)),
            ("text", json!("x")),
            ("array", json!([])),
            ("object", json!({})),
        ] {
            if name == type_ || (name == "text" && type_ == "string") {
                continue;
            }
            let mut changed = spec();
            at(&mut changed, path, &mut |old| *old = value.clone());
            assert!(faulty_fields(&changed).contains(&path.to_owned()), "{path}: {value}");
        }
    }
}

#[test]
fn every_missing_field_is_found_unless_it_has_a_default() {
    for (path, _, rest) in spec_facts().filter(|(.., rest)| rest.contains(&"required")) {
        let (parent, name) = path.rsplit_once('.').unwrap();
        let mut changed = spec();
        at(&mut changed, parent, &mut |object| {
            object.as_object_mut().unwrap().remove(name);
        });
        let defaulted = rest.iter().any(|one| one.starts_with("default="));
        assert_eq!(faulty_fields(&changed).contains(&path.to_owned()), !defaulted, "{path}");
    }
}

#[test]
fn every_value_of_an_enum_is_right_and_no_other() {
    for (path, _, rest) in spec_facts() {
        let Some(values) = rest.iter().find_map(|one| one.strip_prefix("enum=")) else { continue };
        for (value, right) in
            values.split(',').map(|value| (value, true)).chain([("Surprise", false), ("", false)])
        {
            let mut changed = spec();
            at(&mut changed, path, &mut |old| *old = json!(value));
            assert_eq!(!faulty_fields(&changed).contains(&path.to_owned()), right, "{path}: {value}");
        }
    }
}

#[test]
fn every_pattern_is_checked() {
    for (path, _, _) in spec_facts().filter(|(.., rest)| rest.iter().any(|one| one.starts_with("pattern="))) {
        for bad in ["", "-a", "A b", "a..b", &"a".repeat(300)] {
            let mut changed = spec();
            at(&mut changed, path, &mut |old| *old = json!(bad));
            assert!(faulty_fields(&changed).contains(&path.to_owned()), "{path}: {bad}");
        }
    }
}

#[test]
fn every_key_is_unique() {
    for (path, ..) in spec_facts().filter(|(.., rest)| rest.iter().any(|one| one.starts_with("list=map"))) {
        let mut changed = spec();
        at(&mut changed, path, &mut |list| {
            let list = list.as_array_mut().unwrap();
            list.push(list[0].clone());
        });
        assert!(faulty_fields(&changed).contains(&format!("{path}[]")), "{path}");
    }
}

/// This spelling passed our own schema, and stopped every agent that received it.
#[test]
fn the_former_spelling_of_expressions_is_refused_with_the_right_one() {
    let mut changed = spec();
    let rule = &mut changed["manifestConfigs"][0]["conditionRules"][0];
    rule["celExpressions"] = json!([{"expression": "object.status.ready"}]);
    assert_says(
        &changed,
        &["spec.manifestConfigs[0].conditionRules[0].celExpressions[0]: must be a string, not an object: \
           OCM's celExpressions is a list of strings, so write \"object.status.ready\""],
    );
    let rule = &mut changed["manifestConfigs"][0]["conditionRules"][0];
    rule["celExpression"] = rule["celExpressions"].take();
    rule.as_object_mut().unwrap().remove("celExpressions");
    rule["type"] = json!("WellKnownCompletions");
    assert_says(
        &changed,
        &[
            "spec.manifestConfigs[0].conditionRules[0].celExpression: OCM has no such field; did you mean celExpressions?",
            "spec.manifestConfigs[0].conditionRules[0].type: must be one of WellKnownConditions, CEL, not \"WellKnownCompletions\"",
        ],
    );
}

#[test]
fn a_cel_rule_names_its_condition() {
    let mut changed = spec();
    changed["manifestConfigs"][0]["conditionRules"][0]["condition"] = json!("");
    assert_says(
        &changed,
        &["spec.manifestConfigs[0].conditionRules[0]: a rule of type CEL must name its condition"],
    );
    changed["manifestConfigs"][0]["conditionRules"][0]["type"] = json!("WellKnownConditions");
    assert_says(&changed, &[]);
}

#[test]
fn manifests_are_what_the_webhook_accepts() {
    for none in [json!({}), json!({"workload": {}}), json!({"workload": {"manifests": []}})] {
        assert_says(&none, &["spec.workload.manifests: must not be empty"]);
        assert_eq!(check_template(&none), Ok(()), "a template is checked elsewhere");
    }
    let work = |manifest: &Value| json!({"workload": {"manifests": [manifest]}});
    assert_says(
        &work(&json!({"kind": "", "metadata": {"generateName": "a-"}})),
        &[
            "spec.workload.manifests[0].apiVersion: is required, as a string",
            "spec.workload.manifests[0].kind: is required, as a string",
            "spec.workload.manifests[0].metadata.name: is required, as a string",
            "spec.workload.manifests[0].metadata.generateName: must not be set: a work needs the whole name",
        ],
    );
}

#[test]
fn manifests_fit_into_a_work() {
    let sized = |text: String| {
        let manifest =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": text}});
        (manifest.to_string().len(), json!({"workload": {"manifests": [manifest]}}))
    };
    let (frame, _) = sized(String::new());
    let (size, fits) = sized("x".repeat(MANIFESTS_LIMIT - frame));
    assert_eq!(size, MANIFESTS_LIMIT);
    assert_says(&fits, &[]);
    let message = "spec.workload.manifests: are 512001 bytes; OCM accepts at most 512000 in one work";
    assert_says(&sized("x".repeat(MANIFESTS_LIMIT - frame + 1)).1, &[message]);
    assert_eq!(faults(&sized("<".repeat(MANIFESTS_LIMIT / 5)).1).len(), 1, "the webhook sees it escaped");
}

#[test]
fn reports_are_bounded() {
    let long = "ü".repeat(10_000);
    let mut config =
        json!({"resourceIdentifier": {"resource": "a", "name": "a"}, "feedbackScrapeType": long});
    config[&long] = json!(1);
    let mut changed = spec();
    changed["manifestConfigs"] = Value::Array(vec![config; 1000]);
    let faults = faults(&changed);
    assert_eq!(faults.len(), MAX_FAULTS);
    assert!(faults.iter().all(|fault| fault.to_string().chars().count() < 500));
}

#[test]
fn what_is_no_spec_is_refused() {
    for none in [json!(null), json!([]), json!("a")] {
        assert!(check_spec(&none).is_err());
        assert!(check_template(&none).is_err());
    }
}
