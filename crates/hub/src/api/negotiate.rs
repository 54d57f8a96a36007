//! What a client asks beside the path: the parameters of the query, and the form in which it wants the answer.
//!
//! Owns their reading. What cannot be understood is a failure here, so that handlers see only sound values.

use aviary_schema::{Cause, Reason, UnknownFields};
use http::HeaderMap;
use http::header::{ACCEPT, USER_AGENT};

use crate::metadata::{forbidden, invalid, not_supported, required};
use crate::selector::{FieldSelector, LabelSelector};
use crate::status::Failure;
use crate::table::IncludeObject;

/// Bytes of the name of a manager.
const LONGEST_MANAGER: usize = 128;

/// The query of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) limit: usize,
    pub(crate) continue_: Option<String>,
    pub(crate) revision: Revision,
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
pub(crate) enum Revision {
    #[default]
    Unset,
    /// `0`: any will do.
    Any,
    At(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RevisionMatch {
    Exact,
    NotOlderThan,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    Table,
    Partial,
}

impl Params {
    /// Reads a query. `options` is what Kubernetes calls the options of such a request.
    pub(crate) fn parse(query: &str, options: &'static str) -> Result<Self, Failure> {
        let mut params = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let wrong = |why: &dyn std::fmt::Display| {
                Failure::bad_request(format!("{name}: Invalid value: {value:?}: {why}"))
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
                "resourceVersion" => params.revision = Revision::parse(&value)?,
                "resourceVersionMatch" => {
                    params.revision_match = match &*value {
                        "" => None,
                        "Exact" => Some(RevisionMatch::Exact),
                        "NotOlderThan" => Some(RevisionMatch::NotOlderThan),
                        other => {
                            let known = ["Exact", "NotOlderThan", ""];
                            return Err(Failure::options(
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
                    other => return Err(Failure::options(options, not_supported("dryRun", other, &["All"]))),
                },
                "fieldValidation" => {
                    params.unknown_fields = match &*value {
                        "" | "Warn" => UnknownFields::Warn,
                        "Strict" => UnknownFields::Strict,
                        "Ignore" => UnknownFields::Ignore,
                        other => {
                            let known = ["", "Ignore", "Strict", "Warn"];
                            return Err(Failure::options(
                                options,
                                not_supported("fieldValidation", other, &known),
                            ));
                        }
                    };
                }
                "fieldManager" => {
                    params.field_manager = value.into_owned();
                    check_manager(&params.field_manager).map_err(|cause| Failure::options(options, cause))?;
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
        params.check()?;
        Ok(params)
    }

    /// Who writes: whoever it says, or else the program that sent the request.
    pub(crate) fn manager<'r>(&'r self, headers: &'r HeaderMap) -> &'r str {
        if !self.field_manager.is_empty() {
            return &self.field_manager;
        }
        let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let program = agent.split('/').next().unwrap_or_default();
        // `to_str` lets only visible ASCII through.
        program.get(..LONGEST_MANAGER).unwrap_or(program)
    }

    /// Only an apply can be forced, and it must say who applies.
    pub(crate) fn check_patch(&self, is_apply: bool) -> Result<(), Failure> {
        let refused = |cause| Err(Failure::options("PatchOptions", cause));
        if is_apply && self.field_manager.is_empty() {
            return refused(required("fieldManager", "is required for apply patch"));
        }
        if !is_apply && self.force.is_some() {
            return refused(forbidden("force", "may not be specified for non-apply patch"));
        }
        Ok(())
    }

    /// What cannot be asked together.
    fn check(&self) -> Result<(), Failure> {
        let invalid = |field: &str, why: &str| Err(Failure::options("ListOptions", forbidden(field, why)));
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
            (Some(_), Revision::Unset) => invalid(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ),
            (Some(_), _) if self.continue_.is_some() => {
                invalid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
            }
            (Some(RevisionMatch::Exact), Revision::Any) => invalid(
                "resourceVersionMatch",
                "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"",
            ),
            (None, Revision::At(_)) if self.continue_.is_some() => {
                Err(Failure::bad_request("specifying resource version is not allowed when using continue"))
            }
            _ => Ok(()),
        }
    }
}

/// What the name of a manager may be.
fn check_manager(name: &str) -> Result<(), Cause> {
    if name.len() > LONGEST_MANAGER {
        let message = format!("Too long: may not be more than {LONGEST_MANAGER} bytes");
        return Err(Cause { reason: Reason::TooLong, message, field: "fieldManager".into() });
    }
    match name.char_indices().find(|(_, letter)| letter.is_control()) {
        Some((place, letter)) => {
            let why = format!("invalid character U+{:04X} (at position {place})", u32::from(letter));
            Err(invalid("fieldManager", name, &why))
        }
        None => Ok(()),
    }
}

fn unparsable(why: &dyn std::fmt::Display) -> Failure {
    Failure::bad_request(why.to_string())
}

/// As Go reads a flag of a query: anything but these is true.
fn flag(value: &str) -> bool {
    !matches!(value, "false" | "0")
}

impl Revision {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        match text {
            "" => Ok(Self::Unset),
            "0" => Ok(Self::Any),
            text => text.parse().map(Self::At).map_err(|_| {
                Failure::bad_request(format!("Invalid value: {text:?}: resourceVersion must be a number"))
            }),
        }
    }
}

impl Shape {
    /// The first form in `Accept` that can be served.
    pub(crate) fn accepted(headers: &HeaderMap) -> Result<Self, Failure> {
        let mut any = false;
        for value in headers.get_all(ACCEPT) {
            let Ok(value) = value.to_str() else { continue };
            for range in value.split(',').map(str::trim).filter(|range| !range.is_empty()) {
                any = true;
                if let Some(shape) = Self::of(range) {
                    return Ok(shape);
                }
            }
        }
        if any {
            Err(Failure::not_acceptable("application/json, application/json;stream=watch"))
        } else {
            Ok(Self::Object)
        }
    }

    fn of(range: &str) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next()?;
        if !matches!(media, "application/json" | "*/*") {
            return None;
        }
        let mut parameters = parts.filter_map(|part| part.split_once('='));
        let (mut form, mut group, mut version) = (None, None, None);
        for (name, value) in &mut parameters {
            match name.trim() {
                "as" => form = Some(value.trim()),
                "g" => group = Some(value.trim()),
                "v" => version = Some(value.trim()),
                _ => {}
            }
        }
        match (form, group, version) {
            (None, _, _) => Some(Self::Object),
            (Some("Table"), Some("meta.k8s.io"), Some("v1" | "v1beta1")) => Some(Self::Table),
            (
                Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
                Some("meta.k8s.io"),
                Some("v1"),
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
