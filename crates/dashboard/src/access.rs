//! Authentication, and whose rights are used for requests to the hub.
//!
//! There are two modes. On loopback, a token that was created for this run admits a user, and
//! requests to the hub use the rights of the kubeconfig, with one watcher for everyone. On any
//! other address, each user has their own token: every request to the hub uses it, so the hub
//! decides, and each token has its own watcher, which ends with its last viewer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use aviary_controller::{Clock, LookError, Scope};
use aviary_serve::Credential;
use axum::http::{HeaderMap, StatusCode};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::refusal::ErrorResponse;
use crate::watcher::{OutageLog, Watcher};
use crate::{DashboardSettings, guard};

/// Longer than any token that is issued.
const LONGEST_TOKEN: usize = 16 << 10;
/// How many users may be signed in with their own tokens at once.
const MOST_LOOKS: usize = 32;
/// How many tokens may be authenticated at once, so that guessing tokens is slow.
const MOST_QUESTIONS: usize = 8;
/// A watcher outlives its last viewer by this long, so that a page that reconnects continues where
/// it was.
pub(crate) const LINGER: Duration = Duration::from_secs(10);

/// Creates clients that have the rights of a token and no others.
pub trait Connect: Send + Sync {
    fn client(&self, token: &str) -> Result<Client, String>;
}

/// Whose rights are used.
#[derive(Clone)]
pub enum RightsMode {
    /// Those of a kubeconfig, for anyone who has the token of this run.
    Kubeconfig { client: Client, token: SessionToken },
    /// Those of the token in the request.
    Users(Arc<dyn Connect>),
}

impl std::fmt::Debug for RightsMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Kubeconfig { .. } => "Kubeconfig",
            Self::Users(_) => "Users",
        })
    }
}

/// The token of one run.
#[derive(Clone)]
pub struct SessionToken(String);

/// A token could not be made.
#[derive(Debug, thiserror::Error)]
#[error("failed to create a token: {0}")]
pub struct SessionTokenError(String);

impl SessionToken {
    /// Creates a random token.
    pub fn random() -> Result<Self, SessionTokenError> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).map_err(|error| SessionTokenError(error.to_string()))?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Parses a stored token; `None` if it is not valid.
    pub fn known(text: &str) -> Option<Self> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// Only for showing it to its owner.
    pub fn expose(&self) -> &str {
        &self.0
    }

    fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

impl std::fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionToken")
    }
}

/// An authenticated user.
pub(crate) struct Caller {
    pub(crate) client: Client,
    /// The rights are those of the user's own token.
    pub(crate) own: bool,
    key: WatcherKey,
}

/// Identifies a watcher: a hash, so that no token is kept.
type WatcherKey = [u8; 32];

/// A watcher that exists, or is being started by one request while others wait for it.
type Slot = Arc<tokio::sync::Mutex<Weak<Watcher>>>;

pub(crate) struct Doorkeeper {
    access: RightsMode,
    namespace: String,
    clock: Clock,
    slots: Mutex<HashMap<WatcherKey, Slot>>,
    /// With a kubeconfig, the watcher continues without viewers, so that it can record the
    /// timeline.
    kept: Mutex<Option<Arc<Watcher>>>,
    looks: Arc<Semaphore>,
    questions: Semaphore,
    outages: Arc<OutageLog>,
}

impl Doorkeeper {
    pub(crate) fn new(settings: &DashboardSettings) -> Self {
        Self {
            access: settings.access.clone(),
            namespace: settings.namespace.clone(),
            clock: Arc::clone(&settings.clock),
            slots: Mutex::default(),
            kept: Mutex::default(),
            looks: Arc::new(Semaphore::new(MOST_LOOKS)),
            questions: Semaphore::new(MOST_QUESTIONS),
            outages: Arc::default(),
        }
    }

    pub(crate) async fn open(&self) -> Result<(), LookError> {
        let RightsMode::Kubeconfig { client, .. } = &self.access else { return Ok(()) };
        let caller = Caller { client: client.clone(), own: false, key: WatcherKey::default() };
        match self.watcher(&caller).await {
            Ok(_) | Err(Shut::Full) => Ok(()),
            Err(Shut::Look(error)) => Err(error),
        }
    }

