//! Signs certificates for custom signers.
//!
//! Owns the encoding of a leaf certificate. rcgen reads the CA's key and signs, but it cannot
//! express a subject with several organizations, so the subject is copied as it was checked. Time
//! and serial number are arguments.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rcgen::{KeyPair, PublicKeyData, SigningKey};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::der::{sequence, tlv};
use crate::pkcs10::RequestedCertificate;

/// The longest validity of a certificate, as OCM's own manager issues them.
pub const LONGEST_VALIDITY: SignedDuration = SignedDuration::from_hours(24);
/// Allows for clocks that are behind.
const BACKDATED: SignedDuration = SignedDuration::from_mins(5);
/// The shortest validity that Kubernetes lets clients ask for.
const SHORTEST_VALIDITY: SignedDuration = SignedDuration::from_mins(10);

/// Why nothing can be signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    #[error("tls.crt is not one certificate in PEM")]
    Certificate,
    #[error("tls.crt is not the certificate of a CA that may sign certificates")]
    NotACa,
    #[error("tls.key is not a private key in PEM (PKCS#8, or PKCS#1 for RSA) that can be used")]
    Key,
    #[error("tls.key does not belong to tls.crt")]
    OtherKey,
    #[error("the CA's certificate has expired, or expires within ten minutes")]
    Expired,
    #[error("the CA's key has an algorithm that is not supported")]
    Algorithm,
    #[error("the CA's key failed to sign")]
    Sign,
}

/// The CA of a custom signer.
pub struct Ca {
    key: KeyPair,
    /// The subject of the CA's certificate, DER.
    issuer: Vec<u8>,
    key_id: Option<Vec<u8>>,
    not_after: Timestamp,
}

impl std::fmt::Debug for Ca {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ca").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

impl Ca {
    /// Reads a CA from the fields of a TLS Secret.
    pub fn read(certificate: &[u8], key: &[u8]) -> Result<Self, SignError> {
        let der = block(certificate, "CERTIFICATE").ok_or(SignError::Certificate)?;
        let (_, parsed) = X509Certificate::from_der(&der).map_err(|_| SignError::Certificate)?;
        let may_sign = parsed.key_usage().ok().flatten().is_none_or(|usage| usage.value.key_cert_sign());
        if !parsed.is_ca() || !may_sign {
            return Err(SignError::NotACa);
        }
        let key = read_key(key).ok_or(SignError::Key)?;
        if key.subject_public_key_info() != parsed.public_key().raw {
            return Err(SignError::OtherKey);
        }
        let not_after = parsed.validity().not_after.timestamp();
        let key_id = parsed.iter_extensions().find_map(|extension| match extension.parsed_extension() {
            x509_parser::extensions::ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
            _ => None,
        });
        Ok(Self {
            key,
            issuer: parsed.subject().as_raw().to_vec(),
            key_id,
            not_after: Timestamp::from_second(not_after).map_err(|_| SignError::Certificate)?,
        })
    }

    /// A certificate for what was asked and checked, as PEM.
    pub fn sign(
        &self,
        asked: &RequestedCertificate,
        wanted: Option<SignedDuration>,
        now: Timestamp,
        serial: [u8; 16],
    ) -> Result<String, SignError> {
        let wanted = wanted.unwrap_or(LONGEST_VALIDITY).clamp(SHORTEST_VALIDITY, LONGEST_VALIDITY);
        let until = now.saturating_add(wanted).map_err(|_| SignError::Expired)?.min(self.not_after);
        if until < now.saturating_add(SHORTEST_VALIDITY).map_err(|_| SignError::Expired)? {
            return Err(SignError::Expired);
        }
        let from = now.saturating_sub(BACKDATED).map_err(|_| SignError::Expired)?;
        let algorithm = algorithm(&self.key).ok_or(SignError::Algorithm)?;
        let serial = positive(serial);
        let tbs = sequence(&[
            &tlv(0xa0, &[&[0x02, 0x01, 0x02]]),
            &tlv(0x02, &[&serial]),
            algorithm,
            &self.issuer,
            &sequence(&[&time(from), &time(until)]),
            &asked.subject,
            &asked.public_key,
            &tlv(0xa3, &[&sequence(&[&self.extensions(asked)])]),
        ]);
        let signature = self.key.sign(&tbs).map_err(|_| SignError::Sign)?;
        let der = sequence(&[&tbs, algorithm, &tlv(0x03, &[&[0], &signature])]);
        Ok(pem("CERTIFICATE", &der))
    }

