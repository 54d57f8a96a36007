//! What people and programs see: text with colours where they help, tables, and data in a stable form.
//!
//! A reader that goes away (`| head`) is no error: what is left is dropped, and the exit code stays what it would have been.

use std::fmt;
use std::io::{self, Write};

use anyhow::Context as _;
pub(crate) use aviary_engine::verdict::counted;
use clap::ValueEnum;
use serde::Serialize;

use crate::commands::Outcome;
use crate::findings::Finding;

/// The form of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Yaml,
    // No doc comment: help would give every format a line of its own.
    Wide,
}

/// Standard output and standard error.
pub(crate) struct Output {
    pub(crate) paint: Paint,
    format: Option<Format>,
    stdout: Box<dyn Write>,
    stderr: Box<dyn Write>,
    /// Nobody reads any more.
    closed: bool,
    /// Standard output is a terminal, which can be drawn on.
    terminal: bool,
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
        format: Option<Format>,
        stdout: Box<dyn Write>,
        stderr: Box<dyn Write>,
    ) -> Self {
        Self { paint, format, stdout, stderr, closed: false, terminal: false }
    }

    /// Says whether standard output is a terminal.
    pub(crate) fn on_terminal(self, terminal: bool) -> Self {
        Self { terminal, ..self }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Draws over what the terminal shows.
    pub(crate) fn redraw(&mut self, picture: &str) -> anyhow::Result<()> {
        // Line by line and then to the end, so that nothing flickers.
        let lines: String = picture.lines().map(|line| format!("{line}\u{1b}[K\n")).collect();
        self.text(&format!("\u{1b}[H{lines}\u{1b}[J"))?;
        self.finish()
    }

    pub(crate) fn format(&self) -> Option<Format> {
        self.format.filter(|format| *format != Format::Wide)
    }

    /// Text without anything left out is asked for.
    pub(crate) fn is_wide(&self) -> bool {
        self.format == Some(Format::Wide)
    }

    /// Prints text as it is.
    pub(crate) fn text(&mut self, text: &str) -> anyhow::Result<()> {
        if self.closed {
            return Ok(());
        }
        let written = self.stdout.write_all(text.as_bytes());
        self.unless_closed(written)
    }

    /// Prints a value, if data was asked for; says whether it was.
    pub(crate) fn data(&mut self, value: &impl Serialize) -> anyhow::Result<bool> {
        let Some(format) = self.format else { return Ok(false) };
        let text = match format {
            Format::Json => {
                serde_json::to_string_pretty(value).context("failed to write the result as JSON")? + "\n"
            }
            Format::Yaml => serde_saphyr::to_string(value).context("failed to write the result as YAML")?,
            Format::Wide => return Ok(false),
        };
        self.text(&text)?;
        Ok(true)
    }

    /// One line on standard error.
    pub(crate) fn complaint(&mut self, line: &str) {
        // There is nowhere left to say that this failed.
        let _ = writeln!(self.stderr, "{line}");
    }

    /// Says what is wrong with the input, and that nothing was done.
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

/// Colours, or none.
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
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Plain => return text.to_owned(),
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Red => "31",
            Style::Green => "32",
            Style::Yellow => "33",
            Style::Cyan => "36",
        };
        if self.on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Columns that line up, each as wide as its widest cell; numbers to the right.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<(Style, String)>>,
}

impl Table {
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (Style, String)>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn head(&mut self, names: &[&str]) {
        self.row(names.iter().map(|name| (Style::Dim, (*name).to_owned())));
    }

    /// The table, each line indented by two.
    pub(crate) fn render(&self, paint: Paint) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<(Style, String)>, column: usize| row.get(column).cloned().unwrap_or_default();
        let widths: Vec<usize> = (0..columns)
            .map(|column| self.rows.iter().map(|row| cell(row, column).1.chars().count()).max().unwrap_or(0))
            .collect();
        let numeric: Vec<bool> = (0..columns).map(|column| self.is_numeric(column)).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (&width, &right)) in widths.iter().zip(&numeric).enumerate() {
                let (style, text) = cell(row, column);
                let padding = " ".repeat(width.saturating_sub(text.chars().count()));
                let text = paint.paint(style, &text);
                line.push_str("  ");
                line.push_str(&if right { padding + &text } else { text + &padding });
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    fn is_numeric(&self, column: usize) -> bool {
        let mut cells =
            self.rows.iter().skip(1).filter_map(|row| row.get(column)).map(|(_, text)| text.as_str());
        let number = |text: &str| text.chars().all(|c| c.is_ascii_digit() || matches!(c, '%' | '-' | '.'));
        self.rows.len() > 1 && cells.all(number)
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
