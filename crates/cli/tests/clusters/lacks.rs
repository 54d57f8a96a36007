//! What a machine lacks is said, with an exit code of its own.

use std::process::Command;

use crate::lane::root;

#[test]
fn without_root_the_lane_says_so_and_exits_with_3() {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    let output = command.arg(root().join("hack/test-clusters.sh")).arg("--install").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("real clusters need root"), "{told}");
}

#[test]
fn without_go_the_lane_says_so_and_exits_with_3() {
    let cache = tempfile::tempdir().unwrap();
    let mut command = Command::new(root().join("hack/test-clusters.sh"));
    command.arg("--install").env_clear();
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("XDG_CACHE_HOME", cache.path());
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("there is no Go toolchain"), "{told}");
}
