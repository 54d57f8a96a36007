//! A response of the server, and assertions about it.

use http::HeaderMap;
use serde_json::Value;

/// Everything that a client sees of one response.
pub struct Answer {
    pub request: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    /// The body of a 200.
    #[track_caller]
    pub fn ok(self) -> Value {
        self.with_status(200)
    }

    /// The body of a 201.
    #[track_caller]
    pub fn created(self) -> Value {
        self.with_status(201)
    }

    #[track_caller]
    pub fn with_status(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{} answered {}", self.request, self.text);
        self.json()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|_| panic!("{} answered no JSON: {}", self.request, self.text))
    }

    /// A Kubernetes `Status` with this code and reason.
    #[track_caller]
    pub fn refused(self, code: u16, reason: &str) -> Refusal {
        assert_eq!(self.status, code, "{} answered {}", self.request, self.text);
        let body = self.json();
        let told = (&body["apiVersion"], &body["kind"], &body["status"], &body["reason"], &body["code"]);
        let due = (&"v1".into(), &"Status".into(), &"Failure".into(), &reason.into(), &code.into());
        assert_eq!(told, due, "{} answered {}", self.request, self.text);
        Refusal(body)
    }

    /// A `Status` without a reason.
    #[track_caller]
    pub fn failed(self, code: u16, message: &str) {
        let body = self.with_status(code);
        let due = serde_json::json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "code": code});
        assert_eq!(body, due);
    }

    /// The plain-text response to a path outside any API.
    #[track_caller]
    pub fn no_page(self) {
        let told = (self.status, self.header("content-type"), self.text.as_str());
        assert_eq!(told, (404, "text/plain; charset=utf-8", "404 page not found\n"), "{}", self.request);
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The texts of the `Warning` headers.
    pub fn warnings(&self) -> Vec<String> {
        let values = self.headers.get_all("warning").iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    }
}

/// A failure reported by the server.
#[derive(Debug)]
pub struct Refusal(pub Value);

impl Refusal {
    /// The message contains this phrase.
    #[track_caller]
    pub fn says(self, phrase: &str) -> Refusal {
        let message = self.0["message"].as_str().unwrap_or_default();
        assert!(message.contains(phrase), "no {phrase:?} in {message:?}");
        self
    }

    /// `details` exists and is empty.
    #[track_caller]
    pub fn without_details(self) -> Refusal {
        assert_eq!(self.0["details"], serde_json::json!({}), "{}", self.0);
        self
    }

    /// `details` names this object.
    #[track_caller]
    pub fn about(self, group: &str, kind: &str, name: &str) -> Refusal {
        let details = &self.0["details"];
        let text = |key: &str| details[key].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            (text("group"), text("kind"), text("name")),
            (group.into(), kind.into(), name.into()),
            "{}",
            self.0
        );
        self
    }

    /// One of the causes has this reason and this field.
    #[track_caller]
    pub fn cause(self, reason: &str, field: &str) -> Refusal {
        let causes = self.0["details"]["causes"].as_array().cloned().unwrap_or_default();
        let told = causes.iter().any(|cause| cause["reason"] == reason && cause["field"] == field);
        assert!(told, "no cause {reason} of {field} in {}", self.0);
        self
    }

    /// One of the causes has this reason, and no field.
    #[track_caller]
    pub fn cause_of(self, reason: &str) -> Refusal {
        let causes = self.0["details"]["causes"].as_array().cloned().unwrap_or_default();
        let told = causes.iter().any(|cause| cause["reason"] == reason && cause["field"].is_null());
        assert!(told, "no cause {reason} in {}", self.0);
        self
    }
}
