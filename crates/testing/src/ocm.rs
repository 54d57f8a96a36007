//! Custom resource definitions in the shape of those of an Open Cluster Management hub, and a hub
//! that has them.
//!
//! Built from a table of facts (`ocm/fields.txt`), so that they can be compared with OCM's line by
//! line. OCM's own definitions have descriptions; these do not.

use serde_json::{Map, Value, json};

const FIELDS: &str = include_str!("ocm/fields.txt");

/// The definitions of the kinds that an OCM hub has.
///
/// ClusterManagementAddOn and ManagedClusterAddOn differ between v1alpha1 and v1beta1, so they need
/// a `conversion` (the field `spec.conversion`). Without one, they are served as v1alpha1 only.
pub fn crds(conversion: Option<&Value>) -> Vec<Value> {
    let mut crds: Vec<Value> = Vec::new();
    for block in FIELDS.split("\n## ").skip(1) {
        let (head, fields) = block.split_once('\n').unwrap();
        let head = VersionHeading::parse(head);
        if head.is_converted && conversion.is_none() && !head.is_storage {
            continue;
        }
        let version = head.version(fields);
        match crds.last_mut().filter(|crd| crd["metadata"]["name"] == head.name) {
            Some(crd) => crd["spec"]["versions"].as_array_mut().unwrap().push(version),
            None => crds.push(head.crd(&version, conversion)),
        }
    }
    crds
}

/// The heading of one version of one kind.
struct VersionHeading<'t> {
    name: &'t str,
    version: &'t str,
    kind: &'t str,
    scope: &'t str,
    short: Vec<&'t str>,
    is_storage: bool,
    has_status: bool,
    is_converted: bool,
}

impl<'t> VersionHeading<'t> {
    fn parse(line: &'t str) -> Self {
        let mut words = line.split_whitespace();
        let (name, version) = (words.next().unwrap(), words.next().unwrap());
        let values: Vec<(&str, &str)> = words.map(|word| word.split_once('=').unwrap()).collect();
        let value = |key: &str| values.iter().find(|(name, _)| *name == key).unwrap().1;
        Self {
            name,
            version,
            kind: value("kind"),
            scope: value("scope"),
            short: value("short").split(',').filter(|name| !name.is_empty()).collect(),
            is_storage: value("storage") == "True",
            has_status: value("status-subresource") == "True",
            is_converted: value("conversion") == "Webhook",
        }
    }

    fn crd(&self, version: &Value, conversion: Option<&Value>) -> Value {
        let (plural, group) = self.name.split_once('.').unwrap();
        let none = json!({"strategy": "None"});
        let conversion = conversion.filter(|_| self.is_converted).unwrap_or(&none);
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": group, "scope": self.scope, "versions": [version], "conversion": conversion,
                "names": {
                    "plural": plural, "singular": self.kind.to_lowercase(), "kind": self.kind,
                    "listKind": format!("{}List", self.kind), "shortNames": self.short,
                },
            },
        })
    }

    fn version(&self, fields: &str) -> Value {
        let mut schema = json!({"type": "object", "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
        }});
        for line in fields.lines().filter(|line| !line.trim().is_empty()) {
            let (path, rest) = line.trim().split_once("  ").unwrap();
            let (kind, facts) = rest.split_once("  ").unwrap_or((rest, ""));
            add_field(&mut schema, path, kind.trim(), facts);
        }
        let mut version = json!({
            "name": self.version, "served": true, "storage": self.is_storage,
            "schema": {"openAPIV3Schema": schema}, "additionalPrinterColumns": columns(self.kind),
        });
        if self.has_status {
            version["subresources"] = json!({"status": {}});
        }
        version
    }
}

fn columns(kind: &str) -> Value {
    match kind {
        "ManagedClusterAddOn" => ["Available", "Degraded", "Progressing"]
            .map(|kind| {
                let path = format!(".status.conditions[?(@.type==\"{kind}\")].status");
                json!({"name": kind, "type": "string", "jsonPath": path})
            })
            .as_slice()
            .into(),
        "ClusterManagementAddOn" => json!([
            {"name": "DISPLAY NAME", "type": "string", "jsonPath": ".spec.addOnMeta.displayName"},
        ]),
        _ => json!([]),
    }
}

/// Adds a field to the schema of the object. Its parents have been added before.
fn add_field(schema: &mut Value, path: &str, kind: &str, facts: &str) {
    let mut field = match kind {
        "int-or-string" => {
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]})
        }
        kind => json!({ "type": kind }),
    };
    let is_required = facts_of(facts).fold(false, |required, fact| {
        add_fact(&mut field, kind, fact);
        required || fact == "required"
    });
    let (parents, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut node = schema;
    for parent in parents.split('.').filter(|part| !part.is_empty()) {
        node = step(&mut node["properties"], parent);
    }
    let last = name.trim_end_matches("[]").trim_end_matches("{}");
    match name {
        item if item.ends_with("[]") => node["properties"][last]["items"] = field,
        value if value.ends_with("{}") => node["properties"][last]["additionalProperties"] = field,
        _ => node["properties"][name] = field,
    }
    if is_required {
        let list = node.as_object_mut().unwrap().entry("required").or_insert_with(|| json!([]));
        list.as_array_mut().unwrap().push(name.into());
    }
}

fn step<'s>(properties: &'s mut Value, part: &str) -> &'s mut Value {
    match part.strip_suffix("[]") {
        Some(list) => &mut properties[list]["items"],
        None => &mut properties[part],
    }
}

/// The facts of a line. A pattern or a rule may contain the separator, but not followed by a space.
fn facts_of(facts: &str) -> impl Iterator<Item = &str> {
    facts.split("; ").map(str::trim).filter(|fact| !fact.is_empty())
}

fn add_fact(field: &mut Value, kind: &str, fact: &str) {
    let field: &mut Map<String, Value> = field.as_object_mut().unwrap();
    if let Some(rule) = fact.strip_prefix("rule: ") {
        field.insert("x-kubernetes-validations".into(), json!([{ "rule": rule }]));
        return;
    }
    let (key, value) = fact.split_once('=').unwrap_or((fact, ""));
    let (key, value) = match key {
        "required" => return,
        "nullable" => ("nullable", json!(true)),
        "preserve-unknown" => ("x-kubernetes-preserve-unknown-fields", json!(true)),
        "embedded" => ("x-kubernetes-embedded-resource", json!(true)),
        "format" | "pattern" => (key, json!(value)),
        "enum" => (key, value.split(',').collect()),
        "default" | "minLength" | "maxLength" | "maxItems" | "minimum" | "maximum" => {
            (key, serde_json::from_str(value).unwrap())
        }
        "list" => {
            if let Some(keys) = value.strip_prefix("map(").and_then(|keys| keys.strip_suffix(')')) {
                field.insert("x-kubernetes-list-map-keys".into(), keys.split(',').collect());
                ("x-kubernetes-list-type", json!("map"))
            } else {
                ("x-kubernetes-list-type", json!(value))
            }
        }
        other => panic!("{other:?} of a field of type {kind} is not known"),
    };
    field.insert(key.into(), value);
}
