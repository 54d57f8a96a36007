//! Keeps answers of the hub shallow enough to be parsed.
//!
//! An API server accepts objects that nest thousands of levels deep. A JSON parser gives up after
//! about a hundred, on the whole list or stream that contains one. So deeper values are cut out of
//! the text before it is parsed, and only their own object is affected: the rest of such a config
//! is still deep enough to be rejected.

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use tower::service_fn;

/// The deepest level of an answer: below the parser's limit, and above what any valid content needs
/// inside a list.
const MOST_LEVELS: usize = 120;

/// Wraps a client so that all of its answers can be parsed.
pub(crate) fn shallow(inner: Client) -> Client {
    let namespace = inner.default_namespace().to_owned();
    let service = service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            let answer: Response<Body> = inner.send(request).await?;
            let mut clip = Clip::default();
            Ok::<_, kube::Error>(answer.map(|body| {
                body.map_frame(move |frame| {
                    frame.map_data(|part| match clip.pass(&part) {
                        Some(clipped) => clipped.into(),
                        None => part,
                    })
                })
            }))
        }
    });
    Client::new(service, namespace)
}

#[derive(Debug, Default)]
struct Clip {
    level: usize,
    in_string: bool,
    escaped: bool,
    /// The level at which the value that is being cut out began.
    left_out: Option<usize>,
}

impl Clip {
    /// Takes the next part of a text and returns it without what nests too deep; `None` if it is
    /// unchanged.
    fn pass(&mut self, part: &[u8]) -> Option<Vec<u8>> {
        let mut out = self.left_out.map(|_| Vec::new());
        let mut from = 0;
        let mut at = 0;
        while let Some(&byte) = part.get(at) {
            if self.in_string {
                at += self.pass_string(part.get(at..).unwrap_or_default());
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.level += 1;
                    if self.level > MOST_LEVELS && self.left_out.is_none() {
                        self.left_out = Some(self.level);
                        let out = out.get_or_insert_default();
                        out.extend_from_slice(part.get(from..at).unwrap_or_default());
                        out.extend_from_slice(b"null");
                    }
                }
                b'}' | b']' => {
                    if self.left_out == Some(self.level) {
                        self.left_out = None;
                        from = at + 1;
                    }
                    self.level = self.level.saturating_sub(1);
                }
                _ => {}
            }
            at += 1;
        }
        let out = out.as_mut()?;
        if self.left_out.is_none() {
            out.extend_from_slice(part.get(from..).unwrap_or_default());
        }
        Some(std::mem::take(out))
    }

    /// Takes the rest of a string, or as much of it as there is, and returns how much. This is the
    /// hot path.
    fn pass_string(&mut self, part: &[u8]) -> usize {
        if std::mem::take(&mut self.escaped) {
            return 1;
        }
        let Some(at) = part.iter().position(|byte| matches!(byte, b'"' | b'\\')) else { return part.len() };
        self.escaped = part.get(at) == Some(&b'\\');
        self.in_string = self.escaped;
        at + 1
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}\"]}}\\\"\"{}", "{\"a\":[".repeat(levels / 2), "]}".repeat(levels / 2))
    }

    /// A text in parts of this many bytes.
    fn clipped(text: &str, parts: usize) -> String {
        let mut clip = Clip::default();
        let bytes: Vec<u8> =
            text.as_bytes().chunks(parts).flat_map(|part| clip.pass(part).unwrap_or(part.to_vec())).collect();
        assert_eq!((clip.level, clip.in_string, clip.left_out), (0, false, None));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_can_be_parsed_is_left_as_it_is() {
        for levels in [2, 60, MOST_LEVELS] {
            assert_eq!(clipped(&nested(levels), 7), nested(levels));
        }
        let text = "{\"a\":\"[[[{{{\\\\\",\"b\":[1,2]}\n{\"c\":{}}\n";
        assert_eq!(clipped(text, 3), text);
    }

    #[test]
    fn what_nests_deeper_is_left_out_and_what_stands_beside_it_stays() {
        for parts in [1, 2, 3, 64, 1_000_000] {
            let text = format!("{{\"before\":1,\"deep\":{},\"after\":[2]}}", nested(9_998));
            assert!(serde_json::from_str::<Value>(&text).is_err(), "it is too deep for the parser");
            let read: Value = serde_json::from_str(&clipped(&text, parts)).unwrap();
            assert_eq!((&read["before"], &read["after"][0]), (&Value::from(1), &Value::from(2)));
            // Enough is left to be recognised as too deep.
            let mut levels = 0;
            let mut at = &read["deep"];
            while let Some(inner) = at.get("a").or_else(|| at.get(0)) {
                (at, levels) = (inner, levels + 1);
            }
            assert_eq!((at, levels), (&Value::Null, MOST_LEVELS - 1));
        }
    }
}
