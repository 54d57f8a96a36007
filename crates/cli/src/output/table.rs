//! Tables with aligned columns, and what becomes of them where they do not fit.

use aviary_api::visible::visible;
use unicode_width::UnicodeWidthStr as _;

use super::{Paint, Printout, Style, WIDTH};

/// A table with aligned columns, each as wide as its widest cell; numbers are right-aligned.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<(Style, String)>>,
}

impl Table {
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (Style, String)>) {
        // Escapes here, so that column widths match what is shown.
        let shown = |(style, text): (Style, String)| (style, visible(&text).to_string());
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    pub(crate) fn head(&mut self, names: &[&str]) {
        self.row(names.iter().map(|name| (Style::Dim, (*name).to_owned())));
    }

    /// Renders the table, indented by two spaces.
    pub(crate) fn render(&self, paint: Paint) -> Printout {
        let columns = self.columns();
        let cell = |row: &Vec<(Style, String)>, column: usize| row.get(column).cloned().unwrap_or_default();
        let widths: Vec<usize> = (0..columns).map(|column| self.column_width(column)).collect();
        let numeric: Vec<bool> = (0..columns).map(|column| self.is_numeric(column)).collect();
        let mut out = Printout::default();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (&width, &right)) in widths.iter().zip(&numeric).enumerate() {
                let (style, text) = cell(row, column);
                let padding = " ".repeat(width.saturating_sub(text.width()));
                let text = paint.paint(style, &text);
                line.push_str("  ");
                line.push_str(&if right { padding + &text } else { text + &padding });
            }
            out.line(line.trim_end());
        }
        out
    }

    fn is_numeric(&self, column: usize) -> bool {
        let mut cells =
            self.rows.iter().skip(1).filter_map(|row| row.get(column)).map(|(_, text)| text.as_str());
        let number = |text: &str| text.chars().all(|c| c.is_ascii_digit() || matches!(c, '%' | '-' | '.'));
        self.rows.len() > 1 && cells.all(number)
    }

    /// Renders the table with the first cell of a row on a line of its own where the row would not
    /// fit into [`WIDTH`] columns otherwise.
    pub(crate) fn with_long_names_above(&self, paint: Paint) -> Printout {
        let others: usize = (1..self.columns()).map(|column| self.column_width(column) + 2).sum();
        let room = WIDTH.saturating_sub(others + 2);
        let is_long = |row: &[(Style, String)]| row.first().is_some_and(|(_, name)| name.width() > room);
        let mut short = Self::default();
        for row in &self.rows {
            let mut row = row.clone();
            if is_long(&row)
                && let Some((_, name)) = row.first_mut()
            {
                name.clear();
            }
            short.rows.push(row);
        }
        let mut out = Printout::default();
        for (line, row) in short.render(paint).0.lines().zip(&self.rows) {
            if is_long(row)
                && let Some((style, name)) = row.first()
            {
                out.line(format_args!("  {}", paint.paint(*style, name)));
            }
            out.line(line);
        }
        out
    }

    /// Renders the table so that it fits into [`WIDTH`] columns, unless a single word is longer. If
    /// the last column does not fit, it is on lines of its own below each row. If the others do not
    /// fit either, every row becomes a list of its cells.
    pub(crate) fn fitted(&self, paint: Paint) -> Printout {
        if self.is_narrow() {
            return self.render(paint);
        }
        let columns = self.columns();
        match columns.checked_sub(1).filter(|last| *last > 0 && self.width(Some(*last)) <= WIDTH) {
            Some(last) => self.with_last_below(last, paint),
            None => self.as_lists(paint),
        }
    }

    fn with_last_below(&self, last: usize, paint: Paint) -> Printout {
        let others =
            Self { rows: self.rows.iter().map(|row| row.iter().take(last).cloned().collect()).collect() };
        let mut out = Printout::default();
        let lines = others.render(paint);
        for (index, (line, row)) in lines.0.lines().zip(&self.rows).enumerate() {
            // Its lines need no heading: they are under the row that they belong to.
            out.line(line);
            if let Some((style, text)) = row.get(last).filter(|(_, text)| index > 0 && !text.is_empty()) {
                out.wrapped_in(*style, paint, "      ", "      ", text);
            }
        }
        out
    }

    fn as_lists(&self, paint: Paint) -> Printout {
        let mut out = Printout::default();
        let Some((head, rows)) = self.rows.split_first() else { return out };
        let names: Vec<String> = head.iter().map(|(_, name)| name.to_lowercase()).collect();
        let width = names.iter().skip(1).map(|name| name.width()).max().unwrap_or(0);
        for row in rows {
            for (column, (style, text)) in row.iter().enumerate() {
                let name = names.get(column).map(String::as_str).unwrap_or_default();
                if column == 0 {
                    out.wrapped_in(*style, paint, "  ", "    ", text);
                } else if !text.is_empty() {
                    let padded = format!("{name}{}", " ".repeat(width.saturating_sub(name.width())));
                    let first = format!("    {}  ", paint.paint(Style::Dim, &padded));
                    out.wrapped_in(*style, paint, &first, &" ".repeat(width + 6), text);
                }
            }
        }
        out
    }

    /// Whether it fits into [`WIDTH`] columns as it is.
    pub(crate) fn is_narrow(&self) -> bool {
        self.width(None) <= WIDTH
    }

    /// How wide the table is, with all columns or those before the given one.
    fn width(&self, before: Option<usize>) -> usize {
        let columns = before.unwrap_or_else(|| self.columns());
        (0..columns).map(|column| self.column_width(column) + 2).sum()
    }

    fn columns(&self) -> usize {
        self.rows.iter().map(Vec::len).max().unwrap_or(0)
    }

    fn column_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|(_, text)| text.width()).max().unwrap_or(0)
    }
}

