//! One harness for all transcripts: files in a directory of their own, the real binary, and what it
//! printed as text.
//!
//! A transcript is the command line, standard output as it is, standard error with `! ` before each
//! line, and the exit code where it is not 0.

#![allow(dead_code, reason = "every test file uses its own part of the harness")]
#![allow(clippy::unwrap_used, reason = "a harness of tests")]

pub(crate) mod worlds;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory to run commands in.
pub(crate) struct Desk {
    directory: PathBuf,
    input: Vec<u8>,
}

/// Creates an empty directory, named after the test.
pub(crate) fn desk(name: &str) -> Desk {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    Desk { directory, input: Vec::new() }
}

impl Desk {
    pub(crate) fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Sets the standard input of the next commands.
    pub(crate) fn input(self, text: impl AsRef<[u8]>) -> Self {
        Self { input: text.as_ref().to_vec(), ..self }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aviary"));
        command
            .args(words(arguments))
            .current_dir(&self.directory)
            .env_remove("NO_COLOR")
            .env_remove("COLUMNS");
        command
    }

    pub(crate) fn output(&self, arguments: &str) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that reads no input may exit before all of it is written.
        let _ = child.stdin.take().unwrap().write_all(&self.input);
        child.wait_with_output().unwrap()
    }

    /// The transcript of one command.
    pub(crate) fn run(&self, arguments: &str) -> String {
        told(&format!("aviary {arguments}"), &self.output(arguments))
    }

    #[track_caller]
    pub(crate) fn check(&self, arguments: &str, expected: &expect_test::Expect) {
        expected.assert_eq(&self.run(arguments));
    }

    /// Parses standard output; checks the exit code.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &str, code: i32) -> serde_json::Value {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Formats the transcript of a command.
pub(crate) fn told(line: &str, output: &Output) -> String {
    let mut told = format!("$ {line}\n");
    // Trailing white space is ignored, because editors remove it.
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        told.push_str(line.trim_end());
        told.push('\n');
    }
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        told.push_str(format!("! {line}").trim_end());
        told.push('\n');
    }
    match output.status.code() {
        Some(0) => {}
        Some(code) => told.push_str(&format!("exit {code}\n")),
        None => told.push_str("killed\n"),
    }
    told
}

/// Splits a command line into words, with support for single quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Writes whole numbers as such: `0.0` and `0` are the same to an API server.
pub(crate) fn plain_numbers(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
            if let Some(whole) = whole {
                *value = (whole as i64).into();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(plain_numbers),
        Value::Object(map) => map.values_mut().for_each(plain_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
