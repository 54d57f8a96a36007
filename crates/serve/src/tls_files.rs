//! TLS with a certificate from files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::authority::provider;
use crate::certificate::ALPN;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    #[error("failed to read a certificate from {path}")]
    Certificate { path: PathBuf, source: pem::Error },
    #[error("failed to read a key from {path}")]
    Key { path: PathBuf, source: pem::Error },
    #[error("failed to use the certificate {path}")]
    Unusable { path: PathBuf, source: rustls::Error },
}

/// TLS 1.2 and 1.3 with the certificate chain and the key in these PEM files, offering HTTP/2 and
/// HTTP/1.1.
pub fn tls_from_files(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsFileError> {
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|source| TlsFileError::Certificate { path: certificate.to_owned(), source })?;
    let key = PrivateKeyDer::from_pem_file(key)
        .map_err(|source| TlsFileError::Key { path: key.to_owned(), source })?;
    let mut tls = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()
        .and_then(|tls| tls.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|source| TlsFileError::Unusable { path: certificate.to_owned(), source })?;
    tls.alpn_protocols = ALPN.map(<[u8]>::to_vec).into();
    Ok(Arc::new(tls))
}
