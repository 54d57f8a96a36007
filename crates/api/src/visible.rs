//! Escapes text from outside, so that it cannot control a terminal, end a line, or hide its
//! content.
//!
//! Owns which characters are escaped. Every output of text uses this module; none has its own
//! rules.

use std::fmt::{self, Display, Write as _};

/// Replaces the rest of a text that is cut.
const CUT: char = '…';

/// Text on one line, with escapes such as `
/// ` and `\u{1b}` for invisible characters.
#[derive(Clone, Copy, Debug)]
pub struct Visible<'a> {
    text: &'a str,
    most: usize,
}

/// Escapes text so that it is safe on one line.
pub fn visible(text: &str) -> Visible<'_> {
    Visible { text, most: usize::MAX }
}

impl Visible<'_> {
    /// Limits the text to this many bytes, and adds `…` if it is cut.
    pub fn at_most(self, most: usize) -> Self {
        Self { most, ..self }
    }
}

impl Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.most;
        for c in self.text.chars() {
            let needed = if is_hidden(c) { c.escape_default().len() } else { c.len_utf8() };
            if needed > left {
                return f.write_char(CUT);
            }
            left -= needed;
            write_visible(f, c)?;
        }
        Ok(())
    }
}

/// Writes a character, escaped if it is hidden.
pub fn write_visible(to: &mut impl fmt::Write, c: char) -> fmt::Result {
    if is_hidden(c) { write!(to, "{}", c.escape_default()) } else { to.write_char(c) }
}

/// Equivalent JSON with hidden characters escaped. Line breaks between values are kept.
pub fn visible_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_hidden(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

/// Whether a character has an effect instead of being visible: control characters, line separators,
/// characters that change the direction of text, zero-width characters, and those that Unicode
/// reserves for internal use.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            u32::from(c),
            // Soft hyphen, grapheme joiner, Arabic letter mark, blank letters of Hangul and Khmer,
            // Mongolian selectors.
            0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
                // Zero width, directional marks, separators, embeddings and overrides, isolates,
                // invisible operators.
                | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
                | 0x3164 | 0xffa0 | 0xfe00..=0xfe0f | 0xfeff | 0xfff0..=0xfffb
                // Shorthand and musical controls, tags.
                | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff
                | 0xfdd0..=0xfdef
        )
        || u32::from(c) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_or_hides_is_shown_as_an_escape() {
        let hostile =
            "a\u{1b}[2J\n\r\tb\u{7f}\u{9b}1m\u{202e}c\u{2066}\u{200b}\u{2028}\u{feff}\u{e0041}\u{fdd0}";
        assert_eq!(
            visible(hostile).to_string(),
            r"a\u{1b}[2J\n\r\tb\u{7f}\u{9b}1m\u{202e}c\u{2066}\u{200b}\u{2028}\u{feff}\u{e0041}\u{fdd0}"
        );
    }

    #[test]
    fn what_can_be_seen_stays() {
        for text in
            ["", "plain", "naïve café", "e\u{301}", "日本語", "עברית", "🦜", r"a\b", "\"quoted\"", "\u{a0}"]
        {
            assert_eq!(visible(text).to_string(), text);
        }
    }

    #[test]
    fn to_show_it_twice_changes_nothing() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let once = visible(&c.to_string()).to_string();
            assert!(!once.chars().any(is_hidden), "{c:?}");
            assert_eq!(visible(&once).to_string(), once);
        }
    }

    #[test]
    fn a_cut_counts_what_is_shown_and_never_splits_an_escape() {
        assert_eq!(visible("abcdef").at_most(6).to_string(), "abcdef");
        assert_eq!(visible("abcdef").at_most(5).to_string(), "abcde…");
        assert_eq!(visible("ééé").at_most(5).to_string(), "éé…");
        assert_eq!(visible("ab\u{1b}c").at_most(5).to_string(), "ab…");
        assert_eq!(visible("\u{1b}").at_most(0).to_string(), "…");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let text = "a\u{1b}\u{7f}\u{9b}\u{202e}\u{e0041}\n\"é";
        let json = serde_json::to_string_pretty(&serde_json::json!({"text": text})).unwrap();
        let shown = visible_json(&json);
        assert!(!shown.chars().any(|c| c != '\n' && is_hidden(c)), "{shown:?}");
        let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(read["text"], text);
    }
}
