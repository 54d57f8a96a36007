//! A ConversionReview in, a ConversionReview out.
//!
//! Whoever reaches the port may ask: the answer depends on nothing but the question.

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Deserialize;
use serde_json::{Value, json};

/// A hub sends at most one page of a list, of objects of at most 1.5 MiB.
const LARGEST: usize = 64 << 20;

#[derive(Deserialize)]
struct ConversionReview {
    request: ConversionRequest,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConversionRequest {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    #[serde(default)]
    objects: Vec<Value>,
}

pub(super) fn routes() -> Router {
    Router::new().route(super::PATH, post(answer)).layer(DefaultBodyLimit::max(LARGEST))
}

async fn answer(body: Bytes) -> Response {
    match serde_json::from_slice::<ConversionReview>(&body) {
        Ok(review) => {
            let answer = converted(review.request).to_string();
            ([(CONTENT_TYPE, "application/json")], answer).into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, format!("not a ConversionReview: {error}\n")).into_response(),
    }
}

fn converted(request: ConversionRequest) -> Value {
    let ConversionRequest { uid, desired_api_version, objects } = request;
    let all: Result<Vec<Value>, _> = objects
        .into_iter()
        .map(|object| aviary_api::convert::convert(object, &desired_api_version))
        .collect();
    let response = match all {
        Ok(objects) => json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}}),
        // The hub accepts no part of an answer.
        Err(error) => {
            json!({"uid": uid, "convertedObjects": [], "result": {"status": "Failure", "message": error.to_string()}})
        }
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

    use super::*;

    fn asked(to: &str, objects: &Value) -> Value {
        let review = json!({"request": {"uid": "7", "desiredAPIVersion": to, "objects": objects}});
        let review: ConversionReview = serde_json::from_value(review).unwrap();
        converted(review.request)["response"].clone()
    }

    #[test]
    fn every_object_is_converted_in_order() {
        let addon = |name: &str| {
            json!({"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn",
                "metadata": {"name": name}, "spec": {"supportedConfigs": [{"resource": "as"}]}})
        };
        let answer = asked("addon.open-cluster-management.io/v1beta1", &json!([addon("a"), addon("b")]));
        assert_eq!(answer["result"], json!({"status": "Success"}));
        assert_eq!(answer["uid"], "7");
        assert_eq!(answer["convertedObjects"][1]["metadata"]["name"], "b");
        assert_eq!(
            answer["convertedObjects"][0]["spec"],
            json!({"defaultConfigs": [{"resource": "as", "name": "__reserved_no_default__"}]})
        );
    }

    #[test]
    fn a_kind_that_is_not_converted_is_refused_as_a_whole() {
        let answer = asked("x/v2", &json!([{"apiVersion": "x/v1", "kind": "Other"}]));
        assert_eq!(answer["result"]["status"], "Failure");
        assert_eq!(answer["result"]["message"], "Other cannot be converted from x/v1 to x/v2");
        assert_eq!(answer["convertedObjects"], json!([]));
    }
}
