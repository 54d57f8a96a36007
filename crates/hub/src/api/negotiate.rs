//! The query parameters of a request, and the format of the response.
//!
//! Owns parsing them. Invalid values fail here, so handlers see only valid ones.

use aviary_schema::{Cause, CauseReason, UnknownFields};
use http::HeaderMap;
use http::header::{ACCEPT, HeaderName, USER_AGENT};

use crate::api::status::ApiError;
use crate::formats::metadata::{forbidden, invalid, not_supported, required};
use crate::formats::selector::{FieldSelector, LabelSelector};
use crate::formats::table::IncludeObject;

/// Maximum length of a manager's name, in bytes.
const LONGEST_MANAGER: usize = 128;

/// The query of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) limit: usize,
    pub(crate) continue_: Option<String>,
    pub(crate) revision: RequestedRevision,
    pub(crate) revision_match: Option<RevisionMatch>,
    pub(crate) watch: bool,
    pub(crate) bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) dry_run: bool,
    pub(crate) unknown_fields: UnknownFields,
    pub(crate) propagation: Option<String>,
    pub(crate) field_manager: String,
    pub(crate) force: Option<bool>,
    pub(crate) include: IncludeObject,
}

/// `resourceVersion`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestedRevision {
    #[default]
    Unset,
    /// `0`: any version.
    Any,
    At(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RevisionMatch {
    Exact,
    NotOlderThan,
}

/// The format of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    Table,
    Partial,
}

