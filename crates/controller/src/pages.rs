//! Pages of lists that fit into memory. A list request limits the number of objects, not their
//! size.
//!
//! Owns the `limit` of list requests. A page that exceeds its bound (`bounds`), or that would take
//! too much memory once it is parsed, is requested again with half as many objects, from the same
//! continue token. So large objects cannot prevent a list
//! from being read. Works below kube's watchers, which do not notice it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aviary_engine::content::Density;
use http::{Method, Request, Response, Uri};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use tower::service_fn;

use crate::bounds::{AnswerTooLong, MOST_MAPS_OF_A_PAGE, MOST_OF_A_PAGE, MOST_VALUES_OF_A_PAGE};
use crate::requests::is_watch;

/// Wraps a client so that all its paged lists can be read. The client must limit the size of its
/// responses.
pub fn in_pages(inner: Client) -> Client {
    let namespace = inner.default_namespace().to_owned();
    let pages = Pages::default();
    let service = service_fn(move |request: Request<Body>| {
        let (inner, pages) = (inner.clone(), pages.clone());
        async move {
            match limit_of(&request) {
                Some(limit) => pages.list(&inner, request, limit).await,
                None => inner.send(request).await,
            }
        }
    });
    Client::new(service, namespace)
}

/// How many objects of each list fit into a page, if fewer than requested.
#[derive(Clone, Debug, Default)]
struct Pages(Arc<Mutex<HashMap<String, u32>>>);

impl Pages {
    async fn list(
        &self,
        inner: &Client,
        request: Request<Body>,
        asked: u32,
    ) -> Result<Response<Body>, kube::Error> {
        let (parts, _) = request.into_parts();
        let path = parts.uri.path().to_owned();
        let mut limit = self.fitting(&path, asked);
        loop {
            let mut parts = parts.clone();
            parts.uri = with_limit(&parts.uri, limit);
            let answer = inner.send(Request::from_parts(parts, Body::empty())).await?;
            if !answer.status().is_success() {
                return Ok(answer);
            }
            let (head, body) = answer.into_parts();
            match body.collect().await {
                Ok(page) => {
                    let page = page.to_bytes();
                    let density = Density::of_text(&page);
                    if limit > 1 && has_more_than(1, density) {
                        limit = limit.div_ceil(2);
                        continue;
                    }
                    let has_room = page.len() < MOST_OF_A_PAGE / 4 && !has_more_than(4, density);
                    self.note(path, asked, if has_room { limit.saturating_mul(2) } else { limit });
                    return Ok(Response::from_parts(head, Body::from(page)));
                }
                Err(error) if limit > 1 && AnswerTooLong::caused(&error) => limit = limit.div_ceil(2),
                Err(error) => return Err(error),
            }
        }
    }

    fn fitting(&self, path: &str, asked: u32) -> u32 {
        let pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.get(path).copied().unwrap_or(asked).min(asked)
    }

    fn note(&self, path: String, asked: u32, limit: u32) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if limit < asked {
            pages.insert(path, limit);
        } else {
            pages.remove(&path);
        }
    }
}

/// Whether a page has more than this part of the values that are parsed at once.
fn has_more_than(part: usize, Density { values, maps }: Density) -> bool {
    values > MOST_VALUES_OF_A_PAGE / part || maps > MOST_MAPS_OF_A_PAGE / part
}

/// How many objects a request asks for, if it asks for a page of a list.
pub(crate) fn limit_of<B>(request: &Request<B>) -> Option<u32> {
    let query = request.uri().query().filter(|query| !is_watch(query))?;
    let limit = query.split('&').find_map(|pair| pair.strip_prefix("limit="))?.parse().ok()?;
    (*request.method() == Method::GET && limit > 0).then_some(limit)
}

