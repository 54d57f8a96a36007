//! Compiles the JSON of a rule.
//!
//! Owns every reason to reject a rule when its schema is parsed. Must not evaluate anything.

use kube_cel::cel::Program;
use serde_json::{Value, json};

use super::names::Purpose;
use super::{LIBRARY, Rule, names};
use crate::cause::{Cause, CauseReason, Path};
use crate::structural::Schema;

/// The position of a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RulePosition<'p> {
    pub(crate) is_root: bool,
    /// The path of the list or map above that makes `oldSelf` unavailable.
    pub(crate) uncorrelatable: Option<&'p str>,
}

/// Compiles the rules of a node whose children are already parsed.
pub(crate) fn compile(
    rules: &[Value],
    schema: &Schema,
    scope: RulePosition<'_>,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) -> Vec<Rule> {
    let compile = |(index, rule)| compile_one(rule, schema, scope, &path.index(index), causes);
    rules.iter().enumerate().filter_map(compile).collect()
}

fn compile_one(
    rule: &Value,
    schema: &Schema,
    scope: RulePosition<'_>,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) -> Option<Rule> {
    let text = |keyword: &str| rule.get(keyword).and_then(Value::as_str);
    let Some(source) = text("rule").filter(|source| !source.trim().is_empty()) else {
        causes.push(Cause::required(&path.field("rule"), "rule is not specified"));
        return None;
    };
    let before = causes.len();
    let message = text("message").map(str::trim).filter(|message| !message.is_empty());
    let message_expression = text("messageExpression");
    if message.is_some_and(|message| message.contains('\n')) {
        causes.push(Cause::invalid(
            &path.field("message"),
            &json!(message),
            "message must not contain line breaks",
        ));
    }
    if message.is_none() && message_expression.is_none() && source.trim().contains('\n') {
        let detail = "message must be specified if rule contains line breaks";
        causes.push(Cause::required(&path.field("message"), detail));
    }
    let optional_old_self = rule.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or(false);
    let mut program = |keyword: &str, source: &str| {
        let purpose = if keyword == "rule" { Purpose::Condition } else { Purpose::Message };
        let compiled = compile_program(source, schema, scope.is_root, optional_old_self, purpose);
        compiled
            .map_err(|error| {
                let detail = format!("compilation failed: {error}");
                causes.push(Cause::invalid(&path.field(keyword), &json!(source), &detail));
            })
            .ok()
    };
    let compiled = program("rule", source);
    let message_program = message_expression.and_then(|expression| program("messageExpression", expression));

    let is_transition = compiled.as_ref().is_some_and(|program| program.references().has_variable("oldSelf"));
    if let Some(above) = scope.uncorrelatable.filter(|_| is_transition) {
        let detail =
            format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {above}");
        causes.push(Cause::invalid(&path.field("rule"), &json!(source), &detail));
    }
    if optional_old_self && !is_transition && compiled.is_some() {
        let detail = "may not be set if oldSelf is not used in rule";
        causes.push(Cause::invalid(&path.field("optionalOldSelf"), &json!(true), detail));
    }
    let reason = reason(text("reason"), path, causes);
    let field_path = field_path(text("fieldPath"), schema, path, causes);
    if causes.len() > before {
        return None;
    }
    Some(Rule {
        source: source.trim().to_owned(),
        program: compiled?,
        message: message.map(str::to_owned),
        message_program,
        reason: reason?,
        field_path: field_path?,
        optional_old_self,
        is_transition,
    })
}

fn compile_program(
    source: &str,
    schema: &Schema,
    is_root: bool,
    optional_old_self: bool,
    purpose: Purpose,
) -> Result<Program, String> {
    let program = Program::compile(source).map_err(|error| error.to_string().trim().to_owned())?;
    names::check(program.expression(), schema, is_root, optional_old_self, purpose, &LIBRARY)?;
    Ok(program)
}

fn reason(name: Option<&str>, path: &Path<'_>, causes: &mut Vec<Cause>) -> Option<CauseReason> {
    const ALLOWED: [CauseReason; 4] =
        [CauseReason::Required, CauseReason::Forbidden, CauseReason::Invalid, CauseReason::Duplicate];
    let Some(name) = name else { return Some(CauseReason::Invalid) };
    let found = ALLOWED.into_iter().find(|reason| reason.as_str() == name);
    if found.is_none() {
        let allowed = ALLOWED.map(|reason| json!(reason.as_str()));
        causes.push(Cause::not_supported(&path.field("reason"), &json!(name), allowed.iter()));
    }
    found
}

/// `.a.b` or `.a['b']`, each name a field the schema has.
fn field_path(
    text: Option<&str>,
    schema: &Schema,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) -> Option<Vec<String>> {
    let Some(text) = text else { return Some(Vec::new()) };
    let mut names = Vec::new();
    let (mut rest, mut node) = (text, Some(schema));
    while !rest.is_empty() {
        let split = if let Some(quoted) = rest.strip_prefix("['") {
            quoted.split_once("']")
        } else {
            rest.strip_prefix('.').map(|rest| rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())))
        };
        let Some((name, after)) = split.filter(|(name, _)| !name.is_empty()) else {
            node = None;
            break;
        };
        node = node.and_then(|node| node.child(name));
        names.push(name.to_owned());
        rest = after;
    }
    if node.is_none() || names.is_empty() {
        let detail = "fieldPath must be a valid path to a field of the schema";
        causes.push(Cause::invalid(&path.field("fieldPath"), &json!(text), detail));
        return None;
    }
    Some(names)
}
