//! Programs are built once, also when several builds are started.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::lacks::{fake, path_after};
use crate::lane::root;

#[test]
fn a_second_install_waits_for_the_first_and_builds_nothing_again() {
    let folder = tempfile::tempdir().unwrap();
    // Only etcd is missing, and building it again would fail.
    for program in ["kube-apiserver", "kube-controller-manager"] {
        fake(folder.path(), program, "");
    }
    fake(folder.path(), "go", "exit 1");
    let programs = folder.path().join("aviary/bin");
    fs::create_dir_all(&programs).unwrap();
    let first = File::create(programs.join(".lock")).unwrap();
    first.lock().unwrap();

    let mut second = Command::new(root().join("hack/real-apiserver.sh"));
    second.arg("install").env("PATH", path_after(folder.path()));
    second.env("XDG_CACHE_HOME", folder.path()).env("KUBEBUILDER_ASSETS", folder.path());
    let mut second = second.stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(second.stderr.take().unwrap()).lines();
    assert_eq!(told.next().unwrap().unwrap(), "waiting for another build");
    fake(&programs, "etcd", "");
    fs::write(programs.join("etcd.version"), etcd_version()).unwrap();
    first.unlock().unwrap();
    let told: Vec<String> = told.map(Result::unwrap).collect();
    assert!(second.wait().unwrap().success() && told.is_empty(), "{told:?}");
}

/// The version that the module pins.
fn etcd_version() -> String {
    let module = fs::read_to_string(root().join("tools/etcd/go.mod")).unwrap();
    let version = module.lines().find_map(|line| line.split_once("go.etcd.io/etcd/server/v3 v"));
    version.unwrap().1.to_owned()
}
