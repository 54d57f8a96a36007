//! A plain work agent of the test suite. It is not shipped.
//!
//! It applies the works of one cluster and reports on them as OCM's agent does, with that agent's
//! weaknesses: an object is available as soon as it exists, feedback is polled, and after a change
//! of a work it first reports the values of the old objects under the new generation. So tests with
//! it do not depend on better reporting than users have.
//!
//! It differs from OCM's agent in this: it polls all works at once, after a fixed time (`--poll`),
//! where OCM's takes 10 to 19 seconds for each work; and it applies a work again every five
//! minutes, where OCM's takes four to six. Neither notices sooner that somebody has changed an
//! object.
//!
//! It leaves out condition rules (`conditionRules`), so it never reports that a work is `Complete`;
//! executors (`spec.executor`): it applies everything as administrator; `ttlSecondsAfterFinished`;
//! the `ignoreFields` of server-side apply; and `feedbackScrapeType: Watch`: it always polls.

mod apply;
mod member;
mod paths;
mod register;
mod report;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use aviary_api::ManifestWork;
use clap::Parser;
use futures_util::StreamExt as _;
use kube::api::Api;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Config, ResourceExt as _};

use member::Member;

/// After this time a work is applied again, so that changes by others do not stay.
const RESYNC: Duration = Duration::from_secs(300);

/// Applies the works of one cluster, and reports on them.
#[derive(Debug, Parser)]
struct Options {
    /// Kubeconfig of the hub
    #[arg(long)]
    hub: PathBuf,
    /// Kubeconfig of the cluster
    #[arg(long)]
    member: PathBuf,
    /// Name of the cluster on the hub
    #[arg(long)]
    cluster: String,
    /// Label of the ManagedCluster, such as stage=canary
    #[arg(long)]
    label: Vec<String>,
    /// Seconds between two readings of the feedback; OCM's agent takes 10 to 19
    #[arg(long, default_value_t = 10)]
    poll: u64,
}

async fn client(kubeconfig: &Path) -> Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let hub = client(&options.hub).await.context("the hub's kubeconfig")?;
    let member = Member::new(client(&options.member).await.context("the cluster's kubeconfig")?);
    member.prepare().await.context("failed to prepare the cluster")?;
    register::join(&hub, &options.cluster, &options.label).await.context("failed to join the hub")?;
    let heartbeat = register::heartbeat(hub.clone(), member.clone(), options.cluster.clone());
    let agent = Agent {
        works: Api::namespaced(hub, &options.cluster),
        member,
        seen: HashMap::new(),
        poll: Duration::from_secs(options.poll),
        resync: RESYNC,
    };
    #[allow(clippy::print_stdout, reason = "it says that it runs")]
    {
        println!("Work agent of {} running. Stop it with Ctrl-C.", options.cluster);
    }
    tokio::select! {
        () = heartbeat => {}
        () = agent.run() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}

struct Agent {
    works: Api<ManifestWork>,
    member: Member,
    seen: HashMap<String, Seen>,
    poll: Duration,
    resync: Duration,
}

/// A work, and what was done about it.
struct Seen {
    work: ManifestWork,
    /// The generation that was applied without an error.
    applied: Option<i64>,
    /// When it is applied again, and how long it waited for that, if an apply failed.
    next: Option<(Instant, Duration)>,
}

impl Agent {
    async fn run(mut self) {
        let changes = watcher(self.works.clone(), watcher::Config::default()).default_backoff();
        let mut changes = std::pin::pin!(changes);
        let mut poll = tokio::time::interval(self.poll);
        let mut due = tokio::time::interval(Duration::from_millis(500));
        loop {
            tokio::select! {
                change = changes.next() => match change {
                    Some(Ok(Event::Apply(work) | Event::InitApply(work))) => self.changed(work).await,
                    Some(Ok(Event::Delete(work))) => {
                        self.seen.remove(&work.name_any());
                    }
                    Some(Ok(Event::Init | Event::InitDone)) => {}
                    Some(Err(error)) => complain("watch", &error.into()),
                    None => return,
                },
                _ = poll.tick() => {
                    for name in self.seen.keys().cloned().collect::<Vec<_>>() {
                        self.report(&name).await;
                    }
                }
                _ = due.tick() => {
                    for name in self.due() {
                        self.apply(&name).await;
                    }
                }
            }
        }
    }

    fn due(&self) -> Vec<String> {
        let now = Instant::now();
        let is_due = |seen: &Seen| seen.next.is_some_and(|(at, _)| at <= now);
        self.seen.iter().filter(|(_, seen)| is_due(seen)).map(|(name, _)| name.clone()).collect()
    }

    /// The status loop is faster than the apply loop, so it reports on the objects as they were.
    async fn changed(&mut self, work: ManifestWork) {
        let name = work.name_any();
        let generation = work.metadata.generation;
        let version = |work: &ManifestWork| work.resource_version().and_then(|text| text.parse::<u64>().ok());
        match self.seen.get_mut(&name).filter(|seen| seen.work.uid() == work.uid()) {
            // The event of a write whose response is known already.
            Some(seen) if version(&seen.work) > version(&work) => return,
            Some(seen) => seen.work = work,
            None => drop(self.seen.insert(name.clone(), Seen { work, applied: None, next: None })),
        }
        self.report(&name).await;
        let Some(seen) = self.seen.get(&name) else { return };
        if seen.applied != generation || seen.work.metadata.deletion_timestamp.is_some() {
            self.apply(&name).await;
        }
    }

    async fn report(&mut self, name: &str) {
        let Some(seen) = self.seen.get_mut(name) else { return };
        match report::report(&self.works, &self.member, &seen.work).await {
            Ok(Some(written)) => seen.work = written,
            Ok(None) => {}
            Err(error) => complain(name, &error),
        }
    }

    async fn apply(&mut self, name: &str) {
        let Some(seen) = self.seen.get_mut(name) else { return };
        if seen.work.metadata.deletion_timestamp.is_some() {
            let gone = apply::remove(&self.works, &self.member, &seen.work).await;
            seen.next = match gone {
                Ok(true) => None,
                Ok(false) => Some((Instant::now() + Duration::from_millis(500), Duration::ZERO)),
                Err(error) => {
                    complain(name, &error);
                    Some((Instant::now() + Duration::from_secs(1), Duration::ZERO))
                }
            };
            return;
        }
        let generation = seen.work.metadata.generation;
        let done = match apply::apply(&self.works, &self.member, &seen.work).await {
            Ok((written, complete)) => {
                seen.work = written;
                complete
            }
            Err(error) => {
                complain(name, &error);
                false
            }
        };
        if done {
            seen.applied = generation;
            seen.next = Some((Instant::now() + self.resync, Duration::ZERO));
        } else {
            let wait = seen.next.map_or(Duration::from_secs(1), |(_, wait)| {
                (wait * 2).clamp(Duration::from_secs(1), Duration::from_secs(16))
            });
            seen.next = Some((Instant::now() + wait, wait));
        }
    }
}

#[allow(clippy::print_stderr, reason = "its log")]
fn complain(what: &str, error: &anyhow::Error) {
    eprintln!("{what}: {error:#}");
}
