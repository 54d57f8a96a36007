//! A state that is watched, and its recent changes, so that every reader can continue from where it
//! is.
//!
//! Readers have a position in the sequence of changes and no buffer. A slow or reconnected reader
//! gets the changes that it missed, or the whole state if those are no longer kept. Memory does not
//! grow with the number of readers.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::watch;

/// Limits for the kept changes, by number and by size.
const MOST_CHANGES: usize = 512;
const MOST_BYTES: usize = 2 << 20;

/// A state that can be sent as a whole.
pub(crate) trait TopicState {
    /// The name of the event for the whole state.
    const EVENT: &'static str;

    fn whole(&self) -> String;
}

/// The effect of a change.
pub(crate) enum ChangeEffect {
    Nothing,
    /// Only this changed.
    Delta {
        event: &'static str,
        data: String,
    },
    /// The whole state must be sent.
    Whole,
}

/// The position of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReaderPosition {
    epoch: u64,
    number: u64,
}

impl ReaderPosition {
    /// Parses the id of an event.
    pub(crate) fn parse(id: &str) -> Option<Self> {
        let (epoch, number) = id.split_once('-')?;
        Some(Self { epoch: u64::from_str_radix(epoch, 16).ok()?, number: number.parse().ok()? })
    }
}

pub(crate) struct Topic<S> {
    inner: Mutex<TopicContent<S>>,
    changed: watch::Sender<u64>,
}

struct TopicContent<S> {
    /// Changes whenever the whole state is sent instead of a delta: earlier positions are then
    /// invalid.
    epoch: u64,
    /// The number of the last change.
    number: u64,
    /// `None` if it does not exist.
    state: Option<S>,
    changes: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// The last encoding of the whole state, by number.
    told: Option<(u64, Bytes)>,
    over: bool,
}

