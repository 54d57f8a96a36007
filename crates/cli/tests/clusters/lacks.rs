//! The lane reports what a machine lacks, with an exit code of its own.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::lane::root;

#[test]
fn without_root_the_lane_says_so_and_exits_with_3() {
    // Other users may not be able to read the clone.
    let copy = readable_copy(&["test-clusters.sh", "clusters.sh"]);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "bash"]);
    let output = command.arg(copy.path().join("hack/test-clusters.sh")).arg("--install").output().unwrap();
    assert_lacks(&output, "real clusters need root");
}

#[test]
fn without_go_the_lane_says_so_and_exits_with_3() {
    let cache = tempfile::tempdir().unwrap();
    let programs = all_programs_but("go");
    let mut command = Command::new(root().join("hack/test-clusters.sh"));
    command.arg("--install").env_clear();
    command.env("PATH", programs.path()).env("XDG_CACHE_HOME", cache.path());
    assert_lacks(&command.output().unwrap(), "there is no Go toolchain");
}

#[test]
fn on_another_architecture_the_lane_says_so_and_exits_with_3() {
    let programs = tempfile::tempdir().unwrap();
    fake(programs.path(), "uname", r#"[ "$1" = -m ] && echo aarch64 || echo Linux"#);
    let mut command = Command::new(root().join("hack/test-clusters.sh"));
    let output = command.arg("--install").env("PATH", path_after(programs.path())).output().unwrap();
    assert_lacks(&output, "run on x86_64 only, and this machine is aarch64");
}

#[test]
fn with_the_second_version_of_cgroups_the_lane_says_so_and_exits_with_3() {
    let mut command = Command::new("unshare");
    command.args(["--mount", "bash", "-euc"]);
    command.arg(
        r#"mount -t tmpfs tmpfs /sys/fs/cgroup; touch /sys/fs/cgroup/cgroup.controllers; "$0" --install"#,
    );
    let output = command.arg(root().join("hack/test-clusters.sh")).output().unwrap();
    assert_lacks(&output, "real clusters need cgroup v1");
}

#[test]
fn with_an_old_nsenter_the_lane_says_so_and_exits_with_3() {
    let programs = tempfile::tempdir().unwrap();
    fake(programs.path(), "nsenter", "echo ' -w, --wd[=<dir>]  set the working directory'");
    let mut command = Command::new(root().join("hack/test-clusters.sh"));
    let output = command.arg("--install").env("PATH", path_after(programs.path())).output().unwrap();
    assert_lacks(&output, "real clusters need nsenter of util-linux 2.38 or later");
}

/// Exit code 3 of our own command means that a rollout is in progress.
#[test]
fn clusters_that_cannot_be_started_are_reported_with_exit_code_1_and_leave_no_folder() {
    let programs = tempfile::tempdir().unwrap();
    fake(programs.path(), "uname", "echo Plan9");
    let folder = programs.path().join("clusters");
    let mut command = Command::new(env!("CARGO_BIN_EXE_aviary"));
    command.args(["clusters", "up", "1", "--dir"]).arg(&folder);
    let output = command.env("PATH", path_after(programs.path())).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("real clusters run on Linux only"), "{told}");
    assert!(!folder.exists());
}

/// A program that does what a line of bash says.
pub(crate) fn fake(folder: &Path, name: &str, line: &str) {
    let program = folder.join(name);
    fs::write(&program, format!("#!/bin/bash\n{line}\n")).unwrap();
    open(&program);
}

/// This folder, and then those of this machine.
pub(crate) fn path_after(folder: &Path) -> String {
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

#[track_caller]
fn assert_lacks(output: &Output, what: &str) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains(what), "{told}");
}

/// Scripts in a folder that every user can read.
fn readable_copy(scripts: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let hack = folder.path().join("hack");
    fs::create_dir(&hack).unwrap();
    for script in scripts {
        fs::copy(root().join("hack").join(script), hack.join(script)).unwrap();
        open(&hack.join(script));
    }
    open(&hack);
    open(folder.path());
    folder
}

fn open(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// A folder with every program of this machine's PATH except one, wherever that one is installed.
fn all_programs_but(left_out: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for entry in std::env::split_paths(&path).filter_map(|part| fs::read_dir(part).ok()).flatten() {
        let entry = entry.unwrap();
        if entry.file_name() != left_out {
            // The first program of a name is the one that PATH finds.
            let _ = symlink(entry.path(), folder.path().join(entry.file_name()));
        }
    }
    folder
}
