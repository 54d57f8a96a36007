//! `x-kubernetes-validations`: rules are compiled with the schema and evaluated with the object.
//!
//! Owns rules, their messages and their failures. A rule that does not compile is a cause at
//! compile time, and a rule that cannot be evaluated is a cause at run time: a broken rule never
//! passes.

mod compile;
mod names;
mod value;

use std::sync::{Arc, LazyLock};

use kube_cel::KubeCelExt;
use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{Context, ExecutionError, Program, Value as CelValue};
use serde_json::{Value, json};

use crate::cause::{Cause, CauseReason, Path};
use crate::former::Former;
use crate::structural::Schema;
use crate::validate::json_type;

pub(crate) use compile::{RulePosition, compile};

/// The functions rules may call.
static LIBRARY: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

/// Longest message a `messageExpression` may produce, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

/// One compiled rule.
#[derive(Debug)]
pub struct Rule {
    pub source: String,
    program: Program,
    message: Option<String>,
    message_program: Option<Program>,
    reason: CauseReason,
    /// Names below the rule's own node, as `fieldPath` gives them.
    field_path: Vec<String>,
    optional_old_self: bool,
    is_transition: bool,
}

/// Evaluates the rules at and below a node, parents first.
pub(crate) fn evaluate(
    schema: &Schema,
    new: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    if !schema.has_rules || new.is_null() {
        return;
    }
    let old = old.filter(|old| !old.is_null());
    if !schema.rules.is_empty() {
        evaluate_here(schema, new, old, path, causes);
    }
    let former = Former::of(schema, old);
    match new {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(child) = schema.properties.get(name) {
                    evaluate(child, field, former.field(name), &path.field(name), causes);
                } else if let Some(child) = schema.child(name) {
                    evaluate(child, field, former.field(name), &path.key(name), causes);
                }
            }
        }
        Value::Array(items) => {
            let Some(child) = schema.items.as_deref() else { return };
            for (index, item) in items.iter().enumerate() {
                evaluate(child, item, former.item(item), &path.index(index), causes);
            }
        }
        _ => {}
    }
}

fn evaluate_here(
    schema: &Schema,
    new: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    let mut node = LIBRARY.new_inner_scope();
    node.add_variable_from_value("self", value::convert(new, Some(schema)));
    let former = old.map(|old| value::convert(old, Some(schema)));
    if let Some(former) = &former {
        node.add_variable_from_value("oldSelf", former.clone());
    }
    for rule in &schema.rules {
        if rule.optional_old_self {
            let mut node = node.new_inner_scope();
            let former = former.clone().map_or_else(OptionalValue::none, OptionalValue::of);
            node.add_variable_from_value("oldSelf", CelValue::Opaque(Arc::new(former)));
            causes.extend(rule.failure(&node, new, path));
            continue;
        }
        if rule.is_transition && old.is_none() {
            continue;
        }
        // An unchanged value is checked only against transition rules.
        if !rule.is_transition && old == Some(new) {
            continue;
        }
        causes.extend(rule.failure(&node, new, path));
    }
}

impl Rule {
    fn failure(&self, context: &Context<'_>, new: &Value, path: &Path<'_>) -> Option<Cause> {
        let kind = json!(json_type(new));
        let about = self.message.as_deref().unwrap_or(&self.source);
        match self.program.execute(context) {
            Ok(CelValue::Bool(true)) => None,
            Ok(CelValue::Bool(false)) => Some(self.refusal(context, &kind, path)),
            Ok(other) => {
                let detail = format!("rule evaluated to {} instead of bool: {about}", other.type_of());
                Some(Cause::invalid(path, &kind, &detail))
            }
            Err(ExecutionError::NoSuchOverload) => {
                let detail = format!(
                    "'no such overload': call arguments did not match a supported operator, function or macro \
                     signature for rule: {about}"
                );
                Some(Cause::invalid(path, &kind, &detail))
            }
            Err(error) => {
                let error = match error {
                    ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
                    other => other.to_string(),
                };
                Some(Cause::invalid(path, &kind, &format!("{error} evaluating rule: {about}")))
            }
        }
    }

    fn refusal(&self, context: &Context<'_>, kind: &Value, path: &Path<'_>) -> Cause {
        let message = self.message_text(context);
        let mut cause = match self.reason {
            CauseReason::Required => Cause::required(path, &message),
            CauseReason::Forbidden => Cause::forbidden(path, &message),
            CauseReason::Duplicate => Cause::duplicate(path, kind),
            _ => Cause::invalid(path, kind, &message),
        };
        if !self.field_path.is_empty() {
            let base = path.in_body();
            let below = self.field_path.join(".");
            cause.field = if base.is_empty() { below } else { format!("{base}.{below}") };
        }
        cause
    }

    /// The result of the expression, if it is printable; otherwise the fixed message; otherwise the
    /// rule itself.
    fn message_text(&self, context: &Context<'_>) -> String {
        let spoken = self.message_program.as_ref().and_then(|program| match program.execute(context) {
            Ok(CelValue::String(text)) => Some(text.trim().to_owned()),
            _ => None,
        });
        spoken
            .filter(|text| !text.is_empty() && !text.contains('\n') && text.len() <= MAX_MESSAGE)
            .or_else(|| self.message.clone())
            .unwrap_or_else(|| format!("failed rule: {}", self.source))
    }
}
