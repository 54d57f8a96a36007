//! The hub's own certificate authority.
//!
//! Owns `ca.key` and `ca.crt` and the issuing of server certificates. It must never overwrite a
//! file it cannot read: every kubeconfig handed out trusts this one authority, and a silently new
//! one would lock all of them out. `ca.key` is written first and `ca.crt` last, so a key alone is
//! an unfinished start and is completed; a certificate alone is damage.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData,
};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, RootCertStore};

use crate::files::{private_directory, read_secret, read_text, write_private};

const CERTIFICATE_FILE: &str = "ca.crt";
const KEY_FILE: &str = "ca.key";
/// 10 years. The kubeconfigs contain this certificate, so they are valid no longer.
const AUTHORITY_LIFETIME: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
/// Certificates are backdated, so that a client whose clock is a day behind accepts them.
const BACKDATED: SignedDuration = SignedDuration::from_hours(25);

/// Signs the hub's server certificates; the root that clients trust.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
}

/// Why there is no authority, or no certificate from it.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("failed to read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("failed to write {path}")]
    Write { path: PathBuf, source: io::Error },
    #[error("{path} is damaged ({reason}); restore it, or remove ca.crt and ca.key to start a new authority")]
    Damaged { path: PathBuf, reason: String },
    #[error("{path} is missing but ca.crt is there; restore it, or remove ca.crt to start a new authority")]
    KeyMissing { path: PathBuf },
    #[error("{path} has expired; remove ca.crt and ca.key to start a new authority")]
    Expired { path: PathBuf },
    #[error("failed to issue a certificate")]
    Issue(#[from] rcgen::Error),
    #[error("failed to use the certificate for TLS")]
    Tls(#[from] rustls::Error),
}

impl Authority {
    /// Loads the authority kept in `directory`, or creates it there (directory 0700, files 0600).
    pub fn open(directory: &Path, now: Timestamp) -> Result<Self, AuthorityError> {
        let certificate_path = directory.join(CERTIFICATE_FILE);
        let key_path = directory.join(KEY_FILE);
        private_directory(directory)
            .map_err(|source| AuthorityError::Write { path: directory.to_owned(), source })?;
        let certificate = read_text(&certificate_path)
            .map_err(|source| AuthorityError::Read { path: certificate_path.clone(), source })?;
        let key = read_secret(&key_path)
            .map_err(|source| AuthorityError::Read { path: key_path.clone(), source })?;

        match (certificate, key) {
            (Some(pem), Some(key)) => {
                load(pem, parse_key(&key, &key_path)?, &certificate_path, &key_path, now)
            }
            (Some(_), None) => Err(AuthorityError::KeyMissing { path: key_path }),
            (None, key) => {
                let key = match key {
                    Some(key) => parse_key(&key, &key_path)?,
                    None => {
                        let key = KeyPair::generate()?;
                        save(&key_path, &key.serialize_pem())?;
                        key
                    }
                };
                let authority = create(key, now)?;
                save(&certificate_path, &authority.pem)?;
                Ok(authority)
            }
        }
    }

    /// An authority in memory.
    pub fn ephemeral(now: Timestamp) -> Result<Self, AuthorityError> {
        create(KeyPair::generate()?, now)
    }

    /// A new authority and its key, PEM, for whoever keeps it.
    pub fn generate(now: Timestamp) -> Result<(Self, String), AuthorityError> {
        let key = KeyPair::generate()?;
        let pem = key.serialize_pem();
        Ok((create(key, now)?, pem))
    }

    /// The authority that [`Authority::generate`] made, from its certificate and its key.
    pub fn from_pem(certificate: &str, key: &str, now: Timestamp) -> Result<Self, AuthorityError> {
        let (certificate_path, key_path) = (Path::new(CERTIFICATE_FILE), Path::new(KEY_FILE));
        load(certificate.to_owned(), parse_key(key, key_path)?, certificate_path, key_path, now)
    }

    /// The root certificate, as it goes into a kubeconfig.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The root certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// A fresh key with a certificate for `names`, valid for `lifetime` from `now`.
    pub(crate) fn issue(
        &self,
        names: Vec<String>,
        now: Timestamp,
        lifetime: SignedDuration,
    ) -> Result<CertifiedKey, AuthorityError> {
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = named("aviary-hub");
        set_validity(&mut params, now, lifetime);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.der().clone();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok(CertifiedKey::from_der(vec![certificate], key, &provider())?)
    }
}

/// The only cryptography provider; given explicitly, so that no process-wide default is used.
pub(crate) fn provider() -> CryptoProvider {
    ring::default_provider()
}

fn create(key: KeyPair, now: Timestamp) -> Result<Authority, AuthorityError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = named("aviary-hub-ca");
    set_validity(&mut params, now, AUTHORITY_LIFETIME);
    // May sign servers, but no other authority.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key)?;
    Ok(Authority {
        pem: certificate.pem(),
        certificate: certificate.der().clone(),
        issuer: Issuer::new(params, key),
    })
}

