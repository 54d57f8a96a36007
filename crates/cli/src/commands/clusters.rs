//! `aviary clusters`: real clusters on this machine, with kubelets and pods, for trials.
//!
//! A script starts them in namespaces of their own. It and the definitions of the Go programs that
//! it builds are part of this program, so no clone is needed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Subcommand;

use super::{Outcome, Session, typed};
use crate::output::Printout;

/// What is written to the folder before the script runs.
const FILES: &[(&str, &str)] = &[
    ("hack/clusters.sh", include_str!("../../../../hack/clusters.sh")),
    ("hack/real-apiserver.sh", include_str!("../../../../hack/real-apiserver.sh")),
    ("tools/etcd/go.mod", include_str!("../../../../tools/etcd/go.mod")),
    ("tools/etcd/go.sum", include_str!("../../../../tools/etcd/go.sum")),
    ("tools/etcd/main.go", include_str!("../../../../tools/etcd/main.go")),
    ("tools/kubernetes/go.mod", include_str!("../../../../tools/kubernetes/go.mod")),
    ("tools/kubernetes/go.sum", include_str!("../../../../tools/kubernetes/go.sum")),
    (
        "tools/kubernetes/kube-apiserver/main.go",
        include_str!("../../../../tools/kubernetes/kube-apiserver/main.go"),
    ),
    (
        "tools/kubernetes/kube-controller-manager/main.go",
        include_str!("../../../../tools/kubernetes/kube-controller-manager/main.go"),
    ),
    (
        "tools/kubernetes/kube-scheduler/main.go",
        include_str!("../../../../tools/kubernetes/kube-scheduler/main.go"),
    ),
    ("tools/kubernetes/kubelet/main.go", include_str!("../../../../tools/kubernetes/kubelet/main.go")),
    ("tools/workload/go.mod", include_str!("../../../../tools/workload/go.mod")),
    ("tools/workload/main.go", include_str!("../../../../tools/workload/main.go")),
];

const DIR: &str = "aviary-clusters";
/// Longer than the script waits for its programs, one after the other.
const PATIENCE: Duration = Duration::from_secs(600);

/// Run real clusters on this machine, with kubelets and pods; needs root and Go
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  Start a hub and three clusters, and look at a node
    $ aviary clusters up 3
    $ kubectl --kubeconfig aviary-clusters/member1/kubeconfig get nodes

  Stop them, and remove everything
    $ aviary clusters down

If this machine lacks something that they need, the exit code is 1."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: ClustersCommand,
}

#[derive(Debug, Subcommand)]
enum ClustersCommand {
    /// Start a hub and clusters with a node each, and leave them running
    Up(UpArgs),
    /// Stop the clusters, and remove their folder
    Down(Folder),
}

#[derive(Debug, clap::Args)]
struct UpArgs {
    /// Number of clusters
    #[arg(value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    members: u8,

    #[command(flatten)]
    folder: Folder,
}

#[derive(Debug, clap::Args)]
struct Folder {
    /// Folder for the data and the kubeconfigs of the clusters
    #[arg(long, value_name = "DIR", default_value = DIR)]
    dir: PathBuf,
}

pub(crate) fn run(args: &Args, session: &mut Session) -> anyhow::Result<Outcome> {
    match &args.verb {
        ClustersCommand::Up(args) => up(args, session),
        ClustersCommand::Down(folder) => down(&folder.dir, session),
    }
}

fn up(args: &UpArgs, session: &mut Session) -> anyhow::Result<Outcome> {
    let dir = &args.folder.dir;
    let again = match dir.to_str() {
        Some(DIR) => "clusters down".to_owned(),
        _ => format!("clusters down {}", typed("--dir", std::slice::from_ref(dir))),
    };
    ensure!(
        !dir.exists() || fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none()),
        "{} exists: run {} {again}, or choose another folder with --dir",
        dir.display(),
        session.program
    );
    let needed = 1 + u64::from(args.members).div_ceil(2);
    if let Some(free) = free_memory().filter(|free| *free < needed) {
        bail!("{} clusters need {needed} GiB of memory, and {free} GiB are free", args.members);
    }
    write_files(dir)?;
    let dir = dir.canonicalize().with_context(|| format!("failed to find {}", dir.display()))?;
    let script = dir.join("hack/clusters.sh");
    // The script says what it builds, and what this machine lacks. Its exit code 3 would mean that
    // a rollout is in progress.
    let installed = Command::new("bash").arg(&script).arg("install").stdout(Stdio::null()).status();
    if !installed.context("failed to run bash")?.success() {
        fs::remove_dir_all(&dir).with_context(|| format!("failed to remove {}", dir.display()))?;
        return Ok(Outcome::NotDone);
    }
    let started = Instant::now();
    let child = start(&dir, &script, args.members)?;
    until_ready(&dir, child)?;
    let mut text = Printout::of(format_args!(
        "A hub and {} clusters are ready after {} s.",
        args.members,
        started.elapsed().as_secs()
    ));
    text.line(format_args!("  hub         {}", args.folder.dir.join("hub/kubeconfig").display()));
    for number in 1..=args.members {
        let file = args.folder.dir.join(format!("member{number}/kubeconfig"));
        text.line(format_args!("  {:<10}  {}", format!("member{number}"), file.display()));
    }
    text.gap();
    text.line(format_args!("Stop them with:  {} {again}", session.program));
    session.output.text(&text)?;
    Ok(Outcome::Done)
}

