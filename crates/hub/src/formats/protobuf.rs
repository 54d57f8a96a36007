//! Protobuf request bodies (`application/vnd.kubernetes.protobuf`), as typed Go clients send them
//! for built-in kinds.
//!
//! Owns the envelope and the decoding by table; the result is the JSON that Go prints for the same
//! object, so that everything behind it sees one form. Must not encode: answers are JSON, which
//! every client accepts.

mod core;
mod message;
mod meta;
mod review;
mod wire;

use serde_json::{Map, Value};

use message::Message;
use wire::Reader;

const MAGIC: &[u8] = b"k8s\0";

/// Why a body was refused; all are a 400 except [`ProtobufError::Kind`], which may be a 415.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtobufError {
    #[error("the body is not Kubernetes protobuf: it does not begin with \"k8s\\0\"")]
    Magic,
    #[error("the protobuf body ends too early")]
    Truncated,
    #[error("the protobuf body has an invalid number")]
    Varint,
    #[error("the protobuf body has an invalid field tag")]
    Tag,
    #[error("the protobuf field {0} has the wrong wire type")]
    WireType(&'static str),
    #[error("the protobuf field {0} is not valid UTF-8")]
    Utf8(&'static str),
    #[error("the protobuf field {field} does not contain JSON: {reason}")]
    Json { field: &'static str, reason: String },
    #[error("the protobuf field {0} is not a time between the years 1 and 9999")]
    Time(&'static str),
    #[error("the protobuf body has more than {limit} values", limit = message::MAX_VALUES)]
    TooManyValues,
    #[error("the protobuf body has the content encoding {0:?}, which is not supported")]
    Encoding(String),
    #[error("the protobuf body has no apiVersion and kind")]
    MissingKind,
    #[error("protobuf is not supported for apiVersion {api_version}, kind {kind}; send JSON")]
    Kind { api_version: String, kind: String },
}

/// Decodes a body to the JSON that Go prints for the object in it.
pub(crate) fn decode(body: &[u8]) -> Result<Value, ProtobufError> {
    let Envelope { api_version, kind, raw } = envelope(body)?;
    let Some(message) = message_of(&api_version, &kind) else {
        return Err(ProtobufError::Kind { api_version, kind });
    };
    let mut object = Map::new();
    message.decode(raw, &mut object, &mut message::Budget::default())?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

/// `k8s.io/apimachinery/pkg/runtime.Unknown`.
struct Envelope<'b> {
    api_version: String,
    kind: String,
    raw: &'b [u8],
}

fn envelope(body: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    let mut reader = Reader::new(body.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?);
    let mut envelope = Envelope { api_version: String::new(), kind: String::new(), raw: &[] };
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => type_meta(reader.delimited(wire, "typeMeta")?, &mut envelope)?,
            2 => envelope.raw = reader.delimited(wire, "raw")?,
            3 => {
                let encoding = text(reader.delimited(wire, "contentEncoding")?, "contentEncoding")?;
                if !encoding.is_empty() {
                    return Err(ProtobufError::Encoding(encoding));
                }
            }
            _ => reader.skip(wire)?,
        }
    }
    if envelope.api_version.is_empty() || envelope.kind.is_empty() {
        return Err(ProtobufError::MissingKind);
    }
    Ok(envelope)
}

fn type_meta(bytes: &[u8], envelope: &mut Envelope<'_>) -> Result<(), ProtobufError> {
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.tag()? {
        match number {
            1 => envelope.api_version = text(reader.delimited(wire, "apiVersion")?, "apiVersion")?,
            2 => envelope.kind = text(reader.delimited(wire, "kind")?, "kind")?,
            _ => reader.skip(wire)?,
        }
    }
    Ok(())
}

fn text(bytes: &[u8], field: &'static str) -> Result<String, ProtobufError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| ProtobufError::Utf8(field))
}

fn message_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    Some(match (api_version, kind) {
        ("v1", "Namespace") => &core::NAMESPACE,
        ("v1", "ConfigMap") => &core::CONFIG_MAP,
        ("v1", "Secret") => &core::SECRET,
        ("v1", "ServiceAccount") => &core::SERVICE_ACCOUNT,
        ("v1", "Event") => &core::EVENT,
        ("events.k8s.io/v1", "Event") => &core::NEW_EVENT,
        ("coordination.k8s.io/v1", "Lease") => &core::LEASE,
        ("apps/v1", "ControllerRevision") => &core::CONTROLLER_REVISION,
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview") => &review::SELF_SUBJECT_ACCESS_REVIEW,
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview") => &review::SELF_SUBJECT_RULES_REVIEW,
        ("authentication.k8s.io/v1", "SelfSubjectReview") => &review::SELF_SUBJECT_REVIEW,
        ("rbac.authorization.k8s.io/v1", "Role") => &review::ROLE,
        ("rbac.authorization.k8s.io/v1", "ClusterRole") => &review::CLUSTER_ROLE,
        ("rbac.authorization.k8s.io/v1", "RoleBinding" | "ClusterRoleBinding") => &review::ROLE_BINDING,
        // Clients send it in the version of the resource that they delete.
        (_, "DeleteOptions") => &meta::DELETE_OPTIONS,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