fn with_limit(uri: &Uri, limit: u32) -> Uri {
    let replaced = |pair: &str| match pair.starts_with("limit=") {
        true => format!("limit={limit}"),
        false => pair.to_owned(),
    };
    let query: Vec<String> = uri.query().unwrap_or_default().split('&').map(replaced).collect();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = format!("{}?{}", uri.path(), query.join("&")).parse().ok();
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use kube::api::{Api, DynamicObject, ListParams};
    use kube::core::{ApiResource, GroupVersionKind};
    use serde_json::{Value, json};
    use tower::Layer;

    use super::*;
    use crate::BoundAnswers;
    use crate::bounds::MOST_OF_AN_OBJECT;

    /// A hub that has objects of these sizes, and the limits that it was asked with.
    fn hub(sizes: &'static [usize]) -> (Client, Arc<Mutex<Vec<usize>>>) {
        hub_of(sizes.len(), |number| json!("x".repeat(sizes[number])))
    }

    fn hub_of(
        count: usize,
        content: impl Fn(usize) -> Value + Clone + Send + 'static,
    ) -> (Client, Arc<Mutex<Vec<usize>>>) {
        let asked: Arc<Mutex<Vec<usize>>> = Arc::default();
        let noted = Arc::clone(&asked);
        let service = service_fn(move |request: Request<Body>| {
            let of = |name: &str| {
                let pairs = request.uri().query().unwrap_or_default().split('&');
                pairs
                    .filter_map(|pair| pair.split_once('='))
                    .find(|(key, _)| *key == name)
                    .and_then(|(_, value)| value.parse::<usize>().ok())
            };
            let (limit, from) = (of("limit").unwrap(), of("continue").unwrap_or(0));
            noted.lock().unwrap().push(limit);
            let items: Vec<_> = (from..count)
                .take(limit)
                .map(|number| {
                    json!({
                        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{number}")},
                        "data": {"content": content(number)},
                    })
                })
                .collect();
            let next = from + items.len();
            let token = if next < count { next.to_string() } else { String::new() };
            let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"continue": token}, "items": items});
            async move { Ok::<_, kube::Error>(Response::new(Body::from(list.to_string().into_bytes()))) }
        });
        (in_pages(Client::new(BoundAnswers.layer(service), "default")), asked)
    }

    async fn list(client: Client) -> Result<Vec<String>, kube::Error> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
        let api: Api<DynamicObject> = Api::all_with(client, &kind);
        let mut page = ListParams::default().limit(500);
        let mut names = Vec::new();
        loop {
            let objects = api.list(&page).await?;
            names.extend(objects.items.into_iter().filter_map(|object| object.metadata.name));
            match objects.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(names),
            }
        }
    }

    #[tokio::test]
    async fn a_list_of_large_objects_is_read_in_smaller_pages() {
        static SIZES: [usize; 60] = [1 << 20; 60];
        const HALVED: [usize; 8] = [500, 250, 125, 63, 32, 16, 8, 4];
        let (client, asked) = hub(&SIZES);
        let names = list(client.clone()).await.unwrap();
        assert_eq!(names, (0..60).map(|number| format!("c{number}")).collect::<Vec<_>>());
        let limits = asked.lock().unwrap().clone();
        let (first, rest) = limits.split_at(HALVED.len());
        assert_eq!(first, HALVED);
        assert!(rest.len() == 30 && rest.iter().all(|limit| *limit == 2), "{rest:?}");
        asked.lock().unwrap().clear();
        list(client).await.unwrap();
        assert!(asked.lock().unwrap().iter().all(|limit| *limit <= 4), "the page that fits is remembered");
    }

    #[tokio::test]
    async fn a_list_of_dense_objects_is_read_in_smaller_pages() {
        // Each has 160 KB, and takes 14 MB.
        let (client, asked) = hub_of(12, |_| json!(vec![json!({"a": 1}); MOST_MAPS_OF_A_PAGE / 4]));
        assert_eq!(list(client).await.unwrap().len(), 12);
        let limits = asked.lock().unwrap().clone();
        assert_eq!(limits, [500, 250, 125, 63, 32, 16, 8, 4, 2, 2, 2, 2, 2, 2]);
    }

    #[tokio::test]
    async fn pages_grow_again_behind_large_objects() {
        static SIZES: [usize; 1200] = {
            let mut sizes = [10; 1200];
            let mut at = 0;
            while at < 20 {
                sizes[at] = 1 << 20;
                at += 1;
            }
            sizes
        };
        let (client, asked) = hub(&SIZES);
        assert_eq!(list(client).await.unwrap().len(), 1200);
        assert_eq!(asked.lock().unwrap().last(), Some(&500), "{:?}", asked.lock().unwrap());
    }

    #[tokio::test]
    async fn an_object_larger_than_any_is_an_error() {
        static LARGE: [usize; 3] = [10, MOST_OF_A_PAGE, 10];
        static TOO_LARGE: [usize; 3] = [10, MOST_OF_AN_OBJECT, 10];
        assert_eq!(list(hub(&LARGE).0).await.unwrap().len(), 3, "alone, it may have more than a page");
        let error = list(hub(&TOO_LARGE).0).await.unwrap_err();
        assert!(AnswerTooLong::caused(&error), "{error:?}");
    }
}
