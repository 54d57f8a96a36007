//! The harness: a hub as a separate process, and kubectl. Every wait is for an event, with a time
//! limit.
//!
//! kubectl's home is in the directory of the test, and its environment contains only the path.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

pub(crate) use aviary_testing::Process;
use expect_test::Expect;
use serde_json::Value;

use crate::mask::mask;
use crate::transcript::{Desk, desk, told, words};

/// The last line that a hub prints before it serves.
const READY: &str = "Press Ctrl-C to stop.";

/// The kubectl under test, and the minor number of its version.
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

/// Starts a hub with these arguments. Its kubeconfig must be `hub/kubeconfig`.
pub(crate) fn start(desk: Desk, arguments: &str) -> Hub {
    let process = Process::start_until(desk.command(&format!("hub {arguments} --listen 127.0.0.1:0")), READY);
    let started = process.printed().to_owned();
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
        // A command that reads no input may exit before all of it is written.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    /// Runs a line: `kubectl` commands joined by pipes, without the first word.
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

    /// Checks the transcript of commands, one per line.
    #[track_caller]
    pub(crate) fn check(&self, script: &str, expected: &Expect) {
        let lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
        expected.assert_eq(&lines.map(|line| self.run(line)).collect::<Vec<_>>().join("\n"));
    }

    /// Runs commands that must succeed; their output is ignored.
    #[track_caller]
    pub(crate) fn given(&self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let told = self.run(line);
            assert!(!told.contains("\nexit "), "{told}");
        }
    }

    /// Runs a command that must fail with these words; the sentence around them depends on the
    /// version of kubectl.
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

    /// Runs a kubectl in the background.
    pub(crate) fn beside(&self, arguments: &str) -> Process {
        Process::start(self.command(arguments))
    }

    /// A manager on this hub, which also decides placements.
    pub(crate) fn manager(&self) -> Process {
        Process::start_until(
            self.desk.command("manager --kubeconfig hub/kubeconfig --placement --verify"),
            READY,
        )
    }

    /// Writes a condition as a controller does: the object with another status, to the status
    /// endpoint. All versions of kubectl support `replace --raw` for that.
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

    /// Stops the hub, and returns its directory.
    #[track_caller]
    pub(crate) fn stop(self) -> Desk {
        let Self { desk, process, .. } = self;
        assert_eq!(process.stop("TERM"), "Hub stopped.\n");
        desk
    }
}
