//! Who may talk to the hub, and how it proves what it is.
//!
//! Owns the certificate authority, bearer tokens, the access rules, the `Host` check and the files that
//! hold secrets. It must not know the store, the API's kinds or the routes: the core asks it and obeys.
//! A request that comes over a socket passes [`gate`]; one made in process brings its own [`Identity`].

pub mod access;
pub mod authority;
pub mod certificate;
pub mod files;
pub mod gate;
pub mod host;
pub mod kubeconfig;
pub mod tokens;

#[cfg(test)]
pub(crate) mod testing;

pub use access::{Access, Denied, Role, allowed};
pub use authority::{Authority, AuthorityError};
pub use certificate::{ServerCertificate, keep_renewed};
pub use files::write_private;
pub use gate::{Gate, guard};
pub use host::{AllowedHosts, InvalidHost, host_allowed};
pub use kubeconfig::kubeconfig;
pub use tokens::{Identity, Secret, TokenError, Tokens};
