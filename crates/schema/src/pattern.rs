//! `pattern`: Go's regular expressions on Rust's engine. Owns the few differences between the two.

use regex::Regex;

/// A pattern as written, and its compiled form.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub source: String,
    pub(crate) regex: Regex,
}

/// Compiles a pattern written for Go. Syntax that only Go supports (`\Q…\E`) is an error, never a
/// guess.
pub(crate) fn compile(source: &str) -> Result<Pattern, regex::Error> {
    Ok(Pattern { source: source.to_owned(), regex: Regex::new(&translate(source))? })
}

/// Go's `\d`, `\w`, `\s` and `\b` are ASCII, and in its classes `[`, `&` and `~` are plain
/// characters.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('s') => out.push_str(r"[\t\n\f\r ]"),
                Some('S') => out.push_str(r"[^\t\n\f\r ]"),
                Some('b') if !in_class => out.push_str(r"(?-u:\b)"),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' if in_class && chars.peek() == Some(&':') => {
                // A POSIX class such as [:alpha:]: copied up to its closing bracket.
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' if in_class => out.push_str(r"\["),
            '&' | '~' if in_class => out.extend(['\\', c]),
            '[' => {
                in_class = true;
                out.push('[');
                out.extend(chars.next_if_eq(&'^'));
                // A bracket that opens the class's content is a member of it.
                if chars.next_if_eq(&']').is_some() {
                    out.push_str(r"\]");
                }
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            other => out.push(other),
        }
    }
    out
}
