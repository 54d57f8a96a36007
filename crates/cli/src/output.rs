//! Output for users and programs: text with colours, tables, and data in a stable format.
//!
//! All text goes through [`Printout`], which escapes control characters: no name and no message can
//! control the terminal or forge a line. A reader that goes away (`| head`) is not an error: the
//! rest of the output is dropped, and the exit code does not change.

mod table;

use std::fmt;
use std::io::{self, Write};

use anyhow::Context as _;
use aviary_api::visible::{is_hidden, visible, visible_json, write_visible};
pub(crate) use aviary_engine::verdict::counted;
use clap::ValueEnum;
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::commands::Outcome;
use crate::findings::Finding;
pub(crate) use table::{Facts, Table};

/// The longest error message. It may contain a server's response.
const LONGEST_COMPLAINT: usize = 4096;

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Json,
    Yaml,
    // No doc comment: with one, help would print every format on a separate line.
    Wide,
}

pub(crate) struct Output {
    pub(crate) paint: Paint,
    format: Option<OutputFormat>,
    stdout: Box<dyn Write>,
    stderr: Box<dyn Write>,
    /// The reader of standard output has gone away.
    closed: bool,
    /// Standard output is a terminal and can be redrawn.
    terminal: bool,
    /// The width of the reader's screen was given.
    has_width: bool,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("format", &self.format)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

impl Output {
    pub(crate) fn new(
        paint: Paint,
        format: Option<OutputFormat>,
        stdout: Box<dyn Write>,
        stderr: Box<dyn Write>,
    ) -> Self {
        Self { paint, format, stdout, stderr, closed: false, terminal: false, has_width: false }
    }

    /// Sets whether standard output is a terminal.
    pub(crate) fn on_terminal(self, terminal: bool) -> Self {
        Self { terminal, ..self }
    }

    /// Sets whether the width of the screen was given.
    pub(crate) fn of_width(self, has_width: bool) -> Self {
        Self { has_width, ..self }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Redraws the terminal.
    pub(crate) fn redraw(&mut self, picture: &Printout) -> anyhow::Result<()> {
        // Clears line by line, and then to the end, so that the screen does not flicker.
        let lines: String =
            picture.coloured(self.paint).lines().map(|line| format!("{line}\u{1b}[K\n")).collect();
        self.write(&format!("\u{1b}[H{lines}\u{1b}[J"))?;
        self.finish()
    }

    pub(crate) fn format(&self) -> Option<OutputFormat> {
        self.format.filter(|format| *format != OutputFormat::Wide)
    }

    /// Whether untruncated text was requested.
    pub(crate) fn is_wide(&self) -> bool {
        self.format == Some(OutputFormat::Wide)
    }

    /// Whether long lines are broken that a file or a pipe gets whole.
    pub(crate) fn is_narrow(&self) -> bool {
        !self.is_wide() && (self.terminal || self.has_width)
    }

    pub(crate) fn text(&mut self, text: &Printout) -> anyhow::Result<()> {
        self.write(&text.coloured(self.paint))
    }

    pub(crate) fn line(&mut self, line: impl fmt::Display) -> anyhow::Result<()> {
        self.text(&Printout::of(line))
    }

    /// Prints a file for another program unchanged, such as manifests or a shell script. Only for
    /// content that Aviary generates.
    pub(crate) fn file(&mut self, content: &str) -> anyhow::Result<()> {
        self.write(content)
    }

    fn write(&mut self, text: &str) -> anyhow::Result<()> {
        if self.closed {
            return Ok(());
        }
        let written = self.stdout.write_all(text.as_bytes());
        self.unless_closed(written)
    }

    /// Prints a value if data was requested. Returns whether it was.
    pub(crate) fn data(&mut self, value: &impl Serialize) -> anyhow::Result<bool> {
        let Some(format) = self.format else { return Ok(false) };
        let text = match format {
            OutputFormat::Json => {
                let json =
                    serde_json::to_string_pretty(value).context("failed to write the result as JSON")?;
                visible_json(&json) + "\n"
            }
            OutputFormat::Yaml => visible_yaml(value)?,
            OutputFormat::Wide => return Ok(false),
        };
        self.write(&text)?;
        Ok(true)
    }

    /// Prints one line to standard error.
    pub(crate) fn complaint(&mut self, line: &str) {
        // If this fails, there is nowhere left to report it.
        let _ = writeln!(self.stderr, "{}", visible(line).at_most(LONGEST_COMPLAINT));
    }

    /// Reports the problems with the input.
    pub(crate) fn refuse(&mut self, faults: &[Finding]) -> Outcome {
        for fault in faults {
            self.complaint(&fault.to_string());
        }
        Outcome::NotDone
    }

    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        let flushed = self.stdout.flush();
        self.unless_closed(flushed)
    }

