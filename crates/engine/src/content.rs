//! The content of a config, which is parsed when something reads it, and how much memory that
//! takes.
//!
//! Parsed JSON may take a hundred times the memory of its text: a map of one number has eight bytes
//! in the text and several hundred in memory. So text that strangers write is counted before it is
//! parsed, and kept as text while nothing reads it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::observed::Unkeepable;

/// What a parsed content may take and stay parsed between two plans: most do. The others are kept
/// as text only, and parsed by each plan that reads them.
const MOST_PARSED: usize = 256 * 1024;

/// Content that is shared, and parsed once for all that share it.
#[derive(Clone, Default)]
pub struct ConfigContent {
    text: Option<Arc<str>>,
    value: OnceLock<Arc<Value>>,
}

impl ConfigContent {
    /// Content that is not parsed yet.
    pub fn of_text(text: Arc<str>) -> Self {
        Self { text: Some(text), value: OnceLock::new() }
    }

    /// The text that it is parsed from; `None` if it never was text.
    pub fn text(&self) -> Option<&Arc<str>> {
        self.text.as_ref()
    }

    /// The text, also of content that never was text.
    pub fn to_text(&self) -> Arc<str> {
        self.text.clone().unwrap_or_else(|| self.to_string().into())
    }

    pub fn is_parsed(&self) -> bool {
        self.value.get().is_some()
    }

    /// Whether it takes little memory once it is parsed.
    pub fn is_small(&self) -> bool {
        self.text.as_ref().is_none_or(|text| Density::of_text(text.as_bytes()).parsed_size() <= MOST_PARSED)
    }

    /// Ends the use of content by a plan: a parsed value that is large is dropped, and of a small
    /// one the text.
    pub fn rest(&mut self) {
        if !self.is_parsed() || self.text.is_none() {
            return;
        }
        match self.is_small() {
            true => self.text = None,
            false => self.value = OnceLock::new(),
        }
    }
}

impl From<Value> for ConfigContent {
    fn from(value: Value) -> Self {
        Self { text: None, value: OnceLock::from(Arc::new(value)) }
    }
}

/// Parses it, if nobody has read it before.
impl Deref for ConfigContent {
    type Target = Arc<Value>;

    fn deref(&self) -> &Arc<Value> {
        let parse = |text: &Arc<str>| serde_json::from_str::<Value>(text).unwrap_or_default();
        self.value.get_or_init(|| Arc::new(self.text.as_ref().map(parse).unwrap_or_default()))
    }
}

impl PartialEq for ConfigContent {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for ConfigContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// How many values JSON has. Keys are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Density {
    /// Every list, map, text and number.
    pub values: usize,
    /// The maps that are not empty. Each takes more memory than any other value.
    pub maps: usize,
}

impl Density {
    /// Counts without parsing. The text may be of any length, and need not be valid.
    pub fn of_text(text: &[u8]) -> Self {
        let mut density = Self { values: 1, maps: 0 };
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match byte {
                b'"' => {
                    let (string, behind) = rest_of_string(rest);
                    if is_raw_value(string) {
                        return Self { values: usize::MAX, maps: usize::MAX };
                    }
                    rest = behind;
                }
                b',' => density.values += 1,
                b'{' | b'[' => {
                    rest = rest.trim_ascii_start();
                    let is_empty = matches!(rest.first(), Some(b'}' | b']'));
                    density.values += usize::from(!is_empty);
                    density.maps += usize::from(!is_empty && byte == b'{');
                }
                _ => {}
            }
        }
        density
    }

    /// Counts content, and gives up where it has too many values or levels.
    pub(crate) fn check(content: &Value) -> Result<Self, Unkeepable> {
        let mut pending = vec![(content, 1)];
        let mut density = Self::default();
        while let Some((value, level)) = pending.pop() {
            density.values += 1;
            if let Value::Array(_) | Value::Object(_) = value
                && level > Unkeepable::MOST_LEVELS
            {
                return Err(Unkeepable::TooDeep);
            }
            match value {
                Value::Array(items) => pending.extend(items.iter().map(|item| (item, level + 1))),
                Value::Object(fields) => {
                    density.maps += usize::from(!fields.is_empty());
                    pending.extend(fields.values().map(|field| (field, level + 1)));
                }
                _ => {}
            }
            let so_far = Self { values: density.values + pending.len(), ..density };
            if so_far.is_too_much() {
                return Err(Unkeepable::TooDense);
            }
        }
        Ok(density)
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.values = self.values.saturating_add(other.values);
        self.maps = self.maps.saturating_add(other.maps);
    }

    /// About how many bytes it takes once it is parsed, without its strings.
    pub fn parsed_size(self) -> usize {
        self.values.saturating_mul(100).saturating_add(self.maps.saturating_mul(700))
    }

    /// Whether a part of a work has more than any work that we render: probes and what they report
    /// come to its manifests.
    pub fn is_too_much_for_a_work(self) -> bool {
        self.values > Unkeepable::MOST_VALUES / 2 * 3 || self.maps > Unkeepable::MOST_MAPS / 2 * 3
    }

    /// Whether content of this density is not stored as a revision.
    pub fn is_too_much(self) -> bool {
        self.values > Unkeepable::MOST_VALUES || self.maps > Unkeepable::MOST_MAPS
    }
}

