//! One harness: a hub in a process of its own, and kubectl beside it. All that is waited for is an event with a time limit.
//!
//! kubectl's home is in the directory of the test, and it sees nothing of the environment but the path.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use expect_test::Expect;
use serde_json::Value;

use crate::mask::mask;
use crate::transcript::{Desk, desk, told, words};

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// The last line that a hub prints before it serves.
const READY: &str = "Stop it with Ctrl-C.";

/// The kubectl to test with, and the minor number of its version.
static KUBECTL: LazyLock<(String, u32)> = LazyLock::new(|| {
    let program = std::env::var("AVIARY_KUBECTL").unwrap_or_else(|_| "kubectl".into());
    let output = Command::new(&program).args(["version", "--client", "-o", "json"]).output();
    let output = output.unwrap_or_else(|error| {
        panic!("these tests need kubectl, and {program:?} cannot be run: {error}\nhack/install-kubectl.sh installs one; AVIARY_KUBECTL can name another")
    });
    let version: Value = serde_json::from_slice(&output.stdout).unwrap();
    let minor = version["clientVersion"]["minor"].as_str().unwrap().trim_end_matches('+').parse().unwrap();
    (program, minor)
});

/// A child process, whose lines are events. It does not outlive the test.
pub(crate) struct Process {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

impl Process {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = lines(child.stdout.take().unwrap());
        let err = lines(child.stderr.take().unwrap());
        Self { child, out, err }
    }

    /// The next line of standard output.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        self.out.recv_timeout(LIMIT).unwrap_or_else(|_| {
            panic!("no line came; standard error: {:?}", self.err.try_iter().collect::<Vec<_>>())
        })
    }

    /// Waits for a line of standard error that holds all of these.
    #[track_caller]
    pub(crate) fn complains(&self, parts: &[&str]) {
        let is_it = |line: &String| parts.iter().all(|part| line.contains(part));
        while !is_it(&self.err.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("no line had {parts:?}"))) {}
    }

    /// What it prints to its end, which must come by itself, and its exit code.
    pub(crate) fn rest(mut self) -> (String, Option<i32>) {
        let mut told = String::new();
        // The sender is gone when the stream has ended.
        while let Ok(line) = self.out.recv_timeout(LIMIT) {
            told.push_str(&line);
            told.push('\n');
        }
        (told, self.child.wait().unwrap().code())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
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

/// A hub that runs, and the directory that its clients work in.
pub(crate) struct Hub {
    pub(crate) desk: Desk,
    process: Process,
    /// What it printed when it started.
    pub(crate) started: String,
}

/// Starts a hub in an empty directory, named after the test.
pub(crate) fn hub(name: &str) -> Hub {
    start(desk(&format!("kubectl-{name}")).file("home/.keep", ""), "--data-dir hub")
}

/// Starts a hub with these arguments. Its kubeconfig must come to `hub/kubeconfig`.
pub(crate) fn start(desk: Desk, arguments: &str) -> Hub {
    let process = Process::start(desk.command(&format!("hub {arguments} --listen 127.0.0.1:0")));
    let mut started = String::new();
    while !started.trim_end().ends_with(READY) {
        started.push_str(&process.line());
        started.push('\n');
    }
    Hub { desk, process, started }
}

impl Hub {
    pub(crate) fn file(mut self, name: &str, text: &str) -> Self {
        self.desk = self.desk.file(name, text);
        self
    }

    /// The add-on of `examples/canary` as files in `canary`.
    pub(crate) fn with_canary(mut self) -> Self {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/canary");
        for entry in fs::read_dir(example).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("canary/{}", path.file_name().unwrap().to_string_lossy());
            self.desk = self.desk.file(&name, fs::read(path).unwrap());
        }
        self
    }

    pub(crate) fn kubectl_is_at_least(&self, minor: u32) -> bool {
        KUBECTL.1 >= minor
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let home = self.desk.path("home");
        let mut command = Command::new(&KUBECTL.0);
        command.args(words(arguments)).current_dir(self.desk.path("")).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("KUBECONFIG", self.desk.path("hub/kubeconfig")).env("HOME", &home).env("TMPDIR", &home);
        command
    }

    pub(crate) fn output(&self, arguments: &str, input: &[u8]) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that reads no input may be gone before all of it is written.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    /// Runs a line: `kubectl` commands joined by pipes, the first word left out.
    pub(crate) fn run(&self, line: &str) -> String {
        let mut output: Option<Output> = None;
        for arguments in line.split(" | ") {
            let input = output.map(|output| output.stdout).unwrap_or_default();
            output = Some(self.output(arguments, &input));
        }
        let shown = line.split(" | ").map(|arguments| format!("kubectl {arguments}")).collect::<Vec<_>>();
        self.masked(&told(&shown.join(" | "), &output.unwrap()))
    }

    pub(crate) fn masked(&self, text: &str) -> String {
        mask(text, &self.desk.path(""))
    }

    /// The transcript of commands, one in each line.
    #[track_caller]
    pub(crate) fn check(&self, script: &str, expected: &Expect) {
        let lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
        expected.assert_eq(&lines.map(|line| self.run(line)).collect::<Vec<_>>().join("\n"));
    }

    /// Commands that must succeed and whose words do not matter here.
    #[track_caller]
    pub(crate) fn given(&self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let told = self.run(line);
            assert!(!told.contains("\nexit "), "{told}");
        }
    }

    /// A command that fails with these words, which every kubectl puts into a sentence of its own.
    #[track_caller]
    pub(crate) fn refuses(&self, line: &str, words: &[&str]) {
        let told = self.run(line);
        assert!(told.ends_with("exit 1\n"), "{told}");
        for word in words {
            assert!(told.contains(word), "no {word:?} in {told}");
        }
    }

    #[track_caller]
    pub(crate) fn json(&self, arguments: &str) -> Value {
        let output = self.output(arguments, b"");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// A kubectl that goes on beside the others.
    pub(crate) fn beside(&self, arguments: &str) -> Process {
        Process::start(self.command(arguments))
    }

    /// A manager that works on this hub, and decides placements too.
    pub(crate) fn manager(&self) -> Process {
        let process =
            Process::start(self.desk.command("manager --kubeconfig hub/kubeconfig --placement --verify"));
        while !process.line().ends_with(READY) {}
        process
    }

    /// Writes a condition as a controller does: the object as it is, with another status, to its own endpoint. `replace --raw`
    /// is what all versions have for that.
    #[track_caller]
    pub(crate) fn set_condition(&self, object: &str, path: &str, kind: &str, status: &str) {
        let mut value = self.json(&format!("get {object} -o json"));
        value["status"] = serde_json::json!({"conditions": [{
            "type": kind, "status": status, "reason": "Told", "message": "as told", "lastTransitionTime": "2024-01-01T00:00:00Z",
        }]});
        fs::write(self.desk.path("status.json"), value.to_string()).unwrap();
        let output = self.output(&format!("replace --raw {path}/status -f status.json"), b"");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Asks the hub to stop, and waits until it has. Gives back its directory.
    #[track_caller]
    pub(crate) fn stop(self) -> Desk {
        let Self { desk, process, .. } = self;
        let pid = process.child.id().to_string();
        // Only a shell can be relied on to have `kill`.
        let killed = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &pid]).status().unwrap();
        assert!(killed.success());
        let (told, code) = process.rest();
        assert_eq!((told.as_str(), code), ("The hub has stopped.\n", Some(0)));
        desk
    }
}
