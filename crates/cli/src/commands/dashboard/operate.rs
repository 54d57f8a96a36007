//! Actions of the page: the verbs of `aviary rollout`, and how many clusters each of them affects.

use aviary_controller::{Scope, View};
use aviary_dashboard::{Action, ActionResult, ActionVerb, ErrorResponse, Operate};
use aviary_engine::observed::Observed;
use aviary_engine::plan::{PlacementReport, Plan, plan};
use aviary_engine::verdict::{budget, counted};
use axum::http::StatusCode;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;

use crate::commands::rollout::{WriteArgs, acknowledge, retry, switch, undo};
use crate::connect::{Connection, RefusedRequest};
use crate::live::told;

/// The maximum number of clusters that are named.
const NAMED: usize = 20;

/// Executes actions on one hub.
pub(super) struct Operator {
    pub(super) server: String,
    pub(super) namespace: String,
}

impl Operate for Operator {
    fn operate(
        &self,
        client: Client,
        addon: String,
        action: Action,
    ) -> BoxFuture<'_, Result<ActionResult, ErrorResponse>> {
        async move {
            let connection = Connection { client, server: self.server.clone() };
            self.act(&connection, &addon, &action).await.map_err(|error| refusal(&error))
        }
        .boxed()
    }
}

/// Turns an error into a refusal: with the hub's status, or with "conflict" if the action is not
/// possible now.
fn refusal(error: &anyhow::Error) -> ErrorResponse {
    let status = match error.downcast_ref::<RefusedRequest>() {
        Some(RefusedRequest { code: Some(code @ (401 | 403 | 404 | 409)), .. }) => {
            StatusCode::from_u16(*code).ok()
        }
        Some(_) => Some(StatusCode::BAD_GATEWAY),
        None => None,
    };
    ErrorResponse::new(status.unwrap_or(StatusCode::CONFLICT), format!("{error:#}"))
}

impl Operator {
    async fn act(
        &self,
        connection: &Connection,
        addon: &str,
        action: &Action,
    ) -> anyhow::Result<ActionResult> {
        let scope = Scope { namespace: self.namespace.clone(), addon: Some(addon.to_owned()) };
        let mut view =
            View::read(&connection.client, scope).await.map_err(|error| told(&error, connection))?;
        let writing = WriteArgs { dry_run: action.dry_run };
        let now = Timestamp::now();
        let placement = action.placement.as_deref();
        let (blast, lines) = match action.verb {
            ActionVerb::Pause | ActionVerb::Resume => {
                let paused = action.verb == ActionVerb::Pause;
                let switched = switch::apply(connection, addon, placement, paused, writing).await?;
                let names: Vec<&str> = switched.iter().map(|one| one.placement.as_str()).collect();
                let before = switched.iter().filter(|one| !one.changed).map(|one| one.placement.as_str());
                let before: Vec<&str> = before.collect();
                let look = |observed: &Observed, plan: &Plan| switching(observed, plan, &names, paused);
                let (blast, mut lines) = at(&mut view, addon, now, look);
                let was = if paused { "was paused already" } else { "was not paused" };
                lines.extend(before.iter().map(|name| format!("{name} {was}")));
                (blast, lines)
            }
            ActionVerb::Undo => {
                let asked = undo::UndoRequest {
                    addon,
                    placement,
                    to_revision: action.to_revision,
                    restore_configs: false,
                    with_configs: &format!("aviary rollout undo {addon} --restore-configs"),
                };
                let undone = undo::apply(connection, &mut view, asked, writing).await?;
                // The view shows the hub as it will be: clusters that are not settled in it have to
                // move.
                let look = |observed: &Observed, plan: &Plan| going_back(observed, plan, &undone);
                let (blast, mut lines) = at(&mut view, addon, now, look);
                lines.extend(undone.warning.iter().map(|warning| format!("Warning: {warning}")));
                (blast, lines)
            }
            ActionVerb::Acknowledge => {
                let seen = action.acknowledge.as_deref();
                let held = acknowledge::apply(connection, &mut view, addon, seen, now, writing).await?;
                letting_go(addon, &held)
            }
            ActionVerb::Retry => {
                let clusters: Vec<String> = action.cluster.iter().cloned().collect();
                let asked = retry::RetryRequest { addon, placement, clusters: &clusters };
                trying_again(&retry::apply(connection, &mut view, asked, writing, now).await?)
            }
        };
        Ok(ActionResult { blast, lines, done: !action.dry_run })
    }
}

/// Evaluates a plan of the add-on.
fn at<T: Default>(
    view: &mut View,
    addon: &str,
    now: Timestamp,
    look: impl FnOnce(&Observed, &Plan) -> T,
) -> T {
    view.observe(addon, |observed| look(observed, &plan(observed, now).recorded())).unwrap_or_default()
}

