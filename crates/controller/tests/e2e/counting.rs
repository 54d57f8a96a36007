//! A client whose requests are counted, by what they are and how they were answered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::Request;
use kube::Client;
use kube::client::Body;
use tower::service_fn;

/// Requests by method, kind and code: `POST managedclusteraddons 201`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(Arc<Mutex<BTreeMap<String, usize>>>);

impl Counts {
    /// The same client, counted.
    pub(crate) fn client(&self, inner: &Client) -> Client {
        let (counts, inner) = (self.clone(), inner.clone());
        let service = service_fn(move |request: Request<Body>| {
            let (counts, inner) = (counts.clone(), inner.clone());
            async move {
                let what = describe(&request);
                let response = inner.send(request).await?;
                let counted = format!("{what} {}", response.status().as_u16());
                *counts.0.lock().unwrap().entry(counted).or_default() += 1;
                Ok::<_, kube::Error>(response)
            }
        });
        Client::new(service, "default")
    }

    /// What was counted, and begins anew.
    pub(crate) fn take(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Counts {
    /// Everything that was asked for.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.0.lock().unwrap().keys().cloned().collect()
    }

    /// Every kind of write that was tried, the lease apart.
    pub(crate) fn attempted(&self) -> Vec<String> {
        let counts = self.0.lock().unwrap();
        let tried = counts.iter().filter(|(what, _)| is_write(what));
        tried.map(|(what, count)| format!("{count} {what}")).collect()
    }

    /// Those that the hub has made.
    pub(crate) fn committed(&self) -> Vec<String> {
        let is_made = |what: &String| what.rsplit(' ').next().is_some_and(|code| code.starts_with('2'));
        self.attempted().into_iter().filter(is_made).collect()
    }
}

fn describe(request: &Request<Body>) -> String {
    let parts: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
    let place = parts.iter().position(|part| *part == "namespaces").map(|at| at + 2);
    let after_version = if parts[0] == "api" { 2 } else { 3 };
    let rest = &parts[place.filter(|at| *at < parts.len()).unwrap_or(after_version.min(parts.len()))..];
    let kind = rest.first().copied().unwrap_or_default();
    let part = rest.get(2).map(|part| format!("/{part}")).unwrap_or_default();
    let verb = match request.method().as_str() {
        "GET" if request.uri().query().is_some_and(|query| query.contains("watch=true")) => "WATCH",
        "GET" if rest.len() < 2 => "LIST",
        method => method,
    };
    format!("{verb} {kind}{part}")
}

fn is_write(what: &str) -> bool {
    ["POST", "PUT", "PATCH", "DELETE"].iter().any(|verb| what.starts_with(verb)) && !what.contains("leases")
}

/// How many of these were writes of objects, the lease apart.
pub(crate) fn writes(counts: &BTreeMap<String, usize>) -> usize {
    counts.iter().filter(|(what, _)| is_write(what)).map(|(_, count)| count).sum()
}
