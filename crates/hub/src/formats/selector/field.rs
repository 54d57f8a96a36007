//! Field selectors: `path=value`, `==`, `!=`, comma-separated, with `\`-escapes in values, as
//! `k8s.io/apimachinery/pkg/fields` parses them. Must not know which paths exist.

use super::SelectorError;

/// All of the requirements; with none, everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<FieldMatch>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldMatch {
    path: String,
    equal: bool,
    value: String,
}

impl FieldSelector {
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut terms = terms(text);
        terms.retain(|term| !term.is_empty());
        // As Go does, so that the first error is the same.
        terms.sort_unstable();
        let mut requirements = Vec::new();
        for term in terms {
            let not_a_term = || SelectorError::NotATerm { selector: text.to_owned(), term: term.to_owned() };
            let (path, equal, value) = split(term).ok_or_else(not_a_term)?;
            let value = unescape(value)?;
            // Go drops a bare operator instead of refusing it.
            if !path.is_empty() || !value.is_empty() {
                requirements.push(FieldMatch { path: path.to_owned(), equal, value });
            }
        }
        Ok(Self(requirements))
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The paths asked for, so that the caller can refuse the ones it does not index:
    /// `field label not supported: {path}`.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|requirement| requirement.path.as_str())
    }

    /// The value that `path` must have, if the selector requires one: a list with `metadata.name`
    /// is authorized as a get.
    pub(crate) fn exact(&self, path: &str) -> Option<&str> {
        let exact = self.0.iter().find(|requirement| requirement.equal && requirement.path == path);
        exact.map(|requirement| requirement.value.as_str())
    }

    /// Whether an object whose fields `lookup` finds is selected. A missing field is an empty one,
    /// as in Go.
    pub(crate) fn matches<S: AsRef<str>>(&self, lookup: impl Fn(&str) -> Option<S>) -> bool {
        self.0.iter().all(|FieldMatch { path, equal, value }| {
            let found = lookup(path);
            (found.as_ref().map_or("", AsRef::as_ref) == value) == *equal
        })
    }
}

/// Splits at the commas that no backslash escapes.
fn terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c| {
        let separates = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        separates
    })
    .collect()
}

/// At the first operator; a path cannot contain one.
fn split(term: &str) -> Option<(&str, bool, &str)> {
    for (at, _) in term.char_indices() {
        let (path, rest) = term.split_at(at);
        if let Some(value) = rest.strip_prefix("!=") {
            return Some((path, false, value));
        }
        if let Some(value) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
            return Some((path, true, value));
        }
    }
    None
}

fn unescape(text: &str) -> Result<String, SelectorError> {
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                Some(other) => return Err(SelectorError::Escape(format!("\\{other}"))),
                None => return Err(SelectorError::Escape("\\".to_owned())),
            },
            ',' | '=' => return Err(SelectorError::Unescaped(c)),
            other => value.push(other),
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(cases: &[&str], expected: &Expect) {
        let term = |r: &FieldMatch| format!(" {}{}{:?}", r.path, if r.equal { "=" } else { "!=" }, r.value);
        let shown = |text: &&str| match FieldSelector::parse(text) {
            Ok(FieldSelector(terms)) => format!("{text} ->{}\n", terms.iter().map(term).collect::<String>()),
            Err(error) => format!("{text} -> error: {error}\n"),
        };
        expected.assert_eq(&cases.iter().map(shown).collect::<String>());
    }

    fn matches(selector: &str) -> bool {
        let fields = BTreeMap::from([("foo", "bar"), ("baz", "blah"), ("complex", r"=value\,\")]);
        FieldSelector::parse(selector).unwrap().matches(|path| fields.get(path).copied())
    }

    #[test]
    fn the_grammar_is_that_of_kubernetes() {
        check(
            &[
                "",
                "metadata.name=a",
                "a=avalue,b==bvalue,c!=cvalue",
                ",a=a,",
                r"x=a||y\=b",
                r"x=a\=\=b",
                r"k=\,,k2=v2",
                r"k=\\,k2=v2",
                r"k=\\\,,k2=v2",
                "함=수,목=록",
                "=a",
                "a=",
                "=",
                "!=,a=b",
            ],
            &expect![[r#"
                 ->
                metadata.name=a -> metadata.name="a"
                a=avalue,b==bvalue,c!=cvalue -> a="avalue" b="bvalue" c!="cvalue"
                ,a=a, -> a="a"
                x=a||y\=b -> x="a||y=b"
                x=a\=\=b -> x="a==b"
                k=\,,k2=v2 -> k2="v2" k=","
                k=\\,k2=v2 -> k2="v2" k="\\"
                k=\\\,,k2=v2 -> k2="v2" k="\\,"
                함=수,목=록 -> 목="록" 함="수"
                =a -> ="a"
                a= -> a=""
                = ->
                !=,a=b -> a="b"
            "#]],
        );
    }

    #[test]
    fn what_kubernetes_refuses_is_refused_in_its_words() {
        check(
            &["x=a||y=b", "x==a==b", "x=a,b", "x in (a,b)", "x", r"x=\", r"x=\\\", r"x=\a"],
            &expect![[r#"
                x=a||y=b -> error: invalid field selector: unescaped character in value: 61
                x==a==b -> error: invalid field selector: unescaped character in value: 61
                x=a,b -> error: invalid selector: 'x=a,b'; can't understand 'b'
                x in (a,b) -> error: invalid selector: 'x in (a,b)'; can't understand 'b)'
                x -> error: invalid selector: 'x'; can't understand 'x'
                x=\ -> error: invalid field selector: invalid escape sequence: \
                x=\\\ -> error: invalid field selector: invalid escape sequence: \
                x=\a -> error: invalid field selector: invalid escape sequence: \a
            "#]],
        );
    }

    #[test]
    fn all_terms_must_hold() {
        assert!(matches("") && matches("foo=bar") && matches("foo==bar,baz!=x"));
        assert!(matches(r"foo=bar,baz=blah,complex=\=value\\\,\\"));
        assert!(!matches("foo=blah") && !matches("foo!=bar") && !matches("foo=bar,foobar=bar,baz=blah"));
    }

    #[test]
    fn a_missing_field_is_empty() {
        assert!(matches("nope=") && matches("nope!=x") && !matches("nope!="));
    }

    #[test]
    fn the_caller_can_see_what_is_asked_for() {
        let selector = FieldSelector::parse("metadata.name=a,spec.x!=b").unwrap();
        assert_eq!(selector.paths().collect::<Vec<_>>(), ["metadata.name", "spec.x"]);
        assert_eq!(selector.exact("metadata.name"), Some("a"));
        assert_eq!(selector.exact("spec.x"), None);
        assert!(!selector.is_empty() && FieldSelector::parse("").unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "\\PC*|[ab=!,\\\\]*") {
            let _ = FieldSelector::parse(&text);
        }
    }
}
