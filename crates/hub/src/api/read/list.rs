//! Lists: whole, or in pages from one state.

use std::ops::Bound;
use std::sync::Arc;

use axum::body::Body;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Filter, ResponseFormat};
use crate::api::negotiate::{Params, RequestedRevision, RevisionMatch, Shape};
use crate::api::status::ApiError;
use crate::api::write::RequestScope;
use crate::hub::HubState;
use crate::store::Objects;
use crate::store::object::StoredObject;

/// How many objects are encoded at a time: a large list is never completely in memory.
const CHUNK: usize = 64;

/// Where the next page starts.
#[derive(Debug, Serialize, Deserialize)]
struct Continue {
    rv: u64,
    /// The last key of the previous page.
    after: String,
    /// How many objects follow, if no selector hides some.
    left: Option<usize>,
}

impl Continue {
    fn encode(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn decode(token: &str) -> Result<Self, ApiError> {
        let decoded =
            BASE64_URL_SAFE_NO_PAD.decode(token).ok().and_then(|json| serde_json::from_slice(&json).ok());
        decoded.ok_or_else(|| {
            ApiError::bad_request(
                "invalid continue token: continue key is not valid: it was not issued by this hub",
            )
        })
    }
}

/// A page, or all of a list.
#[derive(Debug)]
pub(crate) struct ListPage {
    pub(crate) revision: u64,
    pub(crate) items: Vec<Arc<StoredObject>>,
    next: Option<Continue>,
}

pub(crate) fn page(
    hub: &HubState,
    scope: &RequestScope,
    filter: &Filter,
    params: &Params,
) -> Result<ListPage, ApiError> {
    let published = hub.store.published();
    let now = hub.now();
    let resource = &scope.resource.id;
    let begun = params.continue_.as_deref().map(Continue::decode).transpose()?;
    let (revision, objects) = match (&begun, params.revision) {
        (Some(begun), _) => (begun.rv, hub.snapshots.objects_at(published, resource, begun.rv, now)?),
        (None, RequestedRevision::At(asked))
            if params.revision_match == Some(RevisionMatch::Exact)
                || params.revision_match.is_none() && params.limit > 0 =>
        {
            (asked, hub.snapshots.objects_at(published, resource, asked, now)?)
        }
        (None, asked) => {
            let state = published.state();
            if let RequestedRevision::At(asked) = asked
                && asked > state.revision()
            {
                return Err(ApiError::revision_in_future(asked, state.revision()));
            }
            if params.limit > 0 {
                hub.snapshots.keep(&state, now);
            }
            (state.revision(), state.objects(resource))
        }
    };
    let after = begun.as_ref().map(|begun| begun.after.as_str());
    let (items, more) = select(&objects, scope, filter, after, params.limit);
    let next = more.then(|| {
        let before = match begun.and_then(|begun| begun.left) {
            Some(left) => left,
            None => count(&objects, filter.prefix()),
        };
        Continue {
            rv: revision,
            after: items.last().map(|stored| stored.key.to_string()).unwrap_or_default(),
            left: filter.takes_all().then(|| before.saturating_sub(items.len())),
        }
    });
    Ok(ListPage { revision, items, next })
}

/// The objects whose keys start with `prefix`, after `after`.
fn range<'o>(
    objects: &'o Objects,
    prefix: &'o str,
    after: Option<&str>,
) -> impl Iterator<Item = &'o Arc<StoredObject>> {
    let from = match after {
        Some(after) => Bound::Excluded(after),
        None => Bound::Included(prefix),
    };
    let found = objects.range::<_, str>((from, Bound::Unbounded));
    found.map(|(_, stored)| stored).take_while(move |stored| stored.key.starts_with(prefix))
}

fn count(objects: &Objects, prefix: &str) -> usize {
    if prefix.is_empty() { objects.len() } else { range(objects, prefix, None).count() }
}

/// At most `limit` objects (0: all), and whether there are more.
fn select(
    objects: &Objects,
    scope: &RequestScope,
    filter: &Filter,
    after: Option<&str>,
    limit: usize,
) -> (Vec<Arc<StoredObject>>, bool) {
    let all = filter.takes_all();
    let mut found =
        range(objects, filter.prefix(), after).filter(|stored| all || filter.matches(scope, stored));
    if limit == 0 {
        return (found.cloned().collect(), false);
    }
    let items: Vec<Arc<StoredObject>> = found.by_ref().take(limit).cloned().collect();
    let more = found.next().is_some();
    (items, more)
}

impl ListPage {
    fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if let Some(next) = &self.next {
            metadata["continue"] = json!(next.encode());
            if let Some(left) = next.left {
                metadata["remainingItemCount"] = json!(left);
            }
        }
        metadata
    }

    /// The encoded list.
    pub(crate) fn into_body(self, view: ResponseFormat) -> Body {
        let head = head(&view, &self.metadata());
        let chunks = stream::unfold(Some((head, self.items.into_iter(), true)), move |step| {
            let view = view.clone();
            async move {
                let (mut chunk, mut items, mut first) = step?;
                let mut last = true;
                for stored in items.by_ref().take(CHUNK) {
                    if !first {
                        chunk.push(b',');
                    }
                    first = false;
                    chunk.extend_from_slice(&view.item(&stored));
                    last = false;
                }
                if !last {
                    return Some((
                        Ok::<_, std::convert::Infallible>(Bytes::from(chunk)),
                        Some((Vec::new(), items, first)),
                    ));
                }
                chunk.extend_from_slice(b"]}\n");
                Some((Ok(Bytes::from(chunk)), None))
            }
        });
        Body::from_stream(chunks)
    }
}

/// Everything before the first item.
fn head(view: &ResponseFormat, metadata: &Value) -> Vec<u8> {
    let (kind, api_version, items) = match (view.shape, view.scope.version()) {
        (Shape::Table, Some(version)) => {
            let columns = version.columns.definitions();
            return format!(r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{metadata},"columnDefinitions":{columns},"rows":["#).into();
        }
        (Shape::Partial, _) => ("PartialObjectMetadataList", "meta.k8s.io/v1", "items"),
        (_, Some(version)) => {
            (view.scope.resource.names.list_kind.as_str(), version.api_version.as_str(), "items")
        }
        (_, None) => ("List", "v1", "items"),
    };
    format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},"{items}":["#).into()
}
