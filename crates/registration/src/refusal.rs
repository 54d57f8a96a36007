//! Why a request is left alone. Each reason has a code for programs and a text for people.

use std::fmt;

use aviary_api::visible::visible;

use crate::pkcs10::Unreadable;

/// The longest name of others in a text.
const LONGEST: usize = 200;

/// A request that is not approved, and why. It stays pending, as with Open Cluster Management's own
/// manager: an administrator may still decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestRefusal {
    ClusterUnknown,
    ClusterNotAccepted,
    /// The content of the template that the instance is assigned is not known.
    TemplateUnknown,
    WrongSigner {
        signer: String,
    },
    SignerNotListed {
        signer: String,
    },
    WrongSecret {
        signer: String,
    },
    Expired {
        seconds: i64,
    },
    WrongRequester {
        user: String,
    },
    WrongUsages {
        usages: Vec<String>,
    },
    Unreadable(Unreadable),
    WrongCommonName {
        asked: String,
        expected: String,
    },
    WrongGroups {
        extra: Vec<String>,
        missing: Vec<String>,
    },
    WrongUnits,
    WrongNames {
        asked: String,
    },
    TooMany {
        approved: usize,
    },
    /// The driver of the instance issues tokens, so no certificate is needed.
    TokenDriver,
}

impl RequestRefusal {
    /// The reason of the Event.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ClusterUnknown => "ClusterUnknown",
            Self::ClusterNotAccepted => "ClusterNotAccepted",
            Self::TemplateUnknown => "TemplateUnknown",
            Self::WrongSigner { .. } => "WrongSigner",
            Self::SignerNotListed { .. } => "SignerNotListed",
            Self::WrongSecret { .. } => "WrongSigningCA",
            Self::Expired { .. } => "RequestExpired",
            Self::WrongRequester { .. } => "WrongRequester",
            Self::WrongUsages { .. } => "WrongUsages",
            Self::Unreadable(_) => "UnreadableRequest",
            Self::WrongCommonName { .. } => "WrongCommonName",
            Self::WrongGroups { .. } => "WrongGroups",
            Self::WrongUnits => "WrongOrganizationalUnits",
            Self::WrongNames { .. } => "WrongDNSNames",
            Self::TooMany { .. } => "TooManyRequests",
            Self::TokenDriver => "TokenDriver",
        }
    }
}

impl fmt::Display for RequestRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |text: &str| visible(text).at_most(LONGEST).to_string();
        match self {
            Self::ClusterUnknown => f.write_str("the cluster that its label names does not exist"),
            Self::ClusterNotAccepted => {
                f.write_str("the hub has not accepted the cluster (spec.hubAcceptsClient)")
            }
            Self::TemplateUnknown => {
                f.write_str("the template that the instance is assigned is not stored on the hub")
            }
            Self::WrongSigner { signer } => {
                write!(f, "the add-on's template does not use the signer {}", short(signer))
            }
            Self::SignerNotListed { signer } => {
                write!(f, "the administrator has not listed the signer {} (--signer)", short(signer))
            }
            Self::WrongSecret { signer } => {
                write!(
                    f,
                    "the template names another signingCA for {} than the administrator (--signer)",
                    short(signer)
                )
            }
            Self::Expired { seconds } => {
                write!(f, "it is older than {seconds} s: the agent must send a new one")
            }
            Self::WrongRequester { user } => {
                write!(f, "the requester {} is not an agent of the cluster that its label names", short(user))
            }
            Self::WrongUsages { usages } => {
                let expected = "client auth and digital signature, optionally key encipherment";
                write!(f, "its usages are {}, expected {expected}", short(&usages.join(", ")))
            }
            Self::Unreadable(why) => why.fmt(f),
            Self::WrongCommonName { asked, expected } => {
                write!(f, "its common name is {}, expected {}", short(asked), short(expected))
            }
            Self::WrongGroups { extra, missing } if missing.is_empty() => {
                write!(
                    f,
                    "it asks for organizations that the agent must not have: {}",
                    short(&extra.join(", "))
                )
            }
            Self::WrongGroups { missing, .. } => {
                write!(f, "its organizations lack {}", short(&missing.join(", ")))
            }
            Self::WrongUnits => f.write_str("its organizational units differ from those of the registration"),
            Self::WrongNames { asked } => write!(f, "it asks for the DNS names {}", short(asked)),
            Self::TooMany { approved } => {
                write!(f, "{approved} requests of this agent were approved within the last hour")
            }
            Self::TokenDriver => {
                f.write_str("the agent uses tokens, not certificates (status.kubeClientDriver)")
            }
        }
    }
}
