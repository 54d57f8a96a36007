//! A child process with its output as lines.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use crate::GIVE_UP;

/// A child process. It ends with the test, and a failing test shows its standard error.
#[derive(Debug)]
pub struct Process {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    printed: String,
}

impl Process {
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let out = lines(child.stdout.take().unwrap());
        let err = lines(child.stderr.take().unwrap());
        Self { child, out, err, printed: String::new() }
    }

    /// Starts it, and waits for a line with `text`.
    #[track_caller]
    pub fn start_until(command: Command, text: &str) -> Self {
        let mut process = Self::start(command);
        loop {
            let line = process.line();
            process.printed.push_str(&line);
            process.printed.push('\n');
            if line.contains(text) {
                return process;
            }
        }
    }

    /// The output when [`Self::start_until`] returned.
    pub fn printed(&self) -> &str {
        &self.printed
    }

    /// The last word of the line in [`Self::printed`] that starts with `label`.
    #[track_caller]
    pub fn word(&self, label: &str) -> &str {
        let line = self.printed.lines().find(|line| line.trim_start().starts_with(label));
        let line = line.unwrap_or_else(|| panic!("no line begins with {label:?}: {}", self.printed));
        line.split_whitespace().last().unwrap()
    }

    /// The base URL that it printed after `label`; loopback if it listens on all addresses.
    #[track_caller]
    pub fn address(&self, label: &str) -> String {
        let url = self.word(label);
        let end = url.find("://").map_or(0, |at| at + 3);
        let end = url[end..].find('/').map_or(url.len(), |at| end + at);
        url[..end].replace("0.0.0.0", "127.0.0.1")
    }

    /// A memory figure of Linux, such as `VmHWM`, in MB.
    pub fn memory(&self, figure: &str) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(figure)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
    }

    /// The next line of standard output.
    #[track_caller]
    pub fn line(&self) -> String {
        self.out.recv_timeout(GIVE_UP).expect("a line of standard output")
    }

    /// Waits for a line of standard error that contains all of these parts.
    #[track_caller]
    pub fn complains(&self, parts: &[&str]) {
        let is_it = |line: &String| parts.iter().all(|part| line.contains(part));
        while !is_it(&self.err.recv_timeout(GIVE_UP).unwrap_or_else(|_| panic!("no line has {parts:?}"))) {}
    }

    /// The lines of standard error up to one that contains `text`, with it.
    #[track_caller]
    pub fn log_until(&self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        while !lines.last().is_some_and(|line: &String| line.contains(text)) {
            let line = self.err.recv_timeout(GIVE_UP);
            lines.push(line.unwrap_or_else(|_| panic!("no line has {text:?}: {lines:#?}")));
        }
        lines
    }

    /// The rest of its standard output, and its exit code. It must exit by itself.
    pub fn rest(mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        // The sender is dropped when the stream ends.
        while let Ok(line) = self.out.recv_timeout(GIVE_UP) {
            rest.push_str(&line);
            rest.push('\n');
        }
        (rest, self.child.wait().unwrap().code())
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        // Only a shell reliably has `kill`.
        let script = format!("kill -{name} {}", self.id());
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
    }

    /// Stops it with a signal; it must exit with 0. Returns the rest of its standard output.
    #[track_caller]
    pub fn stop(self, signal: &str) -> String {
        self.signal(signal);
        let (rest, code) = self.rest();
        assert_eq!(code, Some(0), "{rest}");
        rest
    }

    /// Stops it with a signal, and returns the lines of its standard error.
    pub fn stop_and_log(mut self, signal: &str) -> Vec<String> {
        self.signal(signal);
        self.child.wait().unwrap();
        // The sender is dropped when the stream ends.
        self.err.iter().collect()
    }

    /// Kills it, without a chance to clean up.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            self.err.iter().for_each(|line| eprintln!("{line}"));
        }
    }
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    receive
}
