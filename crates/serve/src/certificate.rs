//! The server certificate in use, replaced before it expires while the process runs.
//!
//! Owns the current key in memory; it is never stored, every start issues a new one. Must not read
//! a clock to decide: the time is an argument, and [`keep_renewed`] is the only timer.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::authority::{Authority, AuthorityError, provider};
use crate::host::AllowedHosts;

/// What is offered to TLS clients, best first.
pub(crate) const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

const LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Leaves ten days to retry a failed renewal.
const RENEW_AFTER: SignedDuration = SignedDuration::from_hours(20 * 24);
/// By wall clock and often, because a laptop's monotonic clock stops while it sleeps.
const CHECK_EVERY: Duration = Duration::from_secs(3600);

/// The certificate for TLS clients: one for all names.
#[derive(Debug)]
pub struct ServerCertificate {
    authority: RwLock<Arc<Authority>>,
    names: Vec<String>,
    current: RwLock<Issued>,
}

#[derive(Debug)]
struct Issued {
    key: Arc<CertifiedKey>,
    at: Timestamp,
}

impl ServerCertificate {
    /// Issues a certificate for loopback and for `hosts`.
    pub fn issue(
        authority: Arc<Authority>,
        hosts: &AllowedHosts,
        now: Timestamp,
    ) -> Result<Arc<Self>, AuthorityError> {
        let names = hosts.subject_names();
        let key = Arc::new(authority.issue(names.clone(), now, LIFETIME)?);
        let current = RwLock::new(Issued { key, at: now });
        Ok(Arc::new(Self { authority: RwLock::new(authority), names, current }))
    }

    /// Replaces the certificate if it is due; new connections use the new one, existing ones
    /// continue. Returns whether it was replaced. On an error the old certificate stays in use.
    pub fn renew_if_due(&self, now: Timestamp) -> Result<bool, AuthorityError> {
        if !self.is_due(now) {
            return Ok(false);
        }
        let authority = Arc::clone(&self.authority.read().unwrap_or_else(PoisonError::into_inner));
        self.replace(&authority, now)?;
        Ok(true)
    }

    /// Replaces the certificate by one of another authority. New connections use it, existing ones
    /// continue.
    pub fn follow(&self, authority: Arc<Authority>, now: Timestamp) -> Result<(), AuthorityError> {
        self.replace(&authority, now)?;
        *self.authority.write().unwrap_or_else(PoisonError::into_inner) = authority;
        Ok(())
    }

    fn replace(&self, authority: &Authority, now: Timestamp) -> Result<(), AuthorityError> {
        // Signed outside the lock: handshakes do not wait for it.
        let key = Arc::new(authority.issue(self.names.clone(), now, LIFETIME)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Issued { key, at: now };
        Ok(())
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let age = now.duration_since(self.current.read().unwrap_or_else(PoisonError::into_inner).at);
        // Negative: issued by a clock that was ahead, so it may not be valid yet.
        age >= RENEW_AFTER || age.is_negative()
    }

    /// TLS 1.2 and 1.3 with this certificate, offering HTTP/2 and HTTP/1.1.
    pub fn tls(self: &Arc<Self>) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = ALPN.map(<[u8]>::to_vec).into();
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for ServerCertificate {
    /// The same for every name: a client that expects another name must see that and refuse.
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).key))
    }
}

