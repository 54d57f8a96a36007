use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Name, body and what Go (k8s.io/api v0.35) made of it, three lines each: every kind, full and
/// empty.
fn golden() -> Vec<(&'static str, Vec<u8>, Value)> {
    let lines: Vec<_> = include_str!("fixtures/golden.txt").lines().collect();
    let case = |case: &[&'static str]| (case[0], unhex(case[1]), serde_json::from_str(case[2]).unwrap());
    lines.chunks(3).map(case).collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// A length-delimited field.
fn delimited(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        field.push(length as u8 | 0x80);
        length >>= 7;
    }
    field.push(length as u8);
    field.extend(bytes);
    field
}

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [delimited(1, api_version.as_bytes()), delimited(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), delimited(1, &type_meta), delimited(2, raw)].concat()
}

fn refused(body: &[u8], expected: &Expect) {
    expected.assert_eq(&decode(body).unwrap_err().to_string());
}

#[test]
fn every_kind_decodes_to_what_go_prints() {
    let golden = golden();
    assert_eq!(golden.len(), 34);
    for (name, body, expected) in golden {
        assert_eq!(decode(&body).as_ref(), Ok(&expected), "{name}");
    }
}

#[test]
fn a_body_that_is_cut_short_never_decodes_to_more() {
    for (name, body, expected) in golden() {
        for end in 0..body.len() {
            // The envelope's last fields are optional, so a cut there changes nothing.
            if let Ok(decoded) = decode(&body[..end]) {
                assert!(
                    decoded == expected || decoded.to_string().len() < expected.to_string().len(),
                    "{name} {end}"
                );
            }
        }
    }
}

#[test]
fn unknown_fields_are_skipped() {
    let known = delimited(2, &[delimited(1, b"k"), delimited(2, b"v")].concat());
    let varint = vec![15 << 3, 0xff, 0x01];
    let fixed64 = [vec![15 << 3 | 1], vec![9; 8]].concat();
    let fixed32 = [vec![15 << 3 | 5], vec![9; 4]].concat();
    let group = [vec![15 << 3 | 3, 14 << 3 | 3], varint.clone(), vec![14 << 3 | 4, 15 << 3 | 4]].concat();
    let raw = [varint, fixed64, known, fixed32, group, delimited(13, b"new")].concat();
    let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"k": "v"}});
    assert_eq!(decode(&body("v1", "ConfigMap", &raw)), Ok(expected));
}

#[test]
fn a_message_in_parts_is_merged() {
    let raw = [delimited(1, &delimited(1, b"n")), delimited(1, &delimited(3, b"ns"))].concat();
    let decoded = decode(&body("rbac.authorization.k8s.io/v1", "Role", &raw)).unwrap();
    assert_eq!(decoded["metadata"], json!({"name": "n", "namespace": "ns"}));
    let rule = delimited(2, &delimited(1, b"get"));
    let decoded =
        decode(&body("rbac.authorization.k8s.io/v1", "Role", &[rule.clone(), raw, rule].concat())).unwrap();
    assert_eq!(decoded["rules"], json!([{"verbs": ["get"]}, {"verbs": ["get"]}]));
}

#[test]
fn an_entry_may_lack_its_key_or_its_value() {
    let raw = [delimited(2, &[]), delimited(2, &delimited(1, b"k"))].concat();
    assert_eq!(decode(&body("v1", "ConfigMap", &raw)).unwrap()["data"], json!({"": "", "k": ""}));
}

#[test]
fn what_is_malformed_is_refused_with_its_reason() {
    refused(b"", &expect![[r#"the body is not Kubernetes protobuf: it does not begin with "k8s\0""#]]);
    refused(b"{}", &expect![[r#"the body is not Kubernetes protobuf: it does not begin with "k8s\0""#]]);
    refused(b"k8s\0", &expect!["the protobuf body has no apiVersion and kind"]);
    refused(b"k8s\0\x0a\x05\x0a", &expect!["the protobuf body ends too early"]);
    refused(
        &body("v1", "Pod", b""),
        &expect!["protobuf is not supported for apiVersion v1, kind Pod; send JSON"],
    );
    refused(
        &body("v2", "Namespace", b""),
        &expect!["protobuf is not supported for apiVersion v2, kind Namespace; send JSON"],
    );
    refused(&body("", "DeleteOptions", b""), &expect!["the protobuf body has no apiVersion and kind"]);
    refused(
        &[body("v1", "ConfigMap", b""), delimited(3, b"gzip")].concat(),
        &expect![[r#"the protobuf body has the content encoding "gzip", which is not supported"#]],
    );
    refused(&body("v1", "ConfigMap", &[0xff; 11]), &expect!["the protobuf body has an invalid number"]);
    refused(&body("v1", "ConfigMap", &[0]), &expect!["the protobuf body has an invalid field tag"]);
    refused(&body("v1", "ConfigMap", &[15 << 3 | 4]), &expect!["the protobuf body has an invalid field tag"]);
    refused(&body("v1", "ConfigMap", &[15 << 3 | 3]), &expect!["the protobuf body ends too early"]);
    refused(
        &body("v1", "ConfigMap", &[15 << 3 | 3; 1000]),
        &expect!["the protobuf body has an invalid field tag"],
    );
    refused(
        &body("v1", "ConfigMap", &[1 << 3, 1]),
        &expect!["the protobuf field metadata has the wrong wire type"],
    );
    refused(
        &body("v1", "ConfigMap", &delimited(1, &delimited(1, b"\xff"))),
        &expect!["the protobuf field name is not valid UTF-8"],
    );
    refused(
        &body("apps/v1", "ControllerRevision", &delimited(2, &delimited(1, b"{"))),
        &expect![
            "the protobuf field data does not contain JSON: EOF while parsing an object at line 1 column 1"
        ],
    );
    let far = [vec![1 << 3], vec![0xff; 8], vec![0x7f]].concat();
    refused(
        &body("v1", "ConfigMap", &delimited(1, &delimited(8, &far))),
        &expect!["the protobuf field creationTimestamp is not a time between the years 1 and 9999"],
    );
}

#[test]
fn a_small_body_cannot_become_a_huge_object() {
    let subjects = delimited(2, &[]).repeat(1_000_000);
    refused(
        &body("rbac.authorization.k8s.io/v1", "RoleBinding", &subjects),
        &expect!["the protobuf body has more than 250000 values"],
    );
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let _ = decode(&body("v1", "Event", &bytes));
        let _ = decode(&body("apps/v1", "ControllerRevision", &bytes));
        let _ = decode(&body("authorization.k8s.io/v1", "SelfSubjectAccessReview", &bytes));
    }

    #[test]
    fn a_damaged_body_is_decoded_or_refused(case in 0..34_usize, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (_, mut body, _) = golden().swap_remove(case);
        let at = at.index(body.len());
        body[at] = byte;
        let _ = decode(&body);
    }
}
