//! Follows a page like a reader: one directory, a shell for each command, and terminals for
//! commands that keep running.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};

use super::page::{Block, Command, blocks};

pub(crate) struct Player {
    page: &'static str,
    directory: PathBuf,
    environment: BTreeMap<String, String>,
    terminals: Vec<Terminal>,
}

/// A command that keeps running. It ends with the test.
struct Terminal(Child);

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Player {
    /// Follows `docs/PAGE.md`.
    pub(crate) fn new(page: &'static str) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(page);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let ours = Path::new(env!("CARGO_BIN_EXE_aviary")).parent().unwrap();
        let path = format!("{}:{}", ours.display(), std::env::var("PATH").unwrap());
        let environment = BTreeMap::from([("PATH".to_owned(), path)]);
        Self { page, directory, environment, terminals: Vec::new() }
    }

    /// Adds a folder in which programs are found.
    #[allow(dead_code, reason = "only one of the pages needs it")]
    pub(crate) fn with_programs(mut self, folder: &Path) -> Self {
        if let Some(path) = self.environment.get_mut("PATH") {
            *path = format!("{}:{path}", folder.display());
        }
        self
    }

    /// Does everything that the page says.
    pub(crate) fn follow(mut self) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/{}.md", self.page));
        let text = std::fs::read_to_string(file).unwrap();
        for block in blocks(&text) {
            match block {
                Block::File { name, text } => self.write(&name, &text),
                Block::Commands { commands, exit } => {
                    let last = commands.len() - 1;
                    for (index, command) in commands.iter().enumerate() {
                        self.run(command, if index == last { exit } else { 0 });
                    }
                }
                Block::KeepsRunning(command) => self.start(&command),
            }
        }
        self.stop();
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.join(name), text).unwrap();
    }

    fn shell(&self, typed: &str) -> Process {
        let mut shell = Process::new("bash");
        shell.args(["-c", typed]).current_dir(&self.directory).envs(&self.environment).stdin(Stdio::null());
        shell
    }

    fn run(&mut self, command: &Command, exit: i32) {
        if let Some(assignment) = command.typed.strip_prefix("export ") {
            let (name, value) = assignment.split_once('=').unwrap();
            let value = value.replace("$PWD", self.directory.to_str().unwrap());
            self.environment.insert(name.to_owned(), value);
            return;
        }
        let output = self.shell(&command.typed).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.code() == Some(exit) && command.is_told_by(&printed),
            "docs/{}.md:{}: $ {}\nsays:\n{}\nprinted ({}, expected {exit}):\n{printed}{}",
            self.page,
            command.line,
            command.typed,
            command.prints,
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Starts a command that keeps running, and reads its output until it is ready.
    fn start(&mut self, command: &Command) {
        let mut typed = format!("exec {}", command.typed);
        if command.typed.starts_with("aviary hub") {
            // The default port may be in use on the test machine.
            typed.push_str(" --listen 127.0.0.1:0");
        }
        let mut child = self.shell(&typed).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        self.terminals.push(Terminal(child));
        let mut printed = String::new();
        while !printed.contains("Ctrl-C") {
            printed.push_str(&lines.next().expect("it to say that it runs").unwrap());
            printed.push('\n');
        }
        assert!(
            command.is_told_by(&printed),
            "docs/{}.md:{}: $ {}\nsays:\n{}\nprinted:\n{printed}",
            self.page,
            command.line,
            command.typed,
            command.prints
        );
        // Later output is ignored, and must not block the process.
        std::thread::spawn(move || lines.for_each(drop));
    }

    /// Sends Ctrl-C to every terminal, the last one first.
    fn stop(mut self) {
        while let Some(mut terminal) = self.terminals.pop() {
            let pid = terminal.0.id().to_string();
            // Only a shell reliably has `kill`.
            assert!(Process::new("sh").args(["-c", "kill -INT \"$0\"", &pid]).status().unwrap().success());
            let ended = terminal.0.wait().unwrap();
            assert!(ended.success(), "{ended}");
        }
    }
}
