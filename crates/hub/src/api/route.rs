//! Parses paths.
//!
//! Pure, and accepts any input. It does not know whether a kind or an object exists.

use http::Method;
use percent_encoding::percent_decode_str;

/// The meaning of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Version,
    Health,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/{group}`
    Group(String),
    /// `/api/v1`, `/apis/{group}/{version}`
    Resources {
        group: String,
        version: String,
    },
    OpenApiV2,
    OpenApiV3Index,
    /// `/openapi/v3/{api/v1 | apis/group/version}`
    OpenApiV3 {
        group: String,
        version: String,
    },
    Objects(ResourcePath),
}

/// Objects of one kind, one object, or a subresource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// The verb of a method; `None` if the path does not support the method.
    pub(crate) fn of(method: &Method, target: &ResourcePath, watch: bool) -> Option<Self> {
        match (method.as_str(), target.name.is_some()) {
            ("GET", _) if watch => Some(Self::Watch),
            ("GET", true) => Some(Self::Get),
            ("GET", false) => Some(Self::List),
            ("POST", false) => Some(Self::Create),
            ("PUT", true) => Some(Self::Update),
            ("PATCH", true) => Some(Self::Patch),
            ("DELETE", true) => Some(Self::Delete),
            ("DELETE", false) => Some(Self::DeleteCollection),
            _ => None,
        }
    }
}

/// Parses a path. `None` if it cannot exist.
pub(crate) fn parse(path: &str) -> Option<Route> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<String> = path.split('/').map(segment).collect::<Option<_>>()?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["version"] => Some(Route::Version),
        ["livez" | "readyz" | "healthz"] | ["livez" | "readyz" | "healthz", "ping"] => Some(Route::Health),
        ["api"] => Some(Route::CoreVersions),
        ["apis"] => Some(Route::Groups),
        ["apis", group] => Some(Route::Group((*group).into())),
        ["openapi", "v2"] => Some(Route::OpenApiV2),
        ["openapi", "v3"] => Some(Route::OpenApiV3Index),
        ["openapi", "v3", "api", version] => {
            Some(Route::OpenApiV3 { group: String::new(), version: (*version).into() })
        }
        ["openapi", "v3", "apis", group, version] => {
            Some(Route::OpenApiV3 { group: (*group).into(), version: (*version).into() })
        }
        ["api", version] => Some(Route::Resources { group: String::new(), version: (*version).into() }),
        ["apis", group, version] => {
            Some(Route::Resources { group: (*group).into(), version: (*version).into() })
        }
        ["api", version, rest @ ..] => objects("", version, rest),
        ["apis", group, version, rest @ ..] => objects(group, version, rest),
        _ => None,
    }
}

/// The group at the start of a path, whatever follows; "" is the core group.
pub(crate) fn group_of(path: &str) -> Option<&str> {
    match path.strip_prefix('/')?.split_once('/')? {
        ("api", _) => Some(""),
        ("apis", rest) => rest.split('/').next(),
        _ => None,
    }
}

/// Decodes one segment of a path. Refuses segments that could change the meaning of the path.
fn segment(raw: &str) -> Option<String> {
    let decoded = percent_decode_str(raw).decode_utf8().ok()?;
    let tricky =
        decoded.is_empty() || decoded == "." || decoded == ".." || decoded.contains(['/', '\0', '\\']);
    (!tricky).then(|| decoded.into_owned())
}

fn objects(group: &str, version: &str, rest: &[&str]) -> Option<Route> {
    let target = ResourcePath { group: group.into(), version: version.into(), ..ResourcePath::default() };
    let owned = |text: &&str| Some((*text).to_owned());
    let target = match rest {
        // The namespace itself, and its subresources.
        ["namespaces", name] => ResourcePath { resource: "namespaces".into(), name: owned(name), ..target },
        ["namespaces", name, part @ ("status" | "finalize")] => ResourcePath {
            resource: "namespaces".into(),
            name: owned(name),
            subresource: owned(part),
            ..target
        },
        ["namespaces", namespace, resource] => {
            ResourcePath { resource: (*resource).into(), namespace: owned(namespace), ..target }
        }
        ["namespaces", namespace, resource, name] => ResourcePath {
            resource: (*resource).into(),
            namespace: owned(namespace),
            name: owned(name),
            ..target
        },
        ["namespaces", namespace, resource, name, part] => ResourcePath {
            resource: (*resource).into(),
            namespace: owned(namespace),
            name: owned(name),
            subresource: owned(part),
            ..target
        },
        [resource] => ResourcePath { resource: (*resource).into(), ..target },
        [resource, name] => ResourcePath { resource: (*resource).into(), name: owned(name), ..target },
        [resource, name, part] => ResourcePath {
            resource: (*resource).into(),
            name: owned(name),
            subresource: owned(part),
            ..target
        },
        _ => return None,
    };
    Some(Route::Objects(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str) -> String {
        match parse(path) {
            Some(Route::Objects(target)) => {
                [Some(target.resource), target.namespace, target.name, target.subresource]
                    .map(|part| part.unwrap_or_else(|| "-".into()))
                    .join(" ")
            }
            Some(other) => format!("{other:?}"),
            None => "nothing".into(),
        }
    }

    #[test]
    fn paths_name_kinds_namespaces_names_and_parts() {
        for (path, meaning) in [
            ("/api/v1/namespaces", "namespaces - - -"),
            ("/api/v1/namespaces/a", "namespaces - a -"),
            ("/api/v1/namespaces/a/finalize", "namespaces - a finalize"),
            ("/api/v1/namespaces/a/configmaps", "configmaps a - -"),
            ("/api/v1/namespaces/a/configmaps/b", "configmaps a b -"),
            ("/apis/g.io/v1/things", "things - - -"),
            ("/apis/g.io/v1/things/x/status", "things - x status"),
            ("/apis/g.io/v1/namespaces/a/things/x/status", "things a x status"),
            ("/apis/g.io/v1/namespaces/a/things/x/status/y", "nothing"),
            ("/apis/", "Groups"),
            ("/version", "Version"),
        ] {
            assert_eq!(shown(path), meaning, "{path}");
        }
    }

    #[test]
    fn tricks_lead_nowhere() {
        for path in [
            "",
            "/",
            "//",
            "/api//v1",
            "/api/v1/namespaces/..",
            "/api/v1/namespaces/%2e%2e/configmaps",
            "/api/v1/x%2Fy",
            "/api/v1/configmaps/a%00b",
            "/api/v1/configmaps/%ff",
            "/api/v1/namespaces//configmaps",
            "/../etc/passwd",
            "/api/v1/a%5cb",
        ] {
            assert_eq!(parse(path), None, "{path}");
        }
    }
}
