//! Certificates of custom signers, read back by another parser.

use aviary_registration::pkcs10;
use aviary_registration::sign::{Ca, SignError};
use jiff::{SignedDuration, Timestamp};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose};
use x509_parser::pem::parse_x509_pem;

use crate::csr::Draft;

fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().unwrap()
}

/// The certificate and key of a CA.
fn ca(is_ca: bool, days: i64) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = if is_ca { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::NoCa };
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(DnType::CommonName, "the signer");
    let until = now().as_second() + days * 86_400;
    params.not_after =
        (std::time::UNIX_EPOCH + std::time::Duration::from_secs(u64::try_from(until).unwrap())).into();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn read((certificate, key): &(String, String)) -> Result<Ca, SignError> {
    Ca::read(certificate.as_bytes(), key.as_bytes())
}

#[test]
fn a_certificate_holds_what_was_asked_and_no_more() {
    let authority = ca(true, 365);
    let groups = ["g1".to_owned(), "g2".to_owned(), "g3".to_owned()];
    let draft = Draft { in_one_set: true, ..Draft::new("the agent", &groups) }
        .with_unit("u")
        .with_dns("a.example.com");
    let asked = pkcs10::read(&draft.pem()).unwrap();
    let pem = read(&authority).unwrap().sign(&asked, None, now(), [0xff; 16]).unwrap();
    let (_, issued) = parse_x509_pem(pem.as_bytes()).unwrap();
    let certificate = issued.parse_x509().unwrap();
    let (_, parent) = parse_x509_pem(authority.0.as_bytes()).unwrap();
    let parent = parent.parse_x509().unwrap();
    certificate.verify_signature(Some(parent.public_key())).unwrap();
    assert_eq!(certificate.issuer().as_raw(), parent.subject().as_raw());
    assert_eq!(certificate.subject().as_raw(), asked.subject);
    assert_eq!(certificate.subject().iter_organization().count(), 3);
    assert_eq!(certificate.public_key().raw, asked.public_key);
    assert!(!certificate.is_ca() && certificate.version().0 == 2);
    assert!(!certificate.raw_serial().starts_with(&[0xff]), "a serial number is positive");
    let purposes = certificate.extended_key_usage().unwrap().unwrap().value;
    assert!(purposes.client_auth && !purposes.server_auth && !purposes.any);
    let usage = certificate.key_usage().unwrap().unwrap().value;
    assert!(usage.digital_signature() && usage.key_encipherment() && !usage.key_cert_sign());
    let names = format!("{:?}", certificate.subject_alternative_name().unwrap().unwrap().value.general_names);
    assert_eq!(names, r#"[DNSName("a.example.com")]"#);
    let validity = certificate.validity();
    assert_eq!(validity.not_after.timestamp(), now().as_second() + 86_400);
    assert_eq!(validity.not_before.timestamp(), now().as_second() - 300);
}

#[test]
fn a_certificate_is_valid_for_as_long_as_asked_within_bounds_and_never_longer_than_its_ca() {
    let asked = pkcs10::read(&Draft::new("the agent", &[]).pem()).unwrap();
    let lasts = |authority: &(String, String), wanted: Option<SignedDuration>| {
        let pem = read(authority).unwrap().sign(&asked, wanted, now(), [1; 16])?;
        let (_, issued) = parse_x509_pem(pem.as_bytes()).unwrap();
        Ok::<_, SignError>(issued.parse_x509().unwrap().validity().not_after.timestamp() - now().as_second())
    };
    let authority = ca(true, 365);
    assert_eq!(lasts(&authority, Some(SignedDuration::from_hours(2))), Ok(7200));
    assert_eq!(lasts(&authority, Some(SignedDuration::from_secs(1))), Ok(600));
    assert_eq!(lasts(&authority, Some(SignedDuration::from_hours(9999))), Ok(86_400));
    assert_eq!(lasts(&ca(true, 0), None), Err(SignError::Expired));
    assert_eq!(lasts(&ca(true, -1), None), Err(SignError::Expired));
}

#[test]
fn a_secret_that_is_no_ca_signs_nothing() {
    let (good, other) = (ca(true, 365), ca(true, 365));
    assert!(read(&good).is_ok());
    let error = |certificate: &str, key: &str| Ca::read(certificate.as_bytes(), key.as_bytes()).unwrap_err();
    assert_eq!(error(&ca(false, 365).0, &good.1), SignError::NotACa);
    assert_eq!(error(&good.0, &other.1), SignError::OtherKey);
    assert_eq!(error("", &good.1), SignError::Certificate);
    assert_eq!(
        error(&good.0, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"),
        SignError::Key
    );
    assert_eq!(error(&good.0, ""), SignError::Key);
}