    fn unless_closed(&mut self, written: io::Result<()>) -> anyhow::Result<()> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            other => other.context("failed to write to standard output"),
        }
    }
}

/// YAML with all characters visible. Only double-quoted text can have escapes, so text that needs
/// escapes is written as JSON, which is also YAML.
fn visible_yaml(value: &impl Serialize) -> anyhow::Result<String> {
    let written = |value: &serde_json::Value| {
        serde_saphyr::to_string(value).context("failed to write the result as YAML")
    };
    let text = serde_saphyr::to_string(value).context("failed to write the result as YAML")?;
    if text.chars().all(|c| c == '\n' || !is_hidden(c)) {
        return Ok(text);
    }
    let mut value = serde_json::to_value(value).context("failed to write the result as YAML")?;
    // The placeholder must not occur in the text.
    let mut placeholder = "escaped".to_owned();
    while text.contains(&placeholder) {
        placeholder.push('x');
    }
    let mut escaped = Vec::new();
    replace_hidden(&mut value, &placeholder, &mut escaped);
    let mut text = written(&value)?;
    for (number, json) in escaped.iter().enumerate().rev() {
        text = text.replace(&format!("{placeholder}{number}end"), json);
    }
    Ok(text)
}

/// Replaces every text with hidden characters, including keys, by a placeholder, and collects those
/// texts as JSON.
fn replace_hidden(value: &mut serde_json::Value, placeholder: &str, escaped: &mut Vec<String>) {
    let hidden = |text: &str| text.chars().any(|c| c != '\n' && is_hidden(c));
    let replacement = |text: &str, escaped: &mut Vec<String>| {
        escaped.push(visible_json(&serde_json::Value::from(text).to_string()));
        format!("{placeholder}{}end", escaped.len() - 1)
    };
    match value {
        serde_json::Value::String(text) if hidden(text) => *text = replacement(text, escaped),
        serde_json::Value::Array(items) => {
            items.iter_mut().for_each(|item| replace_hidden(item, placeholder, escaped));
        }
        serde_json::Value::Object(fields) => {
            for (key, mut field) in std::mem::take(fields) {
                replace_hidden(&mut field, placeholder, escaped);
                let key = if hidden(&key) { replacement(&key, escaped) } else { key };
                fields.insert(key, field);
            }
        }
        _ => {}
    }
}

/// Text for users, line by line. The content of a line cannot leave that line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Printout(String);

impl Printout {
    pub(crate) fn of(line: impl fmt::Display) -> Self {
        let mut text = Self::default();
        text.line(line);
        text
    }

    pub(crate) fn line(&mut self, line: impl fmt::Display) {
        let mut open = false;
        for c in line.to_string().chars() {
            if code_of(c).is_some() {
                open = c != PLAIN_AGAIN;
                self.0.push(c);
            } else {
                // Writing to a string cannot fail.
                let _ = write_visible(&mut self.0, c);
            }
        }
        if open {
            self.0.push(PLAIN_AGAIN);
        }
        self.0.push('\n');
    }

