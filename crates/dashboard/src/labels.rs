//! A search by labels, as kubectl writes selectors: `key=value`, `key!=value`, `key` and `!key`,
//! with commas.

use aviary_engine::selector::Selector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// The maximum number of requirements.
const MOST_PARTS: usize = 16;

/// Parses a selector. The error is for the user.
pub(crate) fn parse(text: &str) -> Result<Selector, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() || parts.len() > MOST_PARTS {
        return Err(format!("give 1 to {MOST_PARTS} labels, as in cloud=aws,stage!=prod"));
    }
    let requirements = parts.into_iter().map(requirement).collect::<Result<Vec<_>, _>>()?;
    Selector::parse(&LabelSelector { match_expressions: Some(requirements), match_labels: None })
}

fn requirement(part: &str) -> Result<LabelSelectorRequirement, String> {
    let (key, operator, value) = match part.split_once('=') {
        Some((key, value)) => match key.strip_suffix('!') {
            Some(key) => (key, "NotIn", Some(value)),
            None => (key, "In", Some(value.strip_prefix('=').unwrap_or(value))),
        },
        None => match part.strip_prefix('!') {
            Some(key) => (key, "DoesNotExist", None),
            None => (part, "Exists", None),
        },
    };
    let key = key.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if key.is_empty() || !key.chars().all(fits) {
        return Err(format!("{part:?} is not a label: write key=value, key!=value, key or !key"));
    }
    Ok(LabelSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: value.map(|value| vec![value.trim().to_owned()]),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn labels_are_selected_as_kubectl_does() {
        let labels =
            BTreeMap::from([("cloud".to_owned(), "aws".to_owned()), ("gpu".to_owned(), String::new())]);
        for (text, expected) in [
            ("cloud=aws", true),
            ("cloud==aws", true),
            ("cloud = aws", true),
            ("cloud=gcp", false),
            ("cloud!=gcp", true),
            ("stage!=prod", true),
            ("gpu", true),
            ("gpu=", true),
            ("!gpu", false),
            ("!stage,cloud=aws", true),
            ("cloud=aws,stage", false),
        ] {
            assert_eq!(parse(text).unwrap().matches(&labels), expected, "{text}");
        }
        for wrong in ["", ",", "=x", "a b=c", "!", &"a,".repeat(MOST_PARTS + 1)] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