/// What is left of the string that has begun, and what follows it.
fn rest_of_string(text: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    while let Some(found) =
        text.get(at..).and_then(|rest| rest.iter().position(|byte| matches!(byte, b'"' | b'\\')))
    {
        at += found;
        if text.get(at) == Some(&b'"') {
            return (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        }
        at += 2;
    }
    (text, &[])
}

/// The key under which the parser takes a string for JSON and parses it, which nothing has counted.
/// No honest object has it.
fn is_raw_value(string: &[u8]) -> bool {
    const KEY: &str = "$serde_json::private::RawValue";
    // Each character may be written as an escape of six.
    if !string.contains(&b'\\') || string.len() > 6 * KEY.len() {
        return string == KEY.as_bytes();
    }
    let quoted = [b"\"", string, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).is_ok_and(|key| key == KEY)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_has_as_many_values_as_what_it_is_parsed_to() {
        for value in [
            json!({}),
            json!([]),
            json!("a,b{[\"\\"),
            json!([1, [], {}, [[]], "\\\",{"]),
            json!({"a\"{,": {"b": [1, 2, {"c": null}]}, "d": {}, "e": "\\"}),
        ] {
            let expected = Density::check(&value).unwrap();
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                assert_eq!(Density::of_text(text.as_bytes()), expected, "{text}");
            }
        }
        assert_eq!(Density::of_text(b"[ ]"), Density { values: 1, maps: 0 });
        assert_eq!(Density::of_text(b"{\"cut off\\"), Density { values: 2, maps: 1 });
    }

    /// Otherwise the parser would expand text that was counted as one value.
    #[test]
    fn the_key_that_makes_the_parser_parse_a_string_is_too_dense() {
        for key in ["$serde_json::private::RawValue", "\\u0024serde_json::private::Raw\\u0056alue"] {
            let text = format!(r#"{{"a":[{{"{key}":"[{{\"a\":1}},{{\"a\":1}}]"}}]}}"#);
            let parsed: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(parsed, json!({"a": [[{"a": 1}, {"a": 1}]]}), "the parser expands it");
            assert!(Density::of_text(text.as_bytes()).is_too_much(), "{text}");
        }
    }

    #[test]
    fn content_with_too_many_maps_is_too_dense_although_it_has_few_values() {
        let content = |maps: usize| json!({"all": vec![json!({"a": 1}); maps]});
        assert_eq!(Unkeepable::of(&content(Unkeepable::MOST_MAPS - 1), 1), None);
        assert_eq!(Unkeepable::of(&content(Unkeepable::MOST_MAPS), 1), Some(Unkeepable::TooDense));
    }

    #[test]
    fn content_is_parsed_when_it_is_read_and_not_before() {
        let kept = ConfigContent::of_text("{\"a\":[1]}".into());
        let lent = kept.clone();
        assert_eq!(lent["a"][0], 1);
        assert!(lent.is_parsed() && !kept.is_parsed());
        assert_eq!(kept, ConfigContent::from(json!({"a": [1]})));
        assert_eq!(**ConfigContent::of_text("{".into()), Value::Null);
    }

    #[test]
    fn content_at_rest_is_parsed_only_if_that_takes_little_memory() {
        let read = |value: &Value| {
            let mut content = ConfigContent::of_text(value.to_string().into());
            content.rest();
            assert!(!content.is_parsed() && content.text().is_some(), "nothing has read it");
            assert_eq!(**content, *value);
            content.rest();
            assert_eq!(**content, *value, "it can be read again");
            content.rest();
            content
        };
        let small = read(&json!({"spec": {"a": [1, 2, {"b": "c"}]}}));
        assert!(small.is_parsed() && small.text().is_none());
        let dense = json!({"all": vec![json!({"a": 1}); 400]});
        let large = read(&dense);
        assert!(!large.is_parsed() && large.text().is_some());
        assert_eq!(*large.to_text(), *dense.to_string());
        assert_eq!(*ConfigContent::from(json!([1])).to_text(), *"[1]");
    }
}
