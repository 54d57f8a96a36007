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
use x509_parser::x509::X509Name;

/// The largest request that is read. One with a 4096-bit RSA key has about 2 KiB.
pub const MOST_BYTES: usize = 8 << 10;

const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
const END: &str = "-----END CERTIFICATE REQUEST-----";

/// What a request asks for. Its signature is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
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
pub fn read(pem: &[u8]) -> Result<Asked, Unreadable> {
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
    let mut asked = Asked {
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

fn read_subject(subject: &X509Name<'_>, asked: &mut Asked) -> Result<(), Unreadable> {
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
