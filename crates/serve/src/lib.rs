//! Serving HTTP: listeners with limits and graceful shutdown, TLS, certificates, and the
//! credentials of requests.
//!
//! The embedded hub, the manager's metrics and the dashboard are all served from here. Must not
//! know the Kubernetes API, nor what anybody may do.

mod authority;
mod certificate;
mod credential;
mod files;
mod host;
mod listener;
#[cfg(test)]
mod testing;
mod tls_files;

pub use authority::{Authority, AuthorityError};
pub use certificate::{ServerCertificate, keep_renewed};
pub use credential::Credential;
pub use files::{private_directory, read_secret, write_private};
pub use host::{AllowedHosts, InvalidHost, host_allowed};
pub use listener::{Limits, Peer, serve_tls, serve_unencrypted};
pub use tls_files::{TlsFileError, tls_from_files};
