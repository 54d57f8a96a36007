//! Reads PKCS#10 requests, strictly and within bounds.
//!
//! The signer is another program with another parser. So everything that two parsers could read
//! differently is refused: several PEM blocks, text around them, several common names, unusual
//! string types, attributes and extensions that no agent sends.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_parser::asn1_rs::Tag;
use x509_parser::certification_request::{X509CertificationRequest, X509CertificationRequestInfo};
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::{
    OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME, OID_X509_ORGANIZATIONAL_UNIT,
};
use x509_parser::prelude::FromDer;
use x509_parser::x509::{AttributeTypeAndValue, RelativeDistinguishedName, X509Name};

use crate::der::{sequence, tlv};

/// The largest request that is read. One with a 4096-bit RSA key has about 2 KiB.
pub const MOST_BYTES: usize = 8 << 10;

const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
const END: &str = "-----END CERTIFICATE REQUEST-----";

/// What a request asks for. Its signature is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedCertificate {
    pub common_name: String,
    pub organizations: Vec<String>,
    pub units: Vec<String>,
    pub dns_names: Vec<String>,
    /// The subject as it was sent, DER.
    pub subject: Vec<u8>,
    /// The SubjectPublicKeyInfo, DER.
    pub public_key: Vec<u8>,
}

/// Why a request is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("it has {0} bytes, and at most {MOST_BYTES} are read")]
    TooLarge(usize),
    #[error("it is not exactly one PEM block of type CERTIFICATE REQUEST")]
    NotPem,
    #[error("it is not a PKCS#10 request")]
    NotPkcs10,
    #[error("its signature does not match its key")]
    Signature,
    #[error("its subject has {0}")]
    Subject(&'static str),
    #[error("it requests {0}")]
    Extension(&'static str),
}

/// Reads a request from PEM.
pub fn read(pem: &[u8]) -> Result<RequestedCertificate, Unreadable> {
    if pem.len() > MOST_BYTES {
        return Err(Unreadable::TooLarge(pem.len()));
    }
    let der = unwrapped(pem).ok_or(Unreadable::NotPem)?;
    let (rest, request) = X509CertificationRequest::from_der(&der).map_err(|_| Unreadable::NotPkcs10)?;
    if !rest.is_empty() {
        return Err(Unreadable::NotPkcs10);
    }
    request.verify_signature().map_err(|_| Unreadable::Signature)?;
    let info = &request.certification_request_info;
    if !is_exact(&der, info.raw, &request.signature_value.data)
        || written(&info.subject) != info.subject.as_raw()
    {
        return Err(Unreadable::NotPkcs10);
    }
    let mut asked = RequestedCertificate {
        common_name: String::new(),
        organizations: Vec::new(),
        units: Vec::new(),
        dns_names: dns_names(info)?,
        subject: info.subject.as_raw().to_vec(),
        public_key: info.subject_pki.raw.to_vec(),
    };
    read_subject(&info.subject, &mut asked)?;
    Ok(asked)
}

/// Whether the envelope is the only way to write a signed request in DER: what is in it is signed,
/// but the envelope is not.
fn is_exact(der: &[u8], info: &[u8], signature: &[u8]) -> bool {
    let envelope = |algorithm: &&[u8]| sequence(&[info, algorithm, &tlv(0x03, &[&[0], signature])]) == der;
    ALGORITHMS.iter().any(envelope)
}

/// The AlgorithmIdentifiers of ECDSA and RSA with SHA-256, SHA-384 and SHA-512, and of Ed25519.
const ALGORITHMS: [&[u8]; 7] = [
    &[0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02],
    &[0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03],
    &[0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04],
    &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b, 0x05, 0x00],
    &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c, 0x05, 0x00],
    &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0d, 0x05, 0x00],
    &[0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70],
];

/// The subject as DER writes it.
fn written(subject: &X509Name<'_>) -> Vec<u8> {
    let attribute = |attribute: &AttributeTypeAndValue<'_>| {
        let value = attribute.attr_value();
        let tag = u8::try_from(value.tag().0).unwrap_or(u8::MAX);
        sequence(&[&tlv(0x06, &[attribute.attr_type().as_bytes()]), &tlv(tag, &[value.data])])
    };
    let set = |names: &RelativeDistinguishedName<'_>| {
        tlv(0x31, &[&names.iter().flat_map(attribute).collect::<Vec<u8>>()])
    };
    sequence(&[&subject.iter_rdn().flat_map(set).collect::<Vec<u8>>()])
}

/// The content of the one block.
fn unwrapped(pem: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(pem).ok()?.trim_ascii();
    let inner = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
    if !inner.starts_with(['\n', '\r']) {
        return None;
    }
    let packed: String = inner.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    STANDARD.decode(packed).ok()
}

fn read_subject(subject: &X509Name<'_>, asked: &mut RequestedCertificate) -> Result<(), Unreadable> {
    let mut common_names = 0;
    for attribute in subject.iter_attributes() {
        let value = attribute.attr_value();
        if !matches!(value.tag(), Tag::Utf8String | Tag::PrintableString) {
            return Err(Unreadable::Subject("a string of an unusual type"));
        }
        let text =
            attribute.as_str().map_err(|_| Unreadable::Subject("a string that is not text"))?.to_owned();
        match attribute.attr_type() {
            kind if *kind == OID_X509_COMMON_NAME => {
                common_names += 1;
                asked.common_name = text;
            }
            kind if *kind == OID_X509_ORGANIZATION_NAME => asked.organizations.push(text),
            kind if *kind == OID_X509_ORGANIZATIONAL_UNIT => asked.units.push(text),
            _ => return Err(Unreadable::Subject("more than a common name, organizations and their units")),
        }
    }
    match common_names {
        1 => Ok(()),
        0 => Err(Unreadable::Subject("no common name")),
        _ => Err(Unreadable::Subject("several common names")),
    }
}

/// The DNS names; the only extension that agents request.
fn dns_names(info: &X509CertificationRequestInfo<'_>) -> Result<Vec<String>, Unreadable> {
    let attribute = match info.attributes() {
        [] => return Ok(Vec::new()),
        [one] => one.parsed_attribute(),
        _ => return Err(Unreadable::Extension("several sets of extensions")),
    };
    let ParsedCriAttribute::ExtensionRequest(requested) = attribute else {
        return Err(Unreadable::Extension("something other than extensions"));
    };
    let extension = match requested.extensions.as_slice() {
        [] => return Ok(Vec::new()),
        [one] => one.parsed_extension(),
        _ => return Err(Unreadable::Extension("more than alternative names")),
    };
    let ParsedExtension::SubjectAlternativeName(names) = extension else {
        return Err(Unreadable::Extension("an extension other than alternative names"));
    };
    let dns = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Ok((*name).to_owned()),
        _ => Err(Unreadable::Extension("alternative names other than DNS names")),
    };
    names.general_names.iter().map(dns).collect()
}