impl Params {
    /// Parses a query. `options` is the name of the request's options in Kubernetes.
    pub(crate) fn parse(query: &str, options: &'static str) -> Result<Self, ApiError> {
        let mut params = Self::default();
        let mut revision = None;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let wrong = |why: &dyn std::fmt::Display| {
                ApiError::bad_request(format!("{name}: Invalid value: {value:?}: {why}"))
            };
            match &*name {
                "labelSelector" => {
                    params.labels = LabelSelector::parse(&value).map_err(|why| unparsable(&why))?;
                }
                "fieldSelector" => {
                    params.fields = FieldSelector::parse(&value).map_err(|why| unparsable(&why))?;
                }
                "limit" => {
                    let limit: i64 = value.parse().map_err(|why| wrong(&why))?;
                    params.limit = usize::try_from(limit).unwrap_or(0);
                }
                "continue" if !value.is_empty() => params.continue_ = Some(value.into_owned()),
                "resourceVersion" => revision = Some(value),
                "resourceVersionMatch" => {
                    params.revision_match = match &*value {
                        "" => None,
                        "Exact" => Some(RevisionMatch::Exact),
                        "NotOlderThan" => Some(RevisionMatch::NotOlderThan),
                        other => {
                            let known = ["Exact", "NotOlderThan", ""];
                            return Err(ApiError::options(
                                "ListOptions",
                                not_supported("resourceVersionMatch", other, &known),
                            ));
                        }
                    };
                }
                "watch" => params.watch = flag(&value),
                "allowWatchBookmarks" => params.bookmarks = flag(&value),
                "sendInitialEvents" => params.send_initial_events = Some(flag(&value)),
                "timeoutSeconds" => params.timeout_seconds = Some(value.parse().map_err(|why| wrong(&why))?),
                "dryRun" => match &*value {
                    "All" => params.dry_run = true,
                    "" => {}
                    other => {
                        return Err(ApiError::options(options, not_supported("dryRun", other, &["All"])));
                    }
                },
                "fieldValidation" => {
                    params.unknown_fields = match &*value {
                        "" | "Warn" => UnknownFields::Warn,
                        "Strict" => UnknownFields::Strict,
                        "Ignore" => UnknownFields::Ignore,
                        other => {
                            let known = ["", "Ignore", "Strict", "Warn"];
                            return Err(ApiError::options(
                                options,
                                not_supported("fieldValidation", other, &known),
                            ));
                        }
                    };
                }
                "fieldManager" => {
                    params.field_manager = value.into_owned();
                    check_manager(&params.field_manager)
                        .map_err(|cause| ApiError::options(options, cause))?;
                }
                "force" => params.force = Some(flag(&value)),
                "propagationPolicy" => params.propagation = Some(value.into_owned()),
                "includeObject" => {
                    params.include = match &*value {
                        "" | "Metadata" => IncludeObject::Metadata,
                        "None" => IncludeObject::None,
                        "Object" => IncludeObject::Object,
                        _ => return Err(wrong(&"must be None, Metadata or Object")),
                    };
                }
                _ => {}
            }
        }
        if let Some(revision) = revision {
            params.revision = RequestedRevision::parse(&revision, params.watch)?;
        }
        params.check()?;
        Ok(params)
    }

    /// The field manager: the given one, or the name of the client program.
    pub(crate) fn manager<'r>(&'r self, headers: &'r HeaderMap) -> &'r str {
        if !self.field_manager.is_empty() {
            return &self.field_manager;
        }
        let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let program = agent.split('/').next().unwrap_or_default();
        // `to_str` accepts only visible ASCII.
        program.get(..LONGEST_MANAGER).unwrap_or(program)
    }

    /// Only an apply can be forced, and it needs a field manager.
    pub(crate) fn check_patch(&self, is_apply: bool) -> Result<(), ApiError> {
        let refused = |cause| Err(ApiError::options("PatchOptions", cause));
        if is_apply && self.field_manager.is_empty() {
            return refused(required("fieldManager", "is required for apply patch"));
        }
        if !is_apply && self.force.is_some() {
            return refused(forbidden("force", "may not be specified for non-apply patch"));
        }
        Ok(())
    }

    /// Rejects contradictory parameters.
    fn check(&self) -> Result<(), ApiError> {
        let invalid = |field: &str, why: &str| Err(ApiError::options("ListOptions", forbidden(field, why)));
        if self.watch {
            return match (self.send_initial_events, self.revision_match) {
                (None, Some(_)) => invalid(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ),
                (Some(_), Some(RevisionMatch::NotOlderThan)) | (None, None) => Ok(()),
                (Some(_), _) => invalid(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ),
            };
        }
        if self.send_initial_events.is_some() {
            return invalid("sendInitialEvents", "sendInitialEvents is forbidden for list");
        }
        match (self.revision_match, self.revision) {
            (Some(_), RequestedRevision::Unset) => invalid(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ),
            (Some(_), _) if self.continue_.is_some() => {
                invalid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
            }
            (Some(RevisionMatch::Exact), RequestedRevision::Any) => invalid(
                "resourceVersionMatch",
                "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"",
            ),
            (None, RequestedRevision::At(_)) if self.continue_.is_some() => {
                Err(ApiError::bad_request("specifying resource version is not allowed when using continue"))
            }
            _ => Ok(()),
        }
    }
}

/// Checks the name of a manager.
fn check_manager(name: &str) -> Result<(), Cause> {
    if name.len() > LONGEST_MANAGER {
        let message = format!("Too long: may not be more than {LONGEST_MANAGER} bytes");
        return Err(Cause { reason: CauseReason::TooLong, message, field: "fieldManager".into() });
    }
    match name.char_indices().find(|(_, letter)| letter.is_control()) {
        Some((place, letter)) => {
            let why = format!("invalid character U+{:04X} (at position {place})", u32::from(letter));
            Err(invalid("fieldManager", name, &why))
        }
        None => Ok(()),
    }
}

fn unparsable(why: &dyn std::fmt::Display) -> ApiError {
    ApiError::bad_request(why.to_string())
}

/// Parses a boolean of a query as Go does: anything except these values is true.
fn flag(value: &str) -> bool {
    !matches!(value, "false" | "0")
}

/// Go's error message.
pub(crate) fn no_number(text: &str) -> String {
    format!("strconv.ParseUint: parsing {text:?}: invalid syntax")
}