/// The affected placements, each with its budget as text.
fn concerned<'p>(
    observed: &'p Observed,
    plan: &'p Plan,
    names: &[&str],
) -> Vec<(&'p PlacementReport, String)> {
    let specs = observed.addon.strategy.placements();
    let placements = plan.report.placements.iter().zip(specs);
    placements
        .filter(|(report, _)| names.contains(&report.name.to_string().as_str()))
        .map(|(report, spec)| {
            let pace = match budget(spec, &report.counts) {
                Some(budget) => format!("at most {budget} at once"),
                None => "all at once".to_owned(),
            };
            (report, pace)
        })
        .collect()
}

fn switching(observed: &Observed, plan: &Plan, names: &[&str], paused: bool) -> (String, Vec<String>) {
    let placements = concerned(observed, plan, names);
    let sum =
        |count: fn(&PlacementReport) -> usize| placements.iter().map(|(one, _)| count(one)).sum::<usize>();
    let waiting = sum(|one| one.tally.waiting);
    let moving = sum(|one| one.tally.in_flight);
    let of = counted(sum(|one| one.counts.governed), "cluster");
    let all = names.join(", ");
    let blast = match paused {
        true => format!(
            "No new clusters start in {all}: {waiting} of {of} keep their revision until you resume; {moving} in flight finish."
        ),
        false => format!(
            "Clusters start again in {all}: {waiting} of {of} are not assigned the desired revision yet, and get it in the order and within the budget of the rollout strategy."
        ),
    };
    let lines = placements.iter().map(|(one, pace)| {
        let tally = &one.tally;
        let wanted = one.desired.as_deref().unwrap_or("nothing available");
        format!(
            "{}: wants {wanted}, {} waiting, {} in flight, {} governed, {pace}",
            one.name, tally.waiting, tally.in_flight, tally.clusters
        )
    });
    (blast, lines.collect())
}

fn going_back(observed: &Observed, plan: &Plan, undone: &undo::Undone) -> (String, Vec<String>) {
    let names: Vec<&str> = undone.placements.iter().map(|one| one.placement.as_str()).collect();
    let placements = concerned(observed, plan, &names);
    let moved = |report: &PlacementReport| report.tally.unsettled();
    let all: usize = placements.iter().map(|(report, _)| moved(report)).sum();
    let governed: usize = placements.iter().map(|(report, _)| report.counts.governed).sum();
    let to: Vec<String> =
        undone.placements.iter().map(|one| format!("{} to {}", one.placement, one.to)).collect();
    let (going, gate) = match undone.placements.iter().any(|one| one.forward) {
        true => ("Going forward", "This is an upgrade like any other."),
        false => ("Rolling back", "No canary delays this."),
    };
    let blast = format!(
        "{going}, {}: {all} of {} have to move; those that already have it are not touched. {gate}",
        to.join(" and "),
        counted(governed, "cluster")
    );
    let mut lines: Vec<String> = Vec::new();
    for (one, (report, pace)) in undone.placements.iter().zip(&placements) {
        let from = one.from.as_deref().map(|from| format!(" from {from}")).unwrap_or_default();
        let goes = if one.forward { "goes forward" } else { "rolls back" };
        lines.push(format!(
            "{} {goes}{from} to {}, its revision {}: {} of {} move, {pace}",
            one.placement,
            one.to,
            one.number,
            moved(report),
            counted(report.counts.governed, "cluster")
        ));
    }
    (blast, lines)
}

fn letting_go(addon: &str, held: &acknowledge::Acknowledged) -> (String, Vec<String>) {
    let blast = format!(
        "{addon} is removed from {} of the {} that have it, all at once: no placement selects them any more. If the number changes before that, the brake holds the deletion again.",
        counted(held.count, "cluster"),
        held.of
    );
    let mut lines: Vec<String> = held.clusters.iter().take(NAMED).cloned().collect();
    if held.clusters.len() > NAMED {
        lines.push(format!("and {} more", held.clusters.len() - NAMED));
    }
    (blast, lines)
}

fn trying_again(told: &retry::RetryReport) -> (String, Vec<String>) {
    let count = told.retried.len();
    let blast = match (count, told.left_alone.is_empty()) {
        (0, true) => "No cluster has failed: there is nothing to retry.".to_owned(),
        (0, false) => "None of the failed clusters can try again.".to_owned(),
        _ => format!(
            "{} {} the same revision again, within the budget.",
            counted(count, "cluster"),
            if count == 1 { "tries" } else { "try" }
        ),
    };
    let tried = told.retried.iter().map(|one| one.cluster.clone());
    let skipped = told.left_alone.iter().map(|one| format!("{} is skipped: {}", one.cluster, one.why));
    let mut lines: Vec<String> = tried.chain(skipped).collect();
    let more = lines.len().saturating_sub(NAMED);
    lines.truncate(NAMED);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    (blast, lines)
}
