//! Nothing of the clusters is left when they end, or the lane fails.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
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

fn cgroup_of(name: &str) -> PathBuf {
    Path::new("/sys/fs/cgroup/pids").join(name.trim())
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
    // Of clusters that were started inside these.
    let cgroup = cgroup_of(&format!("{}-7", name.trim()));
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

/// The kernel removes a folder over which something is mounted in other namespaces only, and
/// detaches the mount. The test has folders of its own under the usual paths.
#[test]
fn clusters_that_end_take_no_folder_from_others_and_the_last_ones_remove_them() {
    let folder = tempfile::tempdir().unwrap();
    let story = r#"
        for place in /run /var/lib /var/log; do mount -t tmpfs tmpfs "$place"; done
        mkfifo first.told first.go second.told second.go
        inside='echo started >"$1.told"; read -r _ <"$1.go"; [ "$1" = first ] || [ -f /var/lib/kubelet/there ]'
        mounted='mkdir /var/lib/kubelet; mount -t tmpfs tmpfs /var/lib/kubelet; touch /var/lib/kubelet/there'
        "$0" run first bash -euc "$inside" - first &
        first=$!
        read -r _ <first.told
        "$0" run second bash -euc "$mounted; $inside" - second &
        second=$!
        read -r _ <second.told
        echo >first.go
        wait "$first"
        echo >second.go
        wait "$second" || { echo "the folder was taken away" >&2; exit 1; }
        [ ! -e /var/lib/kubelet ] || { echo "the folder was left behind" >&2; exit 1; }
        [ ! -e /run/aviary-clusters ] || { echo "the list of folders was left behind" >&2; exit 1; }
    "#;
    assert_tells(folder.path(), story);
}

#[test]
fn folders_of_clusters_that_were_killed_go_when_they_are_cleaned_up() {
    let folder = tempfile::tempdir().unwrap();
    let story = r#"
        for place in /run /var/lib /var/log; do mount -t tmpfs tmpfs "$place"; done
        mkfifo told
        "$0" run killed bash -euc 'mkdir /var/lib/kubelet; echo >told; sleep 600' &
        read -r _ <told
        kill -KILL $!
        wait $! || true
        [ -d /var/lib/kubelet ] || { echo "there was no folder" >&2; exit 1; }
        "$0" down killed
        [ ! -e /var/lib/kubelet ] || { echo "the folder was left behind" >&2; exit 1; }
        [ ! -e /run/aviary-clusters ] || { echo "the list of folders was left behind" >&2; exit 1; }
    "#;
    assert_tells(folder.path(), story);
}

/// Runs a script with mounts of its own, and our script as `$0`.
#[track_caller]
fn assert_tells(folder: &Path, story: &str) {
    let mut command = Command::new("unshare");
    command.args(["--mount", "bash", "-euc", story]).arg(root().join("hack/clusters.sh"));
    let output = command.current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// All names but one are in use, and then all.
#[test]
fn clusters_take_a_link_that_no_others_have() {
    let folder = tempfile::tempdir().unwrap();
    let story = r#"
        for number in $(seq 250); do
            [ "$number" = 77 ] || echo "link add aviary$number type bridge"
        done | ip -batch -
        export AVIARY_CLUSTERS_REACHABLE=1
        "$0" run one true
        cat one/address
        ip link add aviary77 type bridge
        "$0" run other true
    "#;
    let mut command = Command::new("unshare");
    command.args(["--net", "bash", "-euc", story]).arg(root().join("hack/clusters.sh"));
    let output = command.current_dir(folder.path()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "10.213.77.2\n", "{told}");
    assert!(!output.status.success() && told.contains("no link to this machine can be made"), "{told}");
}

#[test]
fn clusters_end_with_the_process_that_runs_them_and_can_be_cleaned_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = script(folder.path());
    run.args(["bash", "-c", "echo started; sleep 20; echo alive"]);
    let mut run = run.stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(run.stdout.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    assert_eq!(
        line,
        "started
"
    );
    let cgroup = cgroup_of(&fs::read_to_string(folder.path().join("cgroup")).unwrap());
    fs::create_dir(&cgroup).unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    // The output ends with the last process that has it.
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert_is_left(folder.path(), &format!("cgroup {}", cgroup.display()));
    let down = Command::new(root().join("hack/clusters.sh")).arg("down").arg(folder.path()).status();
    assert!(down.unwrap().success());
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
