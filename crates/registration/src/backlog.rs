//! Requests that wait for a decision: bounded, and fair between requesters.
//!
//! Whoever may create CSRs can create any number of them. So a requester has at most
//! [`MOST_PER_USER`] here, all of them together at most [`MOST`], and requesters take turns. What
//! does not fit is forgotten; the list is read again when there is room.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use crate::names::AgentKey;
use crate::request::{RequestStage, SigningRequest};

/// The most requests that are kept: with the largest requests, 32 MiB.
pub const MOST: usize = 4096;
/// The most requests of one requester that are kept.
pub const MOST_PER_USER: usize = 32;
/// The most approvals of one agent and signer that are remembered.
const MOST_APPROVALS_KEPT: usize = 64;
/// How long an approval counts.
const WINDOW: SignedDuration = SignedDuration::from_hours(1);

/// An undecided request, and what was last said about it.
#[derive(Clone, Debug)]
pub struct BacklogEntry {
    pub request: SigningRequest,
    user: String,
    /// The code of the last refusal: an Event is published when it changes.
    pub told: Option<&'static str>,
}

#[derive(Clone, Debug, Default)]
pub struct Backlog {
    entries: BTreeMap<String, BacklogEntry>,
    by_agent: BTreeMap<AgentKey, BTreeSet<String>>,
    by_user: BTreeMap<String, usize>,
    /// What waits for a decision, by requester.
    waiting: BTreeMap<String, VecDeque<String>>,
    /// The requester that had the last turn.
    turn: String,
    /// Approvals by agent and signer.
    approvals: BTreeMap<(AgentKey, String), BTreeMap<String, Timestamp>>,
    /// Requests that did not fit.
    forgotten: usize,
}

impl Backlog {
    /// Takes in the current state of a request from `user`.
    pub fn put(&mut self, request: SigningRequest, user: &str, now: Timestamp) {
        self.note_approval(&request, now);
        if matches!(request.stage, RequestStage::Over { .. }) {
            return self.remove(&request.name);
        }
        let name = request.name.clone();
        let old = self.entries.get(&name);
        if old.is_some_and(|old| old.request == request) {
            return;
        }
        if old.is_none() && !self.has_room(user) {
            self.forgotten += 1;
            return;
        }
        let told = old.filter(|old| old.request.uid == request.uid).and_then(|old| old.told);
        self.remove(&name);
        self.by_agent.entry(request.of.clone()).or_default().insert(name.clone());
        *self.by_user.entry(user.to_owned()).or_default() += 1;
        self.entries.insert(name.clone(), BacklogEntry { request, user: user.to_owned(), told });
        self.wait(&name);
    }

    fn has_room(&self, user: &str) -> bool {
        self.entries.len() < MOST && self.by_user.get(user).copied().unwrap_or(0) < MOST_PER_USER
    }

    pub fn remove(&mut self, name: &str) {
        let Some(BacklogEntry { request, user, .. }) = self.entries.remove(name) else { return };
        if let Some(names) = self.by_agent.get_mut(&request.of) {
            names.remove(name);
            if names.is_empty() {
                self.by_agent.remove(&request.of);
            }
        }
        if let Some(count) = self.by_user.get_mut(&user) {
            *count -= 1;
            if *count == 0 {
                self.by_user.remove(&user);
            }
        }
        if let Some(queue) = self.waiting.get_mut(&user) {
            queue.retain(|one| one != name);
            if queue.is_empty() {
                self.waiting.remove(&user);
            }
        }
    }

    /// The names of all requests that are kept.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.entries.keys()
    }

    /// Decides anew about the requests of an agent: something that it depends on has changed.
    pub fn reconsider(&mut self, of: &AgentKey) {
        for name in self.by_agent.get(of).cloned().unwrap_or_default() {
            self.wait(&name);
        }
    }

    /// Decides anew about the requests that were left alone because of their number.
    pub fn reconsider_told(&mut self, code: &str) {
        let names: Vec<String> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.told == Some(code))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            self.wait(&name);
        }
    }

    /// Puts a request into the queue of its requester.
    pub fn wait(&mut self, name: &str) {
        let Some(entry) = self.entries.get(name) else { return };
        let queue = self.waiting.entry(entry.user.clone()).or_default();
        if !queue.iter().any(|one| one == name) {
            queue.push_back(name.to_owned());
        }
    }

    /// The next request to decide about. Requesters take turns.
    pub fn take_next(&mut self) -> Option<SigningRequest> {
        let after = (std::ops::Bound::Excluded(self.turn.clone()), std::ops::Bound::Unbounded);
        let user = self.waiting.range(after).next().or_else(|| self.waiting.iter().next())?.0.clone();
        let queue = self.waiting.get_mut(&user)?;
        let name = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting.remove(&user);
        }
        self.turn = user;
        self.entries.get(&name).map(|entry| entry.request.clone())
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Notes a refusal. Returns whether it is news.
    pub fn tell(&mut self, name: &str, code: &'static str) -> bool {
        self.entries.get_mut(name).is_some_and(|entry| entry.told.replace(code) != Some(code))
    }

    /// Whether requests were forgotten and there is room for them now. Forgets that.
    pub fn should_list_again(&mut self) -> bool {
        let should = self.forgotten > 0 && !self.is_waiting() && self.entries.len() < MOST / 2;
        if should {
            self.forgotten = 0;
        }
        should
    }

    pub fn forgotten(&self) -> usize {
        self.forgotten
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn note_approval(&mut self, request: &SigningRequest, now: Timestamp) {
        let (RequestStage::Approved { at: Some(at) } | RequestStage::Over { approved_at: Some(at) }) =
            request.stage
        else {
            return;
        };
        self.approved(request, at, now);
    }

    /// Counts an approval.
    pub fn approved(&mut self, request: &SigningRequest, at: Timestamp, now: Timestamp) {
        let key = (request.of.clone(), request.signer.clone());
        if now.duration_since(at) >= WINDOW {
            return;
        }
        let times = self.approvals.entry(key).or_default();
        if times.len() < MOST_APPROVALS_KEPT {
            times.insert(request.uid.clone(), at);
        }
    }

    /// How many requests of this agent and signer were approved within the last hour.
    pub fn recently_approved(&self, request: &SigningRequest, now: Timestamp) -> usize {
        let key = (request.of.clone(), request.signer.clone());
        let times = self.approvals.get(&key).into_iter().flat_map(BTreeMap::values);
        times.filter(|at| now.duration_since(**at) < WINDOW).count()
    }

    /// Forgets approvals that do not count any more.
    pub fn prune(&mut self, now: Timestamp) {
        self.approvals.retain(|_, times| {
            times.retain(|_, at| now.duration_since(*at) < WINDOW);
            !times.is_empty()
        });
    }
}