/// Renews `certificate` whenever it is due; never returns. Runs next to the server and is dropped
/// with it.
pub async fn keep_renewed(certificate: Arc<ServerCertificate>, clock: impl Fn() -> Timestamp) {
    let mut ticks = tokio::time::interval(CHECK_EVERY);
    loop {
        ticks.tick().await;
        match certificate.renew_if_due(clock()) {
            Ok(true) => tracing::info!("renewed the server certificate"),
            Ok(false) => {}
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "failed to renew the server certificate"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{connect, shown_certificate};
    use rustls::pki_types::CertificateDer;
    use tokio_rustls::TlsAcceptor;

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn fixture(hosts: &AllowedHosts, now: Timestamp) -> (Arc<Authority>, Arc<ServerCertificate>) {
        let authority = Arc::new(Authority::ephemeral(now).unwrap());
        let certificate = ServerCertificate::issue(Arc::clone(&authority), hosts, now).unwrap();
        (authority, certificate)
    }

    fn acceptor(certificate: &Arc<ServerCertificate>) -> TlsAcceptor {
        TlsAcceptor::from(certificate.tls().unwrap())
    }

    /// One handshake over a pipe, and the client's result.
    async fn handshake(
        acceptor: &TlsAcceptor,
        trusted: &Authority,
        name: &str,
    ) -> std::io::Result<CertificateDer<'static>> {
        let (client, server) = tokio::io::duplex(64 << 10);
        let (client, _) = tokio::join!(connect(client, trusted, name, "h2"), acceptor.accept(server));
        client.map(|stream| shown_certificate(&stream))
    }

    #[tokio::test]
    async fn a_client_that_trusts_only_the_authority_reaches_every_name_of_the_hub() {
        let hosts = AllowedHosts::new(["hub.example.com", "192.0.2.7"]).unwrap();
        let (authority, certificate) = fixture(&hosts, Timestamp::now());
        for name in ["localhost", "127.0.0.1", "::1", "hub.example.com", "192.0.2.7"] {
            handshake(&acceptor(&certificate), &authority, name).await.unwrap();
        }
        for name in ["evil.example.com", "192.0.2.8"] {
            handshake(&acceptor(&certificate), &authority, name).await.unwrap_err();
        }
    }

    #[tokio::test]
    async fn a_client_that_trusts_another_authority_refuses() {
        let (_, certificate) = fixture(&AllowedHosts::loopback(), Timestamp::now());
        let stranger = Authority::ephemeral(Timestamp::now()).unwrap();
        let error = handshake(&acceptor(&certificate), &stranger, "localhost").await.unwrap_err();
        // Both authorities have the same name, so only the signature reveals the wrong one.
        assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    }

    #[tokio::test]
    async fn a_certificate_of_a_stored_authority_is_trusted_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let now = Timestamp::now();
        let before = Authority::open(dir.path(), now).unwrap();
        let after = Arc::new(Authority::open(dir.path(), now).unwrap());
        let certificate = ServerCertificate::issue(after, &AllowedHosts::loopback(), now).unwrap();
        handshake(&acceptor(&certificate), &before, "localhost").await.unwrap();
    }

    #[tokio::test]
    async fn a_new_connection_sees_the_renewed_certificate() {
        // Issued 31 days ago: today's client refuses it until it is renewed.
        let now = Timestamp::now();
        let (authority, certificate) = fixture(&AllowedHosts::loopback(), now - DAY * 31);
        let server = acceptor(&certificate);
        let error = handshake(&server, &authority, "localhost").await.unwrap_err();
        assert!(error.to_string().contains("expired"), "{error}");
        assert!(certificate.renew_if_due(now).unwrap());
        let shown = handshake(&server, &authority, "localhost").await.unwrap();
        assert!(!certificate.renew_if_due(now).unwrap());
        assert_eq!(handshake(&server, &authority, "localhost").await.unwrap(), shown);
    }

    #[tokio::test]
    async fn a_new_connection_sees_a_certificate_of_the_new_authority() {
        let now = Timestamp::now();
        let (old, certificate) = fixture(&AllowedHosts::loopback(), now);
        let server = acceptor(&certificate);
        let (new, key) = Authority::generate(now).unwrap();
        let new = Arc::new(Authority::from_pem(new.pem(), &key, now).unwrap());
        certificate.follow(Arc::clone(&new), now).unwrap();
        handshake(&server, &new, "localhost").await.unwrap();
        handshake(&server, &old, "localhost").await.unwrap_err();
        // Renewals are signed by the new one too.
        assert!(certificate.renew_if_due(now + DAY * 25).unwrap());
        handshake(&server, &old, "localhost").await.unwrap_err();
    }

    #[test]
    fn renewal_is_due_ten_days_before_the_end_or_when_the_clock_went_back() {
        let issued = Timestamp::constant(1_800_000_000, 0);
        let (_, certificate) = fixture(&AllowedHosts::loopback(), issued);
        let table = [(0, false), (19, false), (20, true), (29, true), (400, true), (-1, true)];
        for (days, due) in table {
            assert_eq!(certificate.is_due(issued + DAY * days), due, "after {days} days");
        }
    }
}