impl<S: TopicState> Topic<S> {
    pub(crate) fn new(state: Option<S>) -> Self {
        let inner = TopicContent {
            epoch: fresh_epoch(),
            number: 0,
            state,
            changes: VecDeque::new(),
            bytes: 0,
            told: None,
            over: false,
        };
        Self { inner: Mutex::new(inner), changed: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, TopicContent<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and notifies the readers.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Option<S>) -> ChangeEffect) {
        let mut inner = self.lock();
        let step = change(&mut inner.state);
        match step {
            ChangeEffect::Nothing => return,
            ChangeEffect::Delta { event, data } => inner.add(event, &data),
            ChangeEffect::Whole => inner.begin_anew(),
        }
        drop(inner);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Ends the topic.
    pub(crate) fn end(&self) {
        self.lock().over = true;
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn listeners(&self) -> usize {
        self.changed.receiver_count()
    }

    /// Returns what to send to a reader at this position; `None` if the topic has ended.
    pub(crate) fn since(&self, place: &mut Option<ReaderPosition>) -> Option<Bytes> {
        let mut inner = self.lock();
        let here = ReaderPosition { epoch: inner.epoch, number: inner.number };
        let at = place.replace(here);
        if at == Some(here) {
            return (!inner.over).then(Bytes::new);
        }
        Some(at.and_then(|at| inner.missed(at)).unwrap_or_else(|| inner.whole()))
    }
}

impl<S: TopicState> TopicContent<S> {
    fn add(&mut self, event: &str, data: &str) {
        self.number += 1;
        let frame = self.frame(event, data);
        self.bytes += frame.len();
        self.changes.push_back((self.number, frame));
        while self.changes.len() > MOST_CHANGES || self.bytes > MOST_BYTES {
            let Some((_, oldest)) = self.changes.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }

    fn begin_anew(&mut self) {
        self.epoch = fresh_epoch();
        self.number = 0;
        self.changes.clear();
        self.bytes = 0;
        self.told = None;
    }

    /// The changes since a position, if all of them are kept.
    fn missed(&self, at: ReaderPosition) -> Option<Bytes> {
        if at.epoch != self.epoch || at.number > self.number {
            return None;
        }
        let first = self.changes.front().map_or(self.number + 1, |(number, _)| *number);
        if at.number + 1 < first {
            return None;
        }
        let after = self.changes.iter().skip_while(|(number, _)| *number <= at.number);
        Some(after.flat_map(|(_, frame)| frame.iter().copied()).collect::<Vec<u8>>().into())
    }

    fn whole(&mut self) -> Bytes {
        if let Some((number, told)) = &self.told
            && *number == self.number
        {
            return told.clone();
        }
        let frame = match &self.state {
            Some(state) => self.frame(S::EVENT, &state.whole()),
            None => self.frame("gone", "{}"),
        };
        self.told = Some((self.number, frame.clone()));
        frame
    }

    fn frame(&self, event: &str, data: &str) -> Bytes {
        format!("id: {:x}-{}\nevent: {event}\ndata: {data}\n\n", self.epoch, self.number).into()
    }
}

/// An epoch that no earlier run of the program has used.
fn fresh_epoch() -> u64 {
    let mut bytes = [0_u8; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u64::from_be_bytes(bytes),
        // Without random numbers, an address at least differs from topic to topic.
        Err(_) => (&raw const bytes).addr() as u64,
    }
}

/// Encodes a value as the data of an event, on one line.
pub(crate) fn data(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| {
        tracing::error!(%error, "failed to encode a state");
        "{}".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    impl TopicState for u32 {
        const EVENT: &'static str = "whole";

        fn whole(&self) -> String {
            self.to_string()
        }
    }

    fn told(topic: &Topic<u32>, place: &mut Option<ReaderPosition>) -> Vec<String> {
        let bytes = topic.since(place).unwrap_or_default();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let line = |frame: &str, key: &str| {
            frame.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().to_owned()
        };
        text.split_terminator("\n\n")
            .map(|frame| format!("{} {}", line(frame, "event: "), line(frame, "data: ")))
            .collect()
    }

    fn add(topic: &Topic<u32>, amount: u32) {
        topic.change(|state| {
            *state = state.map(|state| state + amount);
            ChangeEffect::Delta { event: "delta", data: amount.to_string() }
        });
    }

    #[test]
    fn a_reader_gets_the_whole_then_every_change_once() {
        let (topic, mut place) = (Topic::new(Some(1)), None);
        assert_eq!(told(&topic, &mut place), ["whole 1"]);
        assert!(told(&topic, &mut place).is_empty());
        add(&topic, 2);
        add(&topic, 3);
        assert_eq!(told(&topic, &mut place), ["delta 2", "delta 3"]);
        assert_eq!(told(&topic, &mut None), ["whole 6"]);
    }

    #[test]
    fn a_reader_that_was_away_goes_on_where_it_was() {
        let (topic, mut place) = (Topic::new(Some(1)), None);
        let id = |bytes: Bytes| {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            text.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap().to_owned()
        };
        let first = id(topic.since(&mut place).unwrap());
        add(&topic, 2);
        assert_eq!(told(&topic, &mut ReaderPosition::parse(&first)), ["delta 2"]);
        assert_eq!(told(&topic, &mut ReaderPosition::parse("0-0")), ["whole 3"], "another epoch");
        assert_eq!(told(&topic, &mut ReaderPosition::parse("nonsense")), ["whole 3"]);
        let (epoch, _) = first.split_once('-').unwrap();
        assert_eq!(
            told(&topic, &mut ReaderPosition::parse(&format!("{epoch}-99"))),
            ["whole 3"],
            "never told"
        );
    }

    #[test]
    fn who_is_too_far_behind_gets_the_whole() {
        let (topic, mut place) = (Topic::new(Some(0)), None);
        told(&topic, &mut place);
        for _ in 0..=MOST_CHANGES {
            add(&topic, 1);
        }
        assert_eq!(told(&topic, &mut place), [format!("whole {}", MOST_CHANGES + 1)]);
        let mut second = place;
        topic.change(|state| {
            *state = None;
            ChangeEffect::Whole
        });
        assert_eq!(told(&topic, &mut place), ["gone {}"]);
        topic.end();
        assert_eq!(topic.since(&mut place), None);
        assert_eq!(told(&topic, &mut second), ["gone {}"], "the last word is not lost");
    }
}
