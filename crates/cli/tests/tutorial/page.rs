//! Parses the files and commands of a documentation page.

use regex::Regex;

#[derive(Debug)]
pub(crate) enum Block {
    File { name: String, text: String },
    Commands { commands: Vec<Command>, exit: i32 },
    KeepsRunning(Command),
}

/// A command line, its line number, and its expected output.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) line: usize,
    pub(crate) typed: String,
    pub(crate) prints: String,
}

/// The blocks of a page, in order. A fence without a file name or `console` is ignored.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        match info.split_whitespace().collect::<Vec<_>>()[..] {
            ["yaml", name] => blocks.push(Block::File { name: name.into(), text: body.join("\n") + "\n" }),
            ["console"] => blocks.push(Block::Commands { commands: commands(at, &body), exit: 0 }),
            ["console", "keeps-running"] => {
                let mut commands = commands(at, &body);
                assert_eq!(commands.len(), 1, "line {}: one terminal runs one command", at + 1);
                blocks.push(Block::KeepsRunning(commands.remove(0)));
            }
            ["console", exit] => {
                let code = exit.strip_prefix("exit=").and_then(|code| code.parse().ok());
                let exit = code.unwrap_or_else(|| panic!("line {}: {exit:?} is no exit code", at + 1));
                blocks.push(Block::Commands { commands: commands(at, &body), exit });
            }
            _ => panic!("line {}: nobody would run ```{info}", at + 1),
        }
    }
    assert!(blocks.len() > 10, "the page is there");
    blocks
}

fn commands(at: usize, body: &[&str]) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for (index, line) in body.iter().enumerate() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(typed), _) => {
                commands.push(Command { line: at + index + 2, typed: typed.into(), prints: String::new() });
            }
            (None, Some(command)) => {
                command.prints.push_str(line);
                command.prints.push('\n');
            }
            (None, None) => panic!("line {}: output of no command", at + index + 2),
        }
    }
    commands
}

impl Command {
    /// Whether the output matches, except for what the page leaves out.
    pub(crate) fn is_told_by(&self, printed: &str) -> bool {
        let mut pattern = String::from("^");
        for line in self.prints.lines() {
            if line == "…" {
                pattern.push_str("(?:.*\n)*?");
            } else {
                let parts: Vec<String> = line.split('…').map(regex::escape).collect();
                pattern.push_str(&parts.join(".*"));
                pattern.push('\n');
            }
        }
        pattern.push('$');
        let ends = if printed.is_empty() || printed.ends_with('\n') { "" } else { "\n" };
        Regex::new(&pattern).unwrap().is_match(&format!("{printed}{ends}"))
    }
}