/// In GiB.
fn free_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib / (1024 * 1024))
}

fn write_files(dir: &Path) -> anyhow::Result<()> {
    for (name, text) in FILES {
        let file = dir.join(name);
        let failed = || format!("failed to write {}", file.display());
        fs::create_dir_all(file.parent().unwrap_or(dir)).with_context(failed)?;
        fs::write(&file, text).with_context(failed)?;
        if name.ends_with(".sh") {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).with_context(failed)?;
        }
    }
    Ok(())
}

/// Starts the clusters in a session of their own, so that they outlive this process and its
/// terminal.
fn start(dir: &Path, script: &Path, members: u8) -> anyhow::Result<Child> {
    let log = File::create(dir.join("log")).context("failed to create the log")?;
    Command::new("setsid")
        .arg("bash")
        .arg(script)
        .arg("run")
        .arg(dir)
        .arg(script)
        .arg("serve")
        .arg(dir)
        .arg(members.to_string())
        .env("AVIARY_CLUSTERS_REACHABLE", "1")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("failed to share the log")?)
        .stderr(log)
        .spawn()
        .context("failed to start the clusters")
}

fn until_ready(dir: &Path, mut child: Child) -> anyhow::Result<()> {
    let give_up = Instant::now() + PATIENCE;
    while !dir.join("ready").exists() {
        if let Some(status) = child.try_wait().context("failed to wait for the clusters")? {
            let log = fs::read_to_string(dir.join("log")).unwrap_or_default();
            let last = log.lines().last().unwrap_or("its log is empty");
            bail!("the clusters did not start ({status}): {last}; the logs are in {}", dir.display());
        }
        ensure!(Instant::now() < give_up, "the clusters are not ready; the logs are in {}", dir.display());
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

fn down(dir: &Path, session: &mut Session) -> anyhow::Result<Outcome> {
    let script = dir.join("hack/clusters.sh");
    ensure!(script.exists(), "there are no clusters in {}: choose their folder with --dir", dir.display());
    let stopped = Command::new("bash").arg(&script).arg("down").arg(dir).status();
    if !stopped.context("failed to run bash")?.success() {
        return Ok(Outcome::NotDone);
    }
    fs::remove_dir_all(dir).with_context(|| format!("failed to remove {}", dir.display()))?;
    session.output.line("The clusters are stopped, and their folder is removed.")?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_the_script_builds_from_is_part_of_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut wanted = Vec::new();
        for folder in ["tools/etcd", "tools/workload", "tools/kubernetes"] {
            walk(&root, &root.join(folder), &mut wanted);
        }
        let has = |name: &String| FILES.iter().any(|(file, _)| file == name);
        let missing: Vec<&String> = wanted.iter().filter(|name| !has(name)).collect();
        assert!(missing.is_empty() && wanted.len() > 8, "{missing:?}");
    }

    /// Otherwise the command would give up first, and leave the clusters running.
    #[test]
    fn the_script_gives_up_before_the_command() {
        let (_, script) = FILES[0];
        let waits = script.lines().filter_map(|line| line.trim().strip_prefix("until_is ")?.split_once(' '));
        let seconds: Vec<u64> = waits.map(|(seconds, _)| seconds.parse().unwrap()).collect();
        let sum = Duration::from_secs(seconds.iter().sum());
        assert!(seconds.len() >= 4 && sum < PATIENCE, "{seconds:?}");
    }

    fn walk(root: &Path, folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
}
