//! Stories of managers and what becomes of their object: text in, text out.

mod conflicts;
mod lists;
mod properties;
mod sets;
mod structs;
mod versions;

use std::sync::LazyLock;

use aviary_schema::Schema;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::managers::{FieldManager, Managers, Operation};
use super::types::ValueType;
use super::updater::{Conflicts, Versions, apply, before_first_apply, update};

/// What all stories are about.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let item = json!({"type": "object", "properties": {"name": {"type": "string", "default": ""}, "value": {"type": "integer"}}});
    let pair = json!({"type": "object", "required": ["a"], "properties": {"a": text, "b": {"type": "integer", "default": 1}, "v": text}});
    let inner = json!({"type": "object", "properties": {"name": text, "value": {"type": "integer"}}});
    schema(&json!({
        "text": text, "number": {"type": "integer"}, "flag": {"type": "boolean"},
        "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "list": {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        "pairs": {"type": "array", "items": pair, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]},
        "plain": {"type": "array", "items": text},
        "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}},
        "map": {"type": "object", "additionalProperties": text},
        "maps": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": text}},
        "struct": {"type": "object", "properties": {"name": text, "value": {"type": "integer"}, "inner": inner}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "either": {"x-kubernetes-int-or-string": true},
    }))
});

fn schema(properties: &Value) -> Schema {
    Schema::parse(&json!({"type": "object", "properties": properties})).unwrap()
}

/// An object and its managers.
struct World<'s> {
    versions: Versions<'s>,
    object: Value,
    managers: Managers,
    /// Seconds since the beginning.
    now: i64,
}

impl<'s> World<'s> {
    fn new(schemas: &[(&'s str, &'s Schema)]) -> Self {
        let types = schemas.iter().map(|(version, schema)| (*version, ValueType::resource(schema))).collect();
        Self {
            versions: Versions { current: schemas[0].0, types },
            object: json!({}),
            managers: Managers::default(),
            now: 0,
        }
    }

    fn manager(&self, name: &str, operation: Operation) -> FieldManager {
        let api_version = self.versions.current.to_owned();
        FieldManager { name: name.into(), operation, api_version, subresource: String::new() }
    }

    fn apply(&mut self, name: &str, config: &Value, force: bool) -> Result<(), Conflicts> {
        self.now += 1;
        let now = Timestamp::from_second(self.now).unwrap();
        let manager = self.manager(name, Operation::Apply);
        if self.managers.is_empty() {
            self.managers = before_first_apply(&self.versions, &self.object, "", now);
        }
        let managers = self.managers.clone();
        let applied = apply(&self.versions, &self.object, config, managers, &manager, force, now)?;
        self.managers = applied.managers;
        self.object = applied.object.unwrap_or_else(|| self.object.take());
        Ok(())
    }

    fn update(&mut self, name: &str, new: Value) {
        self.now += 1;
        let now = Timestamp::from_second(self.now).unwrap();
        let manager = self.manager(name, Operation::Update);
        let managers = std::mem::take(&mut self.managers);
        self.managers = update(&self.versions, &self.object, &new, managers, &manager, now);
        self.object = new;
    }

    /// The object, and beside each manager its fields.
    fn show(&self) -> String {
        let mut lines = vec![self.object.to_string()];
        let mut entries: Vec<String> = self
            .managers
            .0
            .iter()
            .map(|entry| {
                let version = match entry.manager.api_version.as_str() {
                    "v1" => String::new(),
                    other => format!("@{other}"),
                };
                let verb = match entry.manager.operation {
                    Operation::Apply => "applied",
                    Operation::Update => "set",
                };
                format!("{}{version} {verb} {}", entry.manager.name, entry.fields.paths().join(" "))
            })
            .collect();
        entries.sort();
        lines.extend(entries);
        lines.join("\n") + "\n"
    }
}

/// Plays a story, a step a line: `NAME[@VERSION] applies|forces|updates YAML`. Shown is how it
/// ends, and all conflicts.
fn check(story: &str, expected: &expect_test::Expect) {
    check_with(&[("v1", &SCHEMA)], story, expected);
}

fn check_with(schemas: &[(&str, &Schema)], story: &str, expected: &expect_test::Expect) {
    let mut world = World::new(schemas);
    let mut told = String::new();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.splitn(3, ' ');
        let (who, verb) = (words.next().unwrap(), words.next().unwrap());
        let object: Value = serde_saphyr::from_str(words.next().unwrap()).unwrap();
        let (name, version) = who.split_once('@').unwrap_or((who, schemas[0].0));
        let (version, _) = schemas.iter().find(|(known, _)| *known == version).unwrap();
        world.versions.current = version;
        match verb {
            "updates" => world.update(name, object),
            verb => {
                let ty = world.versions.types[version];
                assert_eq!(super::check(ty, &object), Vec::<String>::new(), "{line}");
                if let Err(Conflicts(conflicts)) = world.apply(name, &object, verb == "forces") {
                    for (manager, fields) in conflicts {
                        told += &format!("{name} conflicts with {manager}: {}\n", fields.paths().join(" "));
                    }
                }
            }
        }
    }
    expected.assert_eq(&(told + &world.show()));
}
