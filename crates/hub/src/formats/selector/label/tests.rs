use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
    let labels: BTreeMap<_, _> = labels.iter().copied().collect();
    LabelSelector::parse(selector).unwrap().matches(|key| labels.get(key).copied())
}

fn check(cases: &[&str], expected: &Expect) {
    let shown = |text: &&str| match LabelSelector::parse(text) {
        Ok(selector) => format!("{text:?} -> {selector}\n"),
        Err(error) => format!("{text:?} -> error: {error}\n"),
    };
    expected.assert_eq(&cases.iter().map(shown).collect::<String>());
}

#[test]
fn the_grammar_is_that_of_kubernetes() {
    check(
        &[
            "",
            " ",
            "x=a,y=b,z=c",
            "x!=a,y=b",
            "x== a",
            "x=",
            "x= ,z= ",
            "!x",
            "x>1,z<5",
            "\rx",
            "this-is-another-dns.domain.com/key-with-dash in (so,what)",
            "0.1.2.domain/99 notin (10.10.100.1, tick.tack.clock)",
            "foo  in\t (abc)",
            "x notin\n (abc)",
            "x in(abc,abc)",
            "x in (abc,)",
            "x in ()",
            "x in (a,,a,,a,,)",
            "x notin (abc,,def),bar,z in (),w",
            "x notin ( )",
            "x notin (, a)",
            "a in (x,y,notin, z,in)",
            "in in (in)",
            "notin=in",
            "! x , y",
        ],
        &expect![[r#"
            "" -> 
            " " -> 
            "x=a,y=b,z=c" -> x=a,y=b,z=c
            "x!=a,y=b" -> x!=a,y=b
            "x== a" -> x=a
            "x=" -> x=
            "x= ,z= " -> x=,z=
            "!x" -> !x
            "x>1,z<5" -> x>1,z<5
            "\rx" -> x
            "this-is-another-dns.domain.com/key-with-dash in (so,what)" -> this-is-another-dns.domain.com/key-with-dash in (so,what)
            "0.1.2.domain/99 notin (10.10.100.1, tick.tack.clock)" -> 0.1.2.domain/99 notin (10.10.100.1,tick.tack.clock)
            "foo  in\t (abc)" -> foo in (abc)
            "x notin\n (abc)" -> x notin (abc)
            "x in(abc,abc)" -> x in (abc)
            "x in (abc,)" -> x in (,abc)
            "x in ()" -> x in ()
            "x in (a,,a,,a,,)" -> x in (,a)
            "x notin (abc,,def),bar,z in (),w" -> bar,w,x notin (,abc,def),z in ()
            "x notin ( )" -> x notin ()
            "x notin (, a)" -> x notin (,a)
            "a in (x,y,notin, z,in)" -> a in (in,notin,x,y,z)
            "in in (in)" -> in in (in)
            "notin=in" -> notin=in
            "! x , y" -> !x,y
        "#]],
    );
}

#[test]
fn what_kubernetes_refuses_is_refused_in_its_words() {
    check(
        &[
            "x=a||y=b",
            "x==a==b",
            "!x=a",
            "x<a",
            "x,,y",
            ",x,y",
            "x nott in (y)",
            "a in (xyz),",
            "a in (xyz)b notin ()",
            "a in (xyz abc)",
            "a in xyz",
            "a notin(",
            "a in (b",
            "a in (b,",
            "a (",
            "(",
            "!",
            "a/b/c",
            "A/b=c",
            "x=-",
            "x\0=a",
        ],
        &expect![[r#"
            "x=a||y=b" -> error: unable to parse requirement: values[0][x]: Invalid value: "a||y": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            "x==a==b" -> error: found '==', expected: ',' or 'end of string'
            "!x=a" -> error: found '=', expected: ',' or 'end of string'
            "x<a" -> error: unable to parse requirement: values[0]: Invalid value: "a": for 'Gt', 'Lt' operators, the value must be an integer
            "x,,y" -> error: found ',', expected: identifier after ','
            ",x,y" -> error: found ',', expected: !, identifier, or 'end of string'
            "x nott in (y)" -> error: unable to parse requirement: found 'nott', expected: in, notin, =, ==, !=, gt, lt
            "a in (xyz)," -> error: found '', expected: identifier after ','
            "a in (xyz)b notin ()" -> error: found 'b', expected: ',' or 'end of string'
            "a in (xyz abc)" -> error: unable to parse requirement: found 'abc', expected: ',' or ')'
            "a in xyz" -> error: unable to parse requirement: found 'xyz' expected: '('
            "a notin(" -> error: unable to parse requirement: found '', expected: ',', ')' or identifier
            "a in (b" -> error: unable to parse requirement: found '', expected: ',' or ')'
            "a in (b," -> error: unable to parse requirement: found '', expected: ',', ')' or identifier
            "a (" -> error: unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt
            "(" -> error: found '(', expected: !, identifier, or 'end of string'
            "!" -> error: unable to parse requirement: found '', expected: identifier
            "a/b/c" -> error: unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
            "A/b=c" -> error: unable to parse requirement: <nil>: Invalid value: "A/b": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            "x=-" -> error: unable to parse requirement: values[0][x]: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
            "x\0=a" -> error: unable to parse requirement: <nil>: Invalid value: "x\0": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
        "#]],
    );
}

#[test]
fn equality_and_sets_need_the_label() {
    assert!(matches("x=y", &[("x", "y")]));
    assert!(matches("x=", &[("x", "")]));
    assert!(matches("x in (y,z)", &[("x", "z")]));
    assert!(!matches("x=y", &[("x", "z")]));
    assert!(!matches("x=", &[]));
    assert!(!matches("x in ()", &[]));
    assert!(!matches("x=y,z=w", &[("x", "y")]));
}

#[test]
fn inequality_also_selects_objects_without_the_label() {
    assert!(matches("x!=y,z notin (w)", &[]));
    assert!(matches("x notin ()", &[("y", "")]));
    assert!(!matches("x!=y", &[("x", "y")]));
    assert!(!matches("x notin (y)", &[("x", "y")]));
}

#[test]
fn presence_is_of_the_key_alone() {
    assert!(matches("x,!y", &[("x", "")]));
    assert!(!matches("x", &[]));
    assert!(!matches("!x", &[("x", "")]));
}

#[test]
fn ordering_compares_integers_only() {
    assert!(matches("x>1,x<3", &[("x", "2")]));
    assert!(!matches("x>1", &[("x", "v2")]));
    assert!(!matches("x>1", &[]));
}

#[test]
fn the_empty_selector_selects_everything() {
    assert!(LabelSelector::parse("").unwrap().is_empty());
    assert!(matches("", &[("x", "y")]) && matches("", &[]));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC*|[a-c=!(),<> \t\\x00in]*") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
        }
    }
}
