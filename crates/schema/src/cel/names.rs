//! Checks the names in a rule: variables in scope, existing functions, fields of the schema.
//!
//! The parser alone would accept `self.relicas`, and `!has(self.relicas) || …` would then always
//! pass. Also checks that a rule is a condition, as far as that can be seen; other types are found
//! at evaluation, as errors.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators,
};
use kube_cel::cel::{Context, ExecutionError, IdedExpr, Value as CelValue};

use super::value::escape;
use crate::structural::{Additional, JsonType, Schema};

/// The required type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Condition,
    Message,
}

pub(super) fn check(
    expression: &IdedExpr,
    schema: &Schema,
    is_root: bool,
    optional_old_self: bool,
    purpose: Purpose,
    library: &Context<'_>,
) -> Result<(), String> {
    let node = ExpressionType::Node { schema, is_resource: is_root || schema.embedded_resource };
    let old = if optional_old_self { ExpressionType::Nothing } else { node };
    let mut names =
        NameChecker { library, variables: vec![("self".to_owned(), node), ("oldSelf".to_owned(), old)] };
    let known = names.visit(expression)?;
    match plain_type(expression, known) {
        Some(found) if purpose == Purpose::Condition && found != "bool" => {
            Err(format!("must evaluate to a bool, it evaluates to {found}"))
        }
        _ => Ok(()),
    }
}

/// The type of an expression if it is obvious.
fn plain_type(expression: &IdedExpr, known: ExpressionType<'_>) -> Option<&'static str> {
    match &expression.expr {
        Expr::Literal(literal) => Some(match literal {
            LiteralValue::Boolean(_) => "bool",
            LiteralValue::Bytes(_) => "bytes",
            LiteralValue::Double(_) => "double",
            LiteralValue::Int(_) => "int",
            LiteralValue::Null => "null",
            LiteralValue::String(_) => "string",
            LiteralValue::UInt(_) => "uint",
        }),
        Expr::List(_) => Some("list"),
        Expr::Map(_) => Some("map"),
        Expr::Call(call) => match call.func_name.as_str() {
            operators::ADD
            | operators::SUBSTRACT
            | operators::MULTIPLY
            | operators::DIVIDE
            | operators::MODULO => Some("a sum, not a condition"),
            "size" | "int" => Some("int"),
            "string" => Some("string"),
            _ => None,
        },
        Expr::Select(select) if select.test => Some("bool"),
        Expr::Ident(_) | Expr::Select(_) => match known {
            ExpressionType::Node { schema, .. } if !schema.int_or_string => match schema.kind? {
                JsonType::Boolean => Some("bool"),
                other => Some(other.as_str()),
            },
            _ => None,
        },
        _ => None,
    }
}

/// What is known about an expression's value.
#[derive(Clone, Copy)]
enum ExpressionType<'s> {
    Nothing,
    Node {
        schema: &'s Schema,
        is_resource: bool,
    },
    /// The metadata of a resource: rules see its name and generateName.
    Metadata,
}

impl<'s> ExpressionType<'s> {
    fn below(schema: &'s Schema) -> Self {
        Self::Node { schema, is_resource: schema.embedded_resource }
    }
}