impl RequestedRevision {
    fn parse(text: &str, of_watch: bool) -> Result<Self, ApiError> {
        let wrong = || {
            let why = format!("resourceVersion: Invalid value: {text:?}: {}", no_number(text));
            // Kubernetes gives no reason in this case for a watch.
            if of_watch {
                ApiError::failed(why)
            } else {
                ApiError::bad_request(format!("invalid resource version: {why}"))
            }
        };
        match text {
            "" => Ok(Self::Unset),
            "0" => Ok(Self::Any),
            text => text.parse().map(Self::At).map_err(|_| wrong()),
        }
    }
}

/// One of the formats in `Accept`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MediaRange<'h> {
    media: &'h str,
    parameters: &'h str,
}

impl<'h> MediaRange<'h> {
    /// All formats in a header.
    pub(crate) fn all(headers: &'h HeaderMap, name: HeaderName) -> impl Iterator<Item = Self> {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        let ranges =
            values.flat_map(|value| value.split(',')).map(str::trim).filter(|range| !range.is_empty());
        ranges.map(|range| {
            let (media, parameters) = range.split_once(';').unwrap_or((range, ""));
            Self { media: media.trim(), parameters }
        })
    }

    pub(crate) fn takes_json(self) -> bool {
        matches!(self.media, "application/json" | "application/*" | "*/*")
    }

    /// The requested conversion of the response: group, version and kind.
    pub(crate) fn transform(self) -> (Option<&'h str>, Option<&'h str>, Option<&'h str>) {
        let (mut group, mut version, mut kind) = (None, None, None);
        for (name, value) in self.parameters.split(';').filter_map(|part| part.split_once('=')) {
            match name.trim() {
                "g" => group = Some(value.trim()),
                "v" => version = Some(value.trim()),
                "as" => kind = Some(value.trim()),
                _ => {}
            }
        }
        (group, version, kind)
    }
}

impl Shape {
    /// The first format in `Accept` that the hub supports.
    pub(crate) fn accepted(headers: &HeaderMap) -> Result<Self, ApiError> {
        let mut ranges = MediaRange::all(headers, ACCEPT).peekable();
        if ranges.peek().is_none() {
            return Ok(Self::Object);
        }
        ranges
            .find_map(Self::of)
            .ok_or_else(|| ApiError::not_acceptable("application/json, application/json;stream=watch"))
    }

    fn of(range: MediaRange<'_>) -> Option<Self> {
        if !range.takes_json() {
            return None;
        }
        match range.transform() {
            (_, _, None) => Some(Self::Object),
            (Some("meta.k8s.io"), Some("v1" | "v1beta1"), Some("Table")) => Some(Self::Table),
            (
                Some("meta.k8s.io"),
                Some("v1"),
                Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
            ) => Some(Self::Partial),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(accept: &str) -> Option<Shape> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        Shape::accepted(&headers).ok()
    }

    #[test]
    fn the_first_form_that_can_be_served_is_taken() {
        for (accept, shape) in [
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
                Some(Shape::Table),
            ),
            ("application/vnd.kubernetes.protobuf,application/json", Some(Shape::Object)),
            ("application/vnd.kubernetes.protobuf", None),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Some(Shape::Partial)),
            ("*/*", Some(Shape::Object)),
            ("text/html", None),
            ("application/json;as=Tree;g=x;v=v1", None),
        ] {
            assert_eq!(accepted(accept), shape, "{accept}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        for query in [
            "limit=x",
            "resourceVersion=abc",
            "dryRun=Some",
            "fieldValidation=Loose",
            "labelSelector=a%20b%20c",
            "resourceVersionMatch=Exact",
            "resourceVersion=0&resourceVersionMatch=Exact",
            "sendInitialEvents=true",
            "watch=1&sendInitialEvents=true",
            "timeoutSeconds=-1",
        ] {
            assert!(Params::parse(query, "ListOptions").is_err(), "{query}");
        }
    }
}