    /// Adds a text that is broken between words into lines of at most [`WIDTH`] columns. `first`
    /// and `rest` are the beginnings of the first and of every further line.
    pub(crate) fn wrapped(&mut self, first: &str, rest: &str, text: &str) {
        let mut line = first.to_owned();
        let mut is_empty = true;
        for word in text.split(' ') {
            let gap = usize::from(!is_empty);
            if !is_empty && shown_width(&line) + gap + shown_width(word) > WIDTH {
                self.line(&line);
                line = rest.to_owned();
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }
        self.line(line.trim_end());
    }

    /// The same for a text in a colour, which has to end with every line.
    pub(crate) fn wrapped_in(&mut self, style: Style, paint: Paint, first: &str, rest: &str, text: &str) {
        let mut lines = Self::default();
        lines.wrapped(first, rest, text);
        for (index, line) in lines.0.lines().enumerate() {
            let start = if index == 0 { first } else { rest };
            match line.strip_prefix(start) {
                Some(text) => self.line(format_args!("{start}{}", paint.paint(style, text))),
                None => self.line(line),
            }
        }
    }

    /// Adds a text: in one line if wide, otherwise broken into lines.
    pub(crate) fn fitted(&mut self, wide: bool, first: &str, rest: &str, text: &str) {
        match wide {
            true => self.line(format_args!("{first}{text}")),
            false => self.wrapped(first, rest, text),
        }
    }

    /// Adds an empty line.
    pub(crate) fn gap(&mut self) {
        self.0.push('\n');
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text for a terminal. Without colours, all colour marks are removed, wherever they come
    /// from.
    fn coloured(&self, paint: Paint) -> String {
        let mut out = String::with_capacity(self.0.len());
        for c in self.0.chars() {
            match code_of(c) {
                Some(code) if paint.on => out.push_str(&format!("\u{1b}[{code}m")),
                Some(_) => {}
                None => out.push(c),
            }
        }
        out
    }
}

impl<L: fmt::Display> FromIterator<L> for Printout {
    fn from_iter<I: IntoIterator<Item = L>>(lines: I) -> Self {
        let mut text = Self::default();
        lines.into_iter().for_each(|line| text.line(line));
        text
    }
}

/// The columns that text fits into, unless a single word is longer.
pub(crate) const WIDTH: usize = 80;

/// How many columns a text takes, without its colour marks and with escapes as they are shown.
pub(crate) fn shown_width(text: &str) -> usize {
    let plain: String = text.chars().filter(|c| code_of(*c).is_none()).collect();
    visible(&plain).to_string().width()
}

/// Ends a colour inside a [`Printout`]. Colours are marked with characters that Unicode reserves
/// for internal use, and are replaced by terminal codes only at the very end. So a code in a name
/// or a message is never mistaken for ours. A name that contains such a mark can colour only its
/// own line.
const PLAIN_AGAIN: char = '\u{fdd0}';
const BOLD: char = '\u{fdd1}';
const DIM: char = '\u{fdd2}';
const RED: char = '\u{fdd3}';
const GREEN: char = '\u{fdd4}';
const YELLOW: char = '\u{fdd5}';
const CYAN: char = '\u{fdd6}';

/// The terminal code for a colour mark.
fn code_of(mark: char) -> Option<&'static str> {
    match mark {
        PLAIN_AGAIN => Some("0"),
        BOLD => Some("1"),
        DIM => Some("2"),
        RED => Some("31"),
        GREEN => Some("32"),
        YELLOW => Some("33"),
        CYAN => Some("36"),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    pub(crate) on: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    #[default]
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Paint {
    /// Colours a part of a line of a [`Printout`].
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        let mark = match style {
            Style::Plain => return text.to_owned(),
            Style::Bold => BOLD,
            Style::Dim => DIM,
            Style::Red => RED,
            Style::Green => GREEN,
            Style::Yellow => YELLOW,
            Style::Cyan => CYAN,
        };
        if self.on { format!("{mark}{}{PLAIN_AGAIN}", visible(text)) } else { text.to_owned() }
    }
}

/// The first few names, and how many more there are.
pub(crate) fn first_few<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let more = names.len().saturating_sub(SHOWN);
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

#[cfg(test)]
mod tests {
    use aviary_api::visible::is_hidden;

    use super::*;

    const HOSTILE: &str = "x\u{1b}[31m\r\nforged\u{9b}2J\u{202e}\u{200b}\u{fdd3}y";

    /// Every kind of output, with the given text in every place.
    fn printed(on: bool) -> String {
        let paint = Paint { on };
        let mut table = Table::default();
        table.head(&["NAME", "MESSAGE"]);
        table.row([(Style::Bold, HOSTILE.to_owned()), (Style::Plain, HOSTILE.to_owned())]);
        let mut text = table.render(paint);
        text.line(format_args!(
            "{}  {HOSTILE}  {}",
            paint.paint(Style::Red, HOSTILE),
            paint.paint(Style::Dim, "ok")
        ));
        text.add(&[HOSTILE].into_iter().collect());
        text.coloured(paint)
    }

    #[test]
    fn columns_line_up_beside_wide_characters() {
        let mut table = Table::default();
        table.row([(Style::Plain, "名前".to_owned()), (Style::Plain, "x".to_owned())]);
        table.row([(Style::Plain, "name".to_owned()), (Style::Plain, "y".to_owned())]);
        assert_eq!(table.render(Paint { on: false }).coloured(Paint { on: false }), "  名前  x\n  name  y\n");
    }

    #[test]
    fn text_is_broken_between_words_and_never_inside_one() {
        let paint = Paint { on: true };
        let mut out = Printout::default();
        let text = format!("{} {} end", paint.paint(Style::Red, "state"), "word ".repeat(30).trim_end());
        out.wrapped("- ", "  ", &text);
        out.wrapped("- ", "  ", &"x".repeat(100));
        let plain = out.coloured(Paint { on: false });
        let lines: Vec<&str> = plain.lines().collect();
        assert_eq!(lines.iter().map(|line| line.len()).collect::<Vec<_>>(), [77, 76, 10, 102]);
        assert!(lines[1].starts_with("  word") && lines[2] == "  word end", "{plain}");
    }

    #[test]
    fn yaml_shows_everything_and_means_the_same() {
        let value = serde_json::json!({
            "a": HOSTILE, HOSTILE: ["plain", HOSTILE, "escaped0end", "two\nlines"], "b": {"c": 1, "d": null},
        });
        let yaml = visible_yaml(&value).unwrap();
        assert!(!yaml.chars().any(|c| c != '\n' && is_hidden(c)), "{yaml:?}");
        let read: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(read, value, "{yaml}");
    }

    #[test]
    fn a_line_stays_a_line_whatever_it_is_made_of() {
        let plain = printed(false);
        assert!(!plain.chars().any(|c| c != '\n' && is_hidden(c)), "{plain:?}");
        assert_eq!(plain.lines().count(), 4, "{plain}");

        let coloured = printed(true);
        let ours = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m"];
        let rest = ours.iter().fold(coloured.clone(), |text, code| text.replace(code, ""));
        assert!(!rest.chars().any(|c| c != '\n' && is_hidden(c)), "{rest:?}");
        assert_eq!(rest.lines().count(), 4, "{rest}");
        // A colour mark in a name has no effect beyond its line.
        let unclosed = |line: &&str| {
            line.matches("\u{1b}[").count() > 0
                && !line.ends_with("\u{1b}[0m")
                && line.rfind("\u{1b}[") != line.rfind("\u{1b}[0m")
        };
        assert_eq!(coloured.lines().find(unclosed), None);
    }
}
