//! Nothing of the clusters is left when they end, or the lane fails.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::lane::root;

fn script(folder: &Path) -> Command {
    let mut command = Command::new(root().join("hack/clusters.sh"));
    command.arg("run").arg(folder);
    command
}

fn left(folder: &Path) -> Output {
    Command::new(root().join("hack/clusters.sh")).arg("left").arg(folder).output().unwrap()
}

#[track_caller]
fn assert_nothing_is_left(folder: &Path) {
    let output = left(folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[track_caller]
fn assert_is_left(folder: &Path, what: &str) {
    let output = left(folder);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains(what), "{what}: {told}");
}

#[test]
fn a_cgroup_and_a_mount_that_are_left_behind_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let ended = script(folder.path()).arg("true").status().unwrap();
    assert!(ended.success(), "{ended}");
    assert_nothing_is_left(folder.path());

    let name = fs::read_to_string(folder.path().join("cgroup")).unwrap();
    let hierarchy = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new);
    let hierarchy = hierarchy.into_iter().find(|path| path.exists()).unwrap();
    // Of clusters that were started inside these.
    let cgroup = hierarchy.join(format!("{}-7", name.trim()));
    fs::create_dir(&cgroup).unwrap();
    assert_is_left(folder.path(), &format!("cgroup {}", cgroup.display()));
    fs::remove_dir(&cgroup).unwrap();
    assert_nothing_is_left(folder.path());

    let place = folder.path().join("place");
    fs::create_dir(&place).unwrap();
    let mount = |program: &str, arguments: &[&str]| {
        let done = Command::new(program).args(arguments).arg(&place).status().unwrap();
        assert!(done.success(), "{program} {arguments:?}: {done}");
    };
    mount("mount", &["-t", "tmpfs", "tmpfs"]);
    assert_is_left(folder.path(), "mount ");
    mount("umount", &[]);
    assert_nothing_is_left(folder.path());
}

#[test]
fn a_lane_fails_that_leaves_a_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut run = script(folder.path());
    run.args(["bash", "-c", r#"echo started; cat "$0""#]).arg(&pipe);
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(run.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    // It belongs to the lane, as its environment says, and outlives the namespaces.
    let name = fs::read_to_string(folder.path().join("cgroup")).unwrap();
    let mut process = Command::new("sleep").arg("600").env("AVIARY_LANE", name.trim()).spawn().unwrap();
    fs::write(&pipe, "").unwrap();
    let output = run.wait_with_output().unwrap();
    let expected = format!("process {} sleep 600", process.id());
    process.kill().unwrap();
    process.wait().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains(&expected), "{told}");
    assert_nothing_is_left(folder.path());
}
