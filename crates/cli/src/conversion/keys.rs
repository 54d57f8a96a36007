//! The certificate authority in the Secret, and when it changes.
//!
//! A new authority is first only trusted: the hub gets its certificate next to the current one.
//! Later it is used, and the old one stays trusted. So every manager is trusted at every moment,
//! whichever of the two it has read. Pure: the time is an argument.

use std::collections::BTreeMap;

use aviary_serve::{Authority, AuthorityError};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;

/// An authority is valid for ten years, and replaced after one.
const REPLACE_AFTER: SignedDuration = SignedDuration::from_hours(365 * 24);

/// One authority: its certificate and its key.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// What the Secret holds.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) current: Option<Pair>,
    pub(super) since: Option<Timestamp>,
    /// The certificate that was used before.
    previous: Option<String>,
    pub(super) next: Option<Pair>,
    /// The request for a new authority that `next` or `current` answers.
    answered: String,
}

type Data = BTreeMap<String, ByteString>;

impl Keys {
    pub(super) fn read(data: Option<&Data>) -> Self {
        let text = |name: &str| {
            let bytes = data?.get(name)?.0.clone();
            String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
        };
        let pair =
            |certificate: &str, key: &str| Some(Pair { certificate: text(certificate)?, key: text(key)? });
        Self {
            current: pair("ca.crt", "ca.key"),
            since: text("since").and_then(|since| since.parse().ok()),
            previous: text("previous.crt"),
            next: pair("next.crt", "next.key"),
            answered: text("answered").unwrap_or_default(),
        }
    }

    pub(super) fn data(&self) -> Data {
        let mut data = Data::new();
        let mut put = |name: &str, text: Option<&str>| {
            if let Some(text) = text {
                data.insert(name.to_owned(), ByteString(text.as_bytes().to_vec()));
            }
        };
        put("ca.crt", self.current.as_ref().map(|pair| pair.certificate.as_str()));
        put("ca.key", self.current.as_ref().map(|pair| pair.key.as_str()));
        put("since", self.since.map(|since| since.to_string()).as_deref());
        put("previous.crt", self.previous.as_deref());
        put("next.crt", self.next.as_ref().map(|pair| pair.certificate.as_str()));
        put("next.key", self.next.as_ref().map(|pair| pair.key.as_str()));
        put("answered", Some(self.answered.as_str()).filter(|text| !text.is_empty()));
        data
    }

    /// The authority that managers use.
    pub(super) fn authority(&self, now: Timestamp) -> Option<Result<Authority, AuthorityError>> {
        let pair = self.current.as_ref()?;
        Some(Authority::from_pem(&pair.certificate, &pair.key, now))
    }

    /// Every certificate that the hub is to trust, newest first.
    pub(super) fn bundle(&self) -> String {
        let next = self.next.as_ref().map(|pair| pair.certificate.as_str());
        let current = self.current.as_ref().map(|pair| pair.certificate.as_str());
        let all = [next, current, self.previous.as_deref()];
        all.into_iter().flatten().map(|pem| format!("{}\n", pem.trim_end())).collect()
    }

    /// The state after this one, if it is time for it. `asked` is what the administrator wrote to
    /// request a new authority; `is_trusted` says that the hub has trusted all of [`Keys::bundle`]
    /// for long enough.
    pub(super) fn advanced(
        &self,
        now: Timestamp,
        asked: &str,
        is_trusted: bool,
    ) -> Result<Option<Self>, AuthorityError> {
        let is_usable = self.authority(now).is_some_and(|authority| authority.is_ok());
        if !is_usable {
            // No authority is usable, so there is no previous one to keep trusted.
            let current = Some(generate(now)?);
            return Ok(Some(Self {
                current,
                since: Some(now),
                answered: asked.to_owned(),
                ..Self::default()
            }));
        }
        if let Some(next) = &self.next {
            if Authority::from_pem(&next.certificate, &next.key, now).is_err() {
                return Ok(Some(Self { next: None, ..self.clone() }));
            }
            let previous = self.current.as_ref().map(|pair| pair.certificate.clone());
            let promoted =
                Self { current: Some(next.clone()), since: Some(now), previous, next: None, ..self.clone() };
            return Ok(is_trusted.then_some(promoted));
        }
        let age = self.since.map(|since| now.duration_since(since));
        let is_due = age.is_none_or(|age| age >= REPLACE_AFTER || age.is_negative());
        if !is_due && asked == self.answered {
            return Ok(None);
        }
        Ok(Some(Self { next: Some(generate(now)?), answered: asked.to_owned(), ..self.clone() }))
    }
}

fn generate(now: Timestamp) -> Result<Pair, AuthorityError> {
    let (authority, key) = Authority::generate(now)?;
    Ok(Pair { certificate: authority.pem().to_owned(), key })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn reread(keys: &Keys) -> Keys {
        let again = Keys::read(Some(&keys.data()));
        assert!(again == *keys, "what is written is what is read");
        again
    }

    #[test]
    fn an_authority_is_trusted_before_it_is_used_and_after() {
        let first = reread(&Keys::read(None).advanced(NOW, "", false).unwrap().unwrap());
        assert!(first.authority(NOW).unwrap().is_ok());
        assert!(first.advanced(NOW, "", true).unwrap().is_none(), "it is young");
        let old = first.bundle();

        let later = NOW + REPLACE_AFTER;
        let begun = reread(&first.advanced(later, "", true).unwrap().unwrap());
        assert!(begun.current == first.current, "managers still use the old one");
        assert!(begun.bundle().contains(&old) && begun.bundle().len() > old.len());
        assert!(begun.advanced(later, "", false).unwrap().is_none(), "the hub does not trust it yet");

        let promoted = reread(&begun.advanced(later, "", true).unwrap().unwrap());
        assert!(promoted.current == begun.next);
        assert!(promoted.bundle().contains(&old), "a manager may not have seen the change yet");
        assert!(promoted.advanced(later, "", true).unwrap().is_none());
    }

    #[test]
    fn a_request_is_answered_once() {
        let first = Keys::default().advanced(NOW, "", false).unwrap().unwrap();
        let begun = first.advanced(NOW, "monday", true).unwrap().unwrap();
        assert!(begun.next.is_some());
        let promoted = begun.advanced(NOW, "monday", true).unwrap().unwrap();
        assert!(promoted.advanced(NOW, "monday", true).unwrap().is_none());
        assert!(promoted.advanced(NOW, "tuesday", true).unwrap().unwrap().next.is_some());
    }

    #[test]
    fn what_cannot_be_used_is_replaced() {
        let mut broken = Keys::default().advanced(NOW, "", false).unwrap().unwrap();
        broken.current.as_mut().unwrap().key = "nonsense".to_owned();
        let repaired = broken.advanced(NOW, "", false).unwrap().unwrap();
        assert!(repaired.authority(NOW).unwrap().is_ok());
        let mut half = repaired.clone();
        half.next = Some(Pair { certificate: "nonsense".to_owned(), key: "nonsense".to_owned() });
        assert!(half.advanced(NOW, "", true).unwrap().unwrap() == repaired);
    }
}
