//! From text to steps, without recursion: a filter inside a filter is refused, as in Go.

use serde_json::Value;

use super::{Comparator, FilterExpression, JsonPathError, Operand, PathStep};

pub(super) fn path(text: &str) -> Result<Vec<PathStep>, JsonPathError> {
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
    steps(inner.unwrap_or(trimmed), true)
}

fn steps(text: &str, filters: bool) -> Result<Vec<PathStep>, JsonPathError> {
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("..") {
            return Err(JsonPathError::Unsupported("recursive descent"));
        }
        if let Some(after) = rest.strip_prefix("[?(") {
            if !filters {
                return Err(JsonPathError::Unsupported("a filter inside a filter"));
            }
            let (inside, after) = filter_text(after)?;
            steps.push(PathStep::Filter(Box::new(filter(inside)?)));
            rest = after;
        } else if let Some(after) = rest.strip_prefix("['") {
            let (inside, after) = after.split_once("']").ok_or(JsonPathError::Unterminated("array"))?;
            if inside.contains('\'') {
                return Err(JsonPathError::Unsupported("a union"));
            }
            steps.push(quoted(inside));
            rest = after;
        } else if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = after.split_once(']').ok_or(JsonPathError::Unterminated("array"))?;
            steps.push(index(inside)?);
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            let (name, after) = field(after);
            steps.push(if name == "*" { PathStep::Children } else { PathStep::Field(name) });
            rest = after;
        } else if matches!(first, ' ' | '@' | '$') {
            rest = rest.get(1..).unwrap_or_default();
        } else if steps.is_empty() && (first.is_alphanumeric() || first == '_') {
            // kubectl's relaxed spelling: `metadata.name`.
            let (name, after) = field(rest);
            steps.push(PathStep::Field(name));
            rest = after;
        } else {
            return Err(JsonPathError::Character(first));
        }
    }
    Ok(steps)
}

/// A field name up to the next terminator that no backslash escapes.
fn field(text: &str) -> (String, &str) {
    let terminator =
        |c| matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}');
    let mut escaped = false;
    let end = text.find(|c| {
        let ends = terminator(c) && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    (name.replace('\\', ""), rest)
}

fn quoted(inside: &str) -> PathStep {
    let mut path = Vec::new();
    let mut rest = inside;
    loop {
        let (name, after) = field(rest);
        path.push(PathStep::Field(name));
        match after.strip_prefix('.') {
            Some(after) => rest = after,
            None if after.is_empty() => break,
            // Not a dotted name, so only the key itself is meant.
            None => return PathStep::Field(inside.replace('\\', "")),
        }
    }
    let key = inside.replace('\\', "");
    if path.len() == 1 { PathStep::Field(key) } else { PathStep::Quoted { key, path } }
}

/// `*`, `3`, `-1`, `1:`, `:3`, `0:6:2`.
fn index(inside: &str) -> Result<PathStep, JsonPathError> {
    let invalid = || JsonPathError::Index(inside.to_owned());
    if inside == "*" {
        return Ok(PathStep::Slice { from: None, to: None, step: None });
    }
    if inside.contains(',') {
        return Err(JsonPathError::Unsupported("a union"));
    }
    let mut bounds = Vec::new();
    for bound in inside.split(':') {
        let digits = bound.strip_prefix('-').unwrap_or(bound);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid());
        }
        bounds.push(if bound.is_empty() { None } else { Some(bound.parse::<i64>().map_err(|_| invalid())?) });
    }
    match bounds.as_slice() {
        [index] => Ok(PathStep::Index(index.unwrap_or(0))),
        [from, to] => Ok(PathStep::Slice { from: *from, to: *to, step: None }),
        [from, to, step] => Ok(PathStep::Slice { from: *from, to: *to, step: *step }),
        _ => Err(invalid()),
    }
}

/// Splits after `)]`; a parenthesis inside quotes does not count.
fn filter_text(text: &str) -> Result<(&str, &str), JsonPathError> {
    let mut quote = None;
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open && previous != '\\' => quote = None,
            (')', None) => {
                let (inside, after) = text.split_at(at);
                let after = after.strip_prefix(")]").ok_or(JsonPathError::Unterminated("filter"))?;
                return Ok((inside, after));
            }
            _ => {}
        }
        previous = c;
    }
    Err(JsonPathError::Unterminated("filter"))
}

fn filter(inside: &str) -> Result<FilterExpression, JsonPathError> {
    let sign = |c| matches!(c, '!' | '<' | '>' | '=');
    let Some(at) = inside.find(sign) else {
        return Ok(FilterExpression::Exists(operand(inside)?));
    };
    let (left, rest) = inside.split_at(at);
    let end = rest.find(|c| !sign(c)).unwrap_or(rest.len());
    let (operator, right) = rest.split_at(end);
    let comparison = match operator {
        "==" => Comparator::Equal,
        "!=" => Comparator::NotEqual,
        "<" => Comparator::Less,
        "<=" => Comparator::LessOrEqual,
        ">" => Comparator::Greater,
        ">=" => Comparator::GreaterOrEqual,
        other => return Err(JsonPathError::Operator(other.to_owned())),
    };
    Ok(FilterExpression::Compare(operand(left)?, comparison, operand(right)?))
}

fn operand(text: &str) -> Result<Operand, JsonPathError> {
    let text = text.trim();
    let unreadable = || JsonPathError::Operand(text.to_owned());
    match text.chars().next() {
        Some('@' | '$' | '.' | '[') => Ok(Operand::Path(steps(text, false)?)),
        Some(quote @ ('"' | '\'')) => {
            let inside =
                text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)).ok_or_else(unreadable)?;
            Ok(Operand::Literal(unquote(inside, quote).ok_or_else(unreadable)?.into()))
        }
        Some('0'..='9' | '+' | '-') => number(text).map(Operand::Literal).ok_or_else(unreadable),
        _ if text == "true" => Ok(Operand::Literal(true.into())),
        _ if text == "false" => Ok(Operand::Literal(false.into())),
        _ => Err(unreadable()),
    }
}

fn number(text: &str) -> Option<Value> {
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.into());
    }
    let float = text.parse::<f64>().ok()?;
    serde_json::Number::from_f64(float).map(Value::Number)
}

fn unquote(inside: &str, quote: char) -> Option<String> {
    let mut text = String::with_capacity(inside.len());
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                escaped if escaped == '\\' || escaped == quote => escaped,
                _ => return None,
            }),
            c if c == quote => return None,
            c => text.push(c),
        }
    }
    Some(text)
}
