//! Builds PKCS#10 requests of every shape, independently of the code under test.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, PublicKeyData, SigningKey};
use yasna::models::ObjectIdentifier;
use yasna::{DERWriter, Tag};

const COMMON_NAME: &[u64] = &[2, 5, 4, 3];
const ORGANIZATION: &[u64] = &[2, 5, 4, 10];
const UNIT: &[u64] = &[2, 5, 4, 11];
const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];
const BASIC_CONSTRAINTS: &[u64] = &[2, 5, 29, 19];
const EXTENSION_REQUEST: &[u64] = &[1, 2, 840, 113_549, 1, 9, 14];

/// A request in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) subject: Vec<(&'static [u64], String)>,
    /// As Go writes them: all organizations in one set.
    pub(crate) in_one_set: bool,
    pub(crate) dns_names: Vec<String>,
    pub(crate) wants_ca: bool,
    pub(crate) broken_signature: bool,
    /// Bytes to add to the subject as an organization.
    pub(crate) padding: usize,
}

impl Draft {
    pub(crate) fn new(user: &str, groups: &[String]) -> Self {
        let mut subject = vec![(COMMON_NAME, user.to_owned())];
        subject.extend(groups.iter().map(|group| (ORGANIZATION, group.clone())));
        Self { subject, ..Self::default() }
    }

    pub(crate) fn with_unit(mut self, unit: &str) -> Self {
        self.subject.push((UNIT, unit.to_owned()));
        self
    }

    pub(crate) fn with_second_name(mut self, name: &str) -> Self {
        self.subject.push((COMMON_NAME, name.to_owned()));
        self
    }

    pub(crate) fn with_dns(mut self, name: &str) -> Self {
        self.dns_names.push(name.to_owned());
        self
    }

    pub(crate) fn pem(&self) -> Vec<u8> {
        self.with_key().0
    }

    /// The request and its key, both as PEM.
    pub(crate) fn with_key(&self) -> (Vec<u8>, String) {
        let key = KeyPair::generate().unwrap();
        let info = yasna::construct_der(|writer| self.info(&key, writer));
        let mut signature = key.sign(&info).unwrap();
        if self.broken_signature {
            signature = key.sign(b"something else").unwrap();
        }
        let ecdsa = ObjectIdentifier::from_slice(&[1, 2, 840, 10045, 4, 3, 2]);
        let der = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_der(&info);
                writer.next().write_sequence(|writer| writer.next().write_oid(&ecdsa));
                writer.next().write_bitvec_bytes(&signature, signature.len() * 8);
            });
        });
        (wrapped(&der), key.serialize_pem())
    }

    fn info(&self, key: &KeyPair, writer: DERWriter<'_>) {
        writer.write_sequence(|writer| {
            writer.next().write_u8(0);
            writer.next().write_der(&self.name());
            writer.next().write_der(&key.subject_public_key_info());
            writer.next().write_tagged_implicit(Tag::context(0), |writer| {
                writer.write_set_of(|writer| {
                    if !self.dns_names.is_empty() || self.wants_ca {
                        writer.next().write_sequence(|writer| {
                            writer.next().write_oid(&ObjectIdentifier::from_slice(EXTENSION_REQUEST));
                            writer.next().write_set_of(|writer| {
                                writer.next().write_sequence_of(|writer| {
                                    if !self.dns_names.is_empty() {
                                        extension(writer.next(), ALTERNATIVE_NAMES, &self.names());
                                    }
                                    if self.wants_ca {
                                        extension(
                                            writer.next(),
                                            BASIC_CONSTRAINTS,
                                            &[0x30, 0x03, 0x01, 0x01, 0xff],
                                        );
                                    }
                                });
                            });
                        });
                    }
                });
            });
        });
    }

    fn name(&self) -> Vec<u8> {
        let mut subject = self.subject.clone();
        if self.padding > 0 {
            subject.push((ORGANIZATION, "x".repeat(self.padding)));
        }
        let attribute = |writer: DERWriter<'_>, (kind, text): &(&[u64], String)| {
            writer.write_sequence(|writer| {
                writer.next().write_oid(&ObjectIdentifier::from_slice(kind));
                writer.next().write_utf8_string(text);
            });
        };
        yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                let (groups, others): (Vec<_>, Vec<_>) =
                    subject.iter().partition(|(kind, _)| self.in_one_set && *kind == ORGANIZATION);
                if !groups.is_empty() {
                    writer.next().write_set_of(|writer| {
                        for group in groups {
                            attribute(writer.next(), group);
                        }
                    });
                }
                for other in others {
                    writer.next().write_set_of(|writer| attribute(writer.next(), other));
                }
            });
        })
    }

    fn names(&self) -> Vec<u8> {
        yasna::construct_der(|writer| {
            writer.write_sequence_of(|writer| {
                for name in &self.dns_names {
                    let next = writer.next();
                    next.write_tagged_implicit(Tag::context(2), |writer| writer.write_ia5_string(name));
                }
            });
        })
    }
}

fn extension(writer: DERWriter<'_>, id: &[u64], value: &[u8]) {
    writer.write_sequence(|writer| {
        writer.next().write_oid(&ObjectIdentifier::from_slice(id));
        writer.next().write_bytes(value);
    });
}

pub(crate) fn wrapped(der: &[u8]) -> Vec<u8> {
    let packed = STANDARD.encode(der);
    let lines: Vec<&str> =
        packed.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n", lines.join("\n"))
        .into_bytes()
}
