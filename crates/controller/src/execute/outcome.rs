//! The outcome of one write, and the events for the stores in its response.

use aviary_api::Guarded;
use aviary_engine::name::Text;
use kube::api::{Api, DeleteParams, Preconditions};

use crate::panics::Panic;
use crate::seen::{Change, Key, ObjectVersion, Version, WatchEvent, Watched};

pub(super) enum WriteResult {
    Written(Vec<WatchEvent>),
    /// The object has changed or was deleted. The next plan sees its current state.
    Conflict,
    Failed(Box<kube::Error>),
    /// The hub will not have it, however often it is tried. The stores know.
    Refused,
    Panicked(Panic),
}

impl WriteResult {
    pub(super) fn of_put<K: Watched<WatchEvent>>(answer: kube::Result<K>) -> Self {
        match answer {
            Ok(object) => Self::Written(written(object).into_iter().collect()),
            Err(error) => Self::of_error(error),
        }
    }

    pub(super) fn of_error(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if matches!(status.code, 404 | 409) => Self::Conflict,
            _ => Self::Failed(Box::new(error)),
        }
    }

    /// The request did not reach the hub, or its answer did not arrive. A load balancer in front of
    /// a hub says so with a status.
    pub(super) fn is_unanswered(&self) -> bool {
        let Self::Failed(error) = self else { return false };
        match &**error {
            kube::Error::HyperError(_) | kube::Error::Service(_) => true,
            kube::Error::Api(status) => matches!(status.code, 502..=504),
            _ => false,
        }
    }

    pub(super) fn is_overload(&self) -> bool {
        match self {
            Self::Failed(error) => {
                matches!(&**error, kube::Error::Api(status) if matches!(status.code, 429 | 500..=599))
            }
            Self::Written(_) | Self::Conflict | Self::Refused | Self::Panicked(_) => false,
        }
    }
}

/// What the hub says, if it refuses a write for what is in the object: too large, invalid, or not
/// allowed there.
pub(super) fn refusal(error: &kube::Error) -> Option<Text> {
    const LONGEST: usize = 256;
    // etcd's own limits have no code of their own.
    const TOO_LARGE: [&str; 2] = ["request is too large", "larger than max"];
    let kube::Error::Api(status) = error else { return None };
    let is_refusal = matches!(status.code, 400 | 403 | 413 | 422)
        || (status.code >= 500 && TOO_LARGE.iter().any(|words| status.message.contains(words)));
    let why = format!("{} ({})", status.message, status.code);
    is_refusal.then(|| match why.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}… ({})", why.get(..end).unwrap_or_default(), status.code).into(),
        None => why.into(),
    })
}

/// The answer to a write as an event, so that the next plan sees it before the watch reports it.
pub(super) fn written<K: Watched<WatchEvent>>(object: K) -> Option<WatchEvent> {
    let version = ObjectVersion::of(object.meta());
    object.read().map(|seen| (K::EVENT)(Change::Written(version, seen)))
}

/// The object in the answer to a write, parsed without its managed fields, as watches do it: these
/// are often more than half of an object.
pub(super) fn unguarded<K>(answer: kube::Result<Guarded<K>>) -> kube::Result<K> {
    let Guarded(object) = answer?;
    object.map_err(|invalid| kube::Error::SerdeError(serde::de::Error::custom(invalid.error)))
}

/// Deletes exactly this object, and what depends on it in the background. While finalizers hold it,
/// the answer is the object.
pub(super) async fn delete<K: Watched<WatchEvent>>(
    api: Api<K>,
    namespace: &str,
    name: &str,
    uid: &str,
) -> WriteResult {
    match api.delete(name, &only(uid)).await {
        Ok(answer) => match answer.left() {
            Some(object) => WriteResult::of_put(Ok(object)),
            None => WriteResult::Written(vec![deleted::<K>(namespace, name, uid)]),
        },
        Err(error) => WriteResult::of_error(error),
    }
}

pub(super) fn only(uid: &str) -> DeleteParams {
    let preconditions = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() }
}

pub(super) fn deleted<K: Watched<WatchEvent>>(namespace: &str, name: &str, uid: &str) -> WatchEvent {
    let key = Key { namespace: namespace.into(), name: name.into() };
    (K::EVENT)(Change::Deleted(ObjectVersion { key, version: Version { uid: uid.into(), number: 0 } }))
}