fn load(
    pem: String,
    key: KeyPair,
    certificate_path: &Path,
    key_path: &Path,
    now: Timestamp,
) -> Result<Authority, AuthorityError> {
    let damaged = |reason: String| AuthorityError::Damaged { path: certificate_path.to_owned(), reason };
    let certificate =
        CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| damaged(error.to_string()))?;
    let parsed = ParsedCertificate::try_from(&certificate).map_err(|error| damaged(error.to_string()))?;
    if parsed.subject_public_key_info().as_ref() != key.subject_public_key_info() {
        return Err(damaged(format!("it does not belong to the key in {}", key_path.display())));
    }
    if has_expired(&certificate, now)? {
        return Err(AuthorityError::Expired { path: certificate_path.to_owned() });
    }
    let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(|error| damaged(error.to_string()))?;
    Ok(Authority { issuer, certificate, pem })
}

/// Go clients refuse an expired root, rustls does not look: better to say it at the start.
///
/// No crate here reads a certificate's dates, but the verifier checks them before anything else, so
/// the authority is shown to it as if it were a server; any other objection is expected.
fn has_expired(certificate: &CertificateDer<'static>, now: Timestamp) -> Result<bool, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::new(provider()))
        .build()
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    let name =
        ServerName::try_from("localhost").map_err(|error| rustls::Error::General(error.to_string()))?;
    let time = UnixTime::since_unix_epoch(Duration::from_secs(now.as_second().max(0).cast_unsigned()));
    let verdict = verifier.verify_server_cert(certificate, &[], &name, &[], time);
    let expired = |error: &CertificateError| {
        matches!(error, CertificateError::Expired | CertificateError::ExpiredContext { .. })
    };
    Ok(matches!(verdict, Err(rustls::Error::InvalidCertificate(error)) if expired(&error)))
}

fn parse_key(pem: &str, path: &Path) -> Result<KeyPair, AuthorityError> {
    KeyPair::from_pem(pem)
        .map_err(|error| AuthorityError::Damaged { path: path.to_owned(), reason: error.to_string() })
}

fn save(path: &Path, pem: &str) -> Result<(), AuthorityError> {
    write_private(path, pem.as_bytes())
        .map_err(|source| AuthorityError::Write { path: path.to_owned(), source })
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// From a little before `now` until `lifetime` after it.
fn set_validity(params: &mut CertificateParams, now: Timestamp, lifetime: SignedDuration) {
    // Beyond the year 9000 the addition would overflow and panic.
    const YEAR_9000: i64 = 221_845_392_000;
    let at = |offset: SignedDuration| {
        let seconds = now.as_second().saturating_add(offset.as_secs()).clamp(0, YEAR_9000);
        // rcgen uses the `time` crate, of which only this constructor and addition are needed.
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds.cast_unsigned())
    };
    params.not_before = at(-BACKDATED);
    params.not_after = at(lifetime);
}

#[cfg(test)]
mod tests;