/// Names with a text each, one below the other. Fits into [`WIDTH`] columns if asked to.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    rows: Vec<(&'static str, Style, String)>,
}

impl Facts {
    pub(crate) fn add(&mut self, name: &'static str, style: Style, text: impl Into<String>) {
        self.rows.push((name, style, text.into()));
    }

    pub(crate) fn render(&self, wide: bool, paint: Paint) -> Printout {
        let width = self.rows.iter().map(|(name, ..)| name.width()).max().unwrap_or(0);
        let mut out = Printout::default();
        for (name, style, text) in &self.rows {
            let padded = format!("{name}{}", " ".repeat(width.saturating_sub(name.width())));
            let first = format!("  {}  ", paint.paint(Style::Dim, &padded));
            match wide {
                true => out.line(format_args!("{first}{}", paint.paint(*style, text))),
                false => out.wrapped_in(*style, paint, &first, &" ".repeat(width + 4), text),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(message: &str, name: &str) -> String {
        let mut table = Table::default();
        table.head(&["NAME", "COUNT", "MESSAGE"]);
        for row in [[name, "7", message], ["b", "12", "short"]] {
            table.row(row.map(|cell| (Style::Plain, cell.to_owned())));
        }
        // A line without indentation, so that the indentation of the others is compared.
        format!("table\n{}", table.fitted(Paint { on: false }).coloured(Paint { on: false }))
    }

    #[test]
    fn a_long_name_does_not_widen_the_table_for_the_others() {
        let mut table = Table::default();
        table.head(&["NAME", "COUNT"]);
        let long = "name-".repeat(40);
        for (name, count) in [("short", "1"), (&long, "22")] {
            table.row([name, count].map(|cell| (Style::Plain, cell.to_owned())));
        }
        let told = table.with_long_names_above(Paint { on: false }).coloured(Paint { on: false });
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines, ["  NAME   COUNT", "  short      1", &format!("  {long}"), "            22"]);
    }

    #[test]
    fn a_table_that_does_not_fit_puts_its_last_column_below_or_becomes_lists() {
        expect_test::expect![[r#"
            table
              NAME  COUNT  MESSAGE
              a         7  short
              b        12  short
        "#]]
        .assert_eq(&table("short", "a"));
        let long = "words that go on and on and ".repeat(4);
        expect_test::expect![[r#"
            table
              NAME  COUNT
              a         7
                  words that go on and on and words that go on and on and words that go on
                  and on and words that go on and on and
              b        12
                  short
        "#]]
        .assert_eq(&table(&long, "a"));
        expect_test::expect![[r#"
            table
              name-name-name-name-name-name-name-name-name-name-name-name-name-name-name-
                count    7
                message  words that go on and on and words that go on and on and words that
                         go on and on and words that go on and on and
              b
                count    12
                message  short
        "#]]
        .assert_eq(&table(&long, &"name-".repeat(15)));
        for told in [table(&long, "a"), table(&long, &"name-".repeat(15))] {
            assert!(told.lines().all(|line| line.width() <= WIDTH), "{told}");
        }
    }
}