    /// Key usage, extended key usage, no CA, the CA's key, and the DNS names.
    fn extensions(&self, asked: &RequestedCertificate) -> Vec<u8> {
        // digitalSignature and keyEncipherment.
        let usage = extension(&[0x55, 0x1d, 0x0f], true, &tlv(0x03, &[&[5, 0xa0]]));
        let client_auth = tlv(0x06, &[&[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02]]);
        let purposes = extension(&[0x55, 0x1d, 0x25], false, &sequence(&[&client_auth]));
        let mut all = [usage, purposes, extension(&[0x55, 0x1d, 0x13], true, &sequence(&[]))].concat();
        if let Some(id) = &self.key_id {
            all.extend(extension(&[0x55, 0x1d, 0x23], false, &sequence(&[&tlv(0x80, &[id])])));
        }
        if !asked.dns_names.is_empty() {
            let names: Vec<u8> =
                asked.dns_names.iter().flat_map(|name| tlv(0x82, &[name.as_bytes()])).collect();
            all.extend(extension(&[0x55, 0x1d, 0x11], false, &sequence(&[&names])));
        }
        all
    }
}

/// A key in PKCS#8, or in PKCS#1, which OCM's documentation uses for CAs.
fn read_key(pem: &[u8]) -> Option<KeyPair> {
    if let Some(der) = block(pem, "PRIVATE KEY") {
        return KeyPair::try_from(der).ok();
    }
    let rsa = block(pem, "RSA PRIVATE KEY")?;
    let algorithm =
        [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
    KeyPair::try_from(sequence(&[&[0x02, 0x01, 0x00], &algorithm, &tlv(0x04, &[&rsa])])).ok()
}

/// The AlgorithmIdentifier of a key's signatures, DER.
fn algorithm(key: &KeyPair) -> Option<&'static [u8]> {
    let used = key.algorithm();
    let known: [(&rcgen::SignatureAlgorithm, &'static [u8]); 4] = [
        (
            &rcgen::PKCS_ECDSA_P256_SHA256,
            &[0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02],
        ),
        (
            &rcgen::PKCS_ECDSA_P384_SHA384,
            &[0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03],
        ),
        (&rcgen::PKCS_ED25519, &[0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70]),
        (
            &rcgen::PKCS_RSA_SHA256,
            &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b, 0x05, 0x00],
        ),
    ];
    known.into_iter().find(|(one, _)| *one == used).map(|(_, der)| der)
}

/// A serial number that is positive and not zero, as X.509 requires.
fn positive(mut serial: [u8; 16]) -> [u8; 16] {
    serial[0] = (serial[0] & 0x7f) | 0x40;
    serial
}

/// UTCTime until 2049, GeneralizedTime from 2050 on.
fn time(at: Timestamp) -> Vec<u8> {
    let at = at.to_zoned(TimeZone::UTC);
    let rest =
        format!("{:02}{:02}{:02}{:02}{:02}Z", at.month(), at.day(), at.hour(), at.minute(), at.second());
    match at.year() {
        year @ 1950..=2049 => tlv(0x17, &[format!("{:02}{rest}", year % 100).as_bytes()]),
        year => tlv(0x18, &[format!("{year:04}{rest}").as_bytes()]),
    }
}

fn extension(id: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let flag: &[u8] = if critical { &[0x01, 0x01, 0xff] } else { &[] };
    sequence(&[&tlv(0x06, &[id]), flag, &tlv(0x04, &[value])])
}

/// The content of the first PEM block, if it has this type.
fn block(pem: &[u8], kind: &str) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(pem).ok()?;
    let (_, rest) = text.split_once(&format!("-----BEGIN {kind}-----"))?;
    let (inner, _) = rest.split_once(&format!("-----END {kind}-----"))?;
    let packed: String = inner.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(packed).ok()
}

fn pem(kind: &str, der: &[u8]) -> String {
    let packed = STANDARD.encode(der);
    let mut out = format!("-----BEGIN {kind}-----\n");
    for (index, c) in packed.chars().enumerate() {
        if index > 0 && index % 64 == 0 {
            out.push('\n');
        }
        out.push(c);
    }
    out.push_str(&format!("\n-----END {kind}-----\n"));
    out
}