struct NameChecker<'s, 'l> {
    library: &'l Context<'l>,
    /// Innermost last.
    variables: Vec<(String, ExpressionType<'s>)>,
}

impl<'s> NameChecker<'s, '_> {
    fn visit(&mut self, expression: &IdedExpr) -> Result<ExpressionType<'s>, String> {
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => Ok(ExpressionType::Nothing),
            Expr::Ident(name) => self
                .variable(name)
                .ok_or_else(|| format!("undeclared reference to '{name}' (in container '')")),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::List(list) => self.each(&list.elements),
            Expr::Map(map) => self.entries(map.entries.iter().map(|entry| &entry.expr)),
            Expr::Struct(message) => {
                Err(format!("undeclared reference to '{}' (in container '')", message.type_name))
            }
        }
    }

    fn each<'e>(
        &mut self,
        expressions: impl IntoIterator<Item = &'e IdedExpr>,
    ) -> Result<ExpressionType<'s>, String> {
        for expression in expressions {
            self.visit(expression)?;
        }
        Ok(ExpressionType::Nothing)
    }

    fn entries<'e>(
        &mut self,
        entries: impl Iterator<Item = &'e EntryExpr>,
    ) -> Result<ExpressionType<'s>, String> {
        for entry in entries {
            match entry {
                EntryExpr::StructField(field) => self.visit(&field.value)?,
                EntryExpr::MapEntry(entry) => self.each([&entry.key, &entry.value])?,
            };
        }
        Ok(ExpressionType::Nothing)
    }

    fn variable(&self, name: &str) -> Option<ExpressionType<'s>> {
        // The accumulators of macros, which no rule can write.
        if name.starts_with('@') {
            return Some(ExpressionType::Nothing);
        }
        self.variables.iter().rev().find(|(known, _)| known == name).map(|(_, node)| *node)
    }

    fn select(&mut self, select: &SelectExpr) -> Result<ExpressionType<'s>, String> {
        let operand = self.visit(&select.operand)?;
        field_of(operand, &select.field)
    }

    fn call(&mut self, call: &CallExpr) -> Result<ExpressionType<'s>, String> {
        let name = call.func_name.as_str();
        if name == operators::INDEX
            && let [operand, key] = call.args.as_slice()
        {
            let operand = self.visit(operand)?;
            self.visit(key)?;
            return Ok(element(operand));
        }
        let is_operator = name.starts_with(['_', '@', '!', '-']);
        if is_operator {
            return self.each(&call.args);
        }
        let qualified = match call.target.as_ref().map(|target| &target.expr) {
            Some(Expr::Ident(prefix)) if self.variable(prefix).is_none() => Some(format!("{prefix}.{name}")),
            _ => None,
        };
        if let Some(qualified) = qualified {
            if !self.exists(&qualified) {
                return Err(format!("undeclared reference to '{qualified}' (in container '')"));
            }
        } else {
            if !self.exists(name) {
                return Err(format!("undeclared reference to '{name}' (in container '')"));
            }
            if let Some(target) = &call.target {
                self.visit(target)?;
            }
        }
        self.each(&call.args)
    }

    /// Asks the library: called without arguments, an existing function reports a different error.
    fn exists(&self, function: &str) -> bool {
        let call = CallExpr { func_name: function.to_owned(), target: None, args: Vec::new() };
        let outcome = CelValue::resolve(&IdedExpr { id: 0, expr: Expr::Call(call) }, self.library);
        !matches!(outcome, Err(ExecutionError::UndeclaredReference(name)) if name.as_str() == function)
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Result<ExpressionType<'s>, String> {
        let range = self.visit(&comprehension.iter_range)?;
        self.visit(&comprehension.accu_init)?;
        let outside = self.variables.len();
        let is_list =
            matches!(range, ExpressionType::Node { schema, .. } if schema.kind == Some(JsonType::Array));
        let member = if is_list { element(range) } else { ExpressionType::Nothing };
        self.variables.push((comprehension.iter_var.clone(), member));
        self.variables
            .extend(comprehension.iter_var2.iter().map(|name| (name.clone(), ExpressionType::Nothing)));
        self.variables.push((comprehension.accu_var.clone(), ExpressionType::Nothing));
        let inside = self.each([&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result]);
        self.variables.truncate(outside);
        inside
    }
}

fn element(collection: ExpressionType<'_>) -> ExpressionType<'_> {
    let ExpressionType::Node { schema, .. } = collection else { return ExpressionType::Nothing };
    match (&schema.items, &schema.additional) {
        (Some(items), _) => ExpressionType::below(items),
        (None, Some(Additional::Schema(values))) => ExpressionType::below(values),
        (None, _) => ExpressionType::Nothing,
    }
}

fn field_of<'s>(operand: ExpressionType<'s>, field: &str) -> Result<ExpressionType<'s>, String> {
    let undefined = || format!("undefined field '{field}'");
    let (schema, is_resource) = match operand {
        ExpressionType::Nothing => return Ok(ExpressionType::Nothing),
        ExpressionType::Metadata if matches!(field, "name" | "generateName") => {
            return Ok(ExpressionType::Nothing);
        }
        ExpressionType::Metadata => return Err(undefined()),
        ExpressionType::Node { schema, is_resource } => (schema, is_resource),
    };
    match (is_resource, field) {
        (true, "metadata") => return Ok(ExpressionType::Metadata),
        (true, "apiVersion" | "kind") => return Ok(ExpressionType::Nothing),
        _ => {}
    }
    match &schema.additional {
        Some(Additional::Schema(values)) => return Ok(ExpressionType::below(values)),
        Some(Additional::Any) => return Ok(ExpressionType::Nothing),
        None => {}
    }
    if let Some(kind) = schema.kind.filter(|kind| *kind != JsonType::Object) {
        return Err(format!("type '{}' does not support field selection", kind.as_str()));
    }
    let declared = schema.properties.iter().find(|(name, _)| escape(name) == field);
    declared.map(|(_, schema)| ExpressionType::below(schema)).ok_or_else(undefined)
}