    pub(crate) fn mode(&self) -> &'static str {
        match self.access {
            RightsMode::Kubeconfig { .. } => "kubeconfig",
            RightsMode::Users(_) => "token",
        }
    }

    /// Authenticates a request. The hub authenticates a user's own token.
    pub(crate) async fn admit(&self, headers: &HeaderMap) -> Result<Caller, ErrorResponse> {
        if guard::is_from_elsewhere(headers) {
            return Err(ErrorResponse::new(StatusCode::FORBIDDEN, "cross-origin request refused"));
        }
        let token = bearer(headers).ok_or_else(ErrorResponse::unknown_token)?;
        match &self.access {
            RightsMode::Kubeconfig { client, token: ours } if ours.is(token) => {
                Ok(Caller { client: client.clone(), own: false, key: WatcherKey::default() })
            }
            RightsMode::Kubeconfig { .. } => Err(ErrorResponse::unknown_token()),
            RightsMode::Users(connect) => {
                let client = connect.client(token).map_err(|why| {
                    ErrorResponse::new(StatusCode::BAD_GATEWAY, format!("failed to reach the hub: {why}"))
                })?;
                let _turn = self.turn().await?;
                known(&client).await?;
                Ok(Caller { client, own: true, key: Sha256::digest(token.as_bytes()).into() })
            }
        }
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, ErrorResponse> {
        let closed = |_| ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, "the dashboard is closing");
        self.questions.acquire().await.map_err(closed)
    }

    /// Returns the watcher of a user: an existing one, or a new one.
    pub(crate) async fn watch(&self, caller: &Caller) -> Result<Arc<Watcher>, ErrorResponse> {
        self.watcher(caller).await.map_err(|shut| match shut {
            Shut::Full => ErrorResponse::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many users are signed in: try again later",
            ),
            Shut::Look(error) => ErrorResponse::of_look(&error, caller.own),
        })
    }

    async fn watcher(&self, caller: &Caller) -> Result<Arc<Watcher>, Shut> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            // Removes unused slots.
            slots.retain(|_, slot| {
                Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|look| look.strong_count() > 0)
            });
            Arc::clone(slots.entry(caller.key).or_default())
        };
        let mut look = slot.lock().await;
        if let Some(watcher) = look.upgrade().filter(|watcher| !watcher.is_over()) {
            return Ok(watcher);
        }
        let place = match caller.own {
            true => Some(Arc::clone(&self.looks).try_acquire_owned().map_err(|_| Shut::Full)?),
            false => None,
        };
        let scope = Scope { namespace: self.namespace.clone(), addon: None };
        let watcher = Watcher::start(&caller.client, scope, &self.clock, &self.outages, place);
        let watcher = watcher.await.map_err(Shut::Look)?;
        *look = Arc::downgrade(&watcher);
        if !caller.own {
            *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&watcher));
        }
        Ok(watcher)
    }
}

/// Why there is no watcher.
enum Shut {
    Full,
    Look(LookError),
}

/// The token of a request, if it can be one that a hub has issued.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    Credential::of(headers)
        .token()
        .filter(|token| token.len() <= LONGEST_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic()))
}

/// Asks the hub whether it knows the client's user. Their rights are checked with every request.
async fn known(client: &Client) -> Result<(), ErrorResponse> {
    let asked = ResourceAttributes {
        group: Some(aviary_api::names::ADDON_GROUP.into()),
        resource: Some(aviary_api::names::CLUSTER_MANAGEMENT_ADDONS.into()),
        verb: Some("list".into()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(asked),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await;
    answer.map(drop).map_err(|error| ErrorResponse::of_hub("authenticate you at the hub", &error, true))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::header::AUTHORIZATION;

    use super::*;

    #[test]
    fn a_token_is_one_printable_word_of_bounded_length() {
        let with = |value: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(value).unwrap())]);
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(with("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(with("Bearer a b"), None);
        assert_eq!(with(&format!("Bearer {}", "a".repeat(LONGEST_TOKEN + 1))), None);
    }

    #[test]
    fn a_session_token_is_random_and_only_itself() {
        let (one, other) = (SessionToken::random().unwrap(), SessionToken::random().unwrap());
        assert!(
            one.is(one.expose()) && !one.is(other.expose()) && !one.is("") && !one.is(&one.expose()[1..])
        );
        assert!(SessionToken::known(one.expose()).is_some_and(|read| read.is(one.expose())));
        assert!(SessionToken::known("short").is_none() && SessionToken::known(&"g".repeat(64)).is_none());
        assert!(!format!("{one:?}").contains(one.expose()));
    }
}
