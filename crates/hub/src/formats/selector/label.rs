//! Label selectors, as `k8s.io/apimachinery/pkg/labels` parses them. Owns the grammar and the
//! matching; must not evaluate field selectors, whose syntax only looks alike.

use std::{collections::BTreeSet, fmt, iter::Peekable, vec::IntoIter};

use super::{SelectorError, syntax};

const BINARY_OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

/// All of the requirements; with none, everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<LabelMatch>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct LabelMatch {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    Equals(String),
    /// Like [`Test::NotIn`], also true of an object without the label.
    NotEquals(String),
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser { tokens: lex(text).into_iter().peekable() };
        let mut requirements = parser.selector()?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self(requirements))
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object whose labels `lookup` finds is selected.
    pub(crate) fn matches<S: AsRef<str>>(&self, lookup: impl Fn(&str) -> Option<S>) -> bool {
        self.0.iter().all(|requirement| {
            let value = lookup(&requirement.key);
            requirement.test.holds(value.as_ref().map(AsRef::as_ref))
        })
    }
}

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = |value: &str| value.parse::<i64>().ok();
        match self {
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::Equals(wanted) => value == Some(wanted),
            Self::NotEquals(unwanted) => value != Some(unwanted),
            Self::In(wanted) => value.is_some_and(|value| wanted.contains(value)),
            Self::NotIn(unwanted) => value.is_none_or(|value| !unwanted.contains(value)),
            Self::Greater(bound) => value.and_then(number).is_some_and(|value| value > *bound),
            Self::Less(bound) => value.and_then(number).is_some_and(|value| value < *bound),
        }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, LabelMatch { key, test }) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let set =
                |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
            match test {
                Test::Exists => write!(f, "{comma}{key}"),
                Test::Absent => write!(f, "{comma}!{key}"),
                Test::Equals(value) => write!(f, "{comma}{key}={value}"),
                Test::NotEquals(value) => write!(f, "{comma}{key}!={value}"),
                Test::In(values) => write!(f, "{comma}{key} in ({})", set(values)),
                Test::NotIn(values) => write!(f, "{comma}{key} notin ({})", set(values)),
                Test::Greater(bound) => write!(f, "{comma}{key}>{bound}"),
                Test::Less(bound) => write!(f, "{comma}{key}<{bound}"),
            }?;
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A key, a value, or `in` and `notin`, which are operators only in some positions.
    Word(String),
    Symbol(&'static str),
    End,
}

impl Token {
    fn literal(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Symbol(symbol) => symbol,
            Self::End => "",
        }
    }

    fn starts_requirement(&self) -> bool {
        matches!(self, Self::Word(_) | Self::Symbol("!"))
    }
}

fn lex(text: &str) -> Vec<Token> {
    // Longest first.
    const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];
    let blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let special = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(blank);
    while !rest.is_empty() {
        let symbol = SYMBOLS.into_iter().find_map(|symbol| Some((symbol, rest.strip_prefix(symbol)?)));
        if let Some((symbol, after)) = symbol {
            tokens.push(Token::Symbol(symbol));
            rest = after.trim_start_matches(blank);
        } else {
            let end = rest.find(|c| special(c) || blank(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            tokens.push(Token::Word(word.to_owned()));
            rest = after.trim_start_matches(blank);
        }
    }
    tokens
}

struct Parser {
    tokens: Peekable<IntoIter<Token>>,
}

impl Parser {
    fn next(&mut self) -> Token {
        self.tokens.next().unwrap_or(Token::End)
    }

    fn peek(&mut self) -> &Token {
        self.tokens.peek().unwrap_or(&Token::End)
    }

    fn selector(&mut self) -> Result<Vec<LabelMatch>, SelectorError> {
        let mut requirements = Vec::new();
        let first = self.peek();
        if *first == Token::End {
            return Ok(requirements);
        }
        if !first.starts_requirement() {
            return Err(unexpected(first, "!, identifier, or 'end of string'"));
        }
        loop {
            requirements.push(self.requirement().map_err(SelectorError::Requirement)?);
            match self.next() {
                Token::End => return Ok(requirements),
                Token::Symbol(",") => {
                    let after = self.peek();
                    if !after.starts_requirement() {
                        return Err(unexpected(after, "identifier after ','"));
                    }
                }
                other => return Err(unexpected(&other, "',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<LabelMatch, String> {
        let mut token = self.next();
        let absent = token == Token::Symbol("!");
        if absent {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return Err(format!("found '{}', expected: identifier", token.literal()));
        };
        syntax::label_key(&key).map_err(|detail| invalid("<nil>", &key, &detail))?;
        if absent {
            return Ok(LabelMatch { key, test: Test::Absent });
        }
        let test = if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            Test::Exists
        } else {
            self.test(&key)?
        };
        Ok(LabelMatch { key, test })
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        let operator = self.next();
        Ok(match operator.literal() {
            "in" => Test::In(self.values(key)?),
            "notin" => Test::NotIn(self.values(key)?),
            "=" | "==" => Test::Equals(self.value(key)?),
            "!=" => Test::NotEquals(self.value(key)?),
            ">" => Test::Greater(self.integer(key)?),
            "<" => Test::Less(self.integer(key)?),
            other => return Err(format!("found '{other}', expected: {BINARY_OPERATORS}")),
        })
    }

    fn value(&mut self, key: &str) -> Result<String, String> {
        // `x=` and `x=,y` ask for the empty value.
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(word) => {
                check_value(key, 0, &word)?;
                Ok(word)
            }
            other => Err(format!("found '{}', expected: identifier", other.literal())),
        }
    }

    fn integer(&mut self, key: &str) -> Result<i64, String> {
        let value = self.value(key)?;
        let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
        value.parse().map_err(|_| invalid("values[0]", &value, detail))
    }

    /// `(a,b)`; an empty place, as in `()`, `(a,)` or `(,a)`, is the empty value.
    fn values(&mut self, key: &str) -> Result<BTreeSet<String>, String> {
        match self.next() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.literal())),
        }
        let mut values = BTreeSet::new();
        loop {
            let value = match self.peek() {
                Token::Word(word) => {
                    let word = word.clone();
                    self.next();
                    word
                }
                Token::Symbol("," | ")") => String::new(),
                other => {
                    return Err(format!("found '{}', expected: ',', ')' or identifier", other.literal()));
                }
            };
            values.insert(value);
            match self.next() {
                Token::Symbol(",") => {}
                Token::Symbol(")") => break,
                other => return Err(format!("found '{}', expected: ',' or ')'", other.literal())),
            }
        }
        values.iter().enumerate().try_for_each(|(i, value)| check_value(key, i, value))?;
        Ok(values)
    }
}

fn check_value(key: &str, index: usize, value: &str) -> Result<(), String> {
    syntax::label_value(value).map_err(|detail| invalid(&format!("values[{index}][{key}]"), value, &detail))
}

fn invalid(field: &str, value: &str, detail: &str) -> String {
    format!("{field}: Invalid value: {value:?}: {detail}")
}

fn unexpected(token: &Token, expected: &'static str) -> SelectorError {
    SelectorError::Unexpected { found: token.literal().to_owned(), expected }
}

#[cfg(test)]
mod tests;
