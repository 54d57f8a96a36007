use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn document() -> Value {
    json!({
        "a": {"b": 1, "b.c": "dotted", "b/c": "slashed", "d": {"e": "deep"}, "none": null, "empty": []},
        "metadata": {"name": "n", "annotations": {"example.com/size": "big"}},
        "list": [{"n": 1, "on": true}, {"n": 2, "on": false}, {"n": 3, "w": 2.5}],
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "seen": {"by": "x"}},
            {"type": "Fresh (1)", "status": "False"},
            {"type": "say \"hi\"", "status": "Unknown"},
        ]},
    })
}

fn check(paths: &[&str], expected: &Expect) {
    let document = document();
    let shown = |text: &&str| match JsonPathExpression::parse(text) {
        Ok(path) => {
            let found: Vec<_> = path.find(&document).into_iter().map(Value::to_string).collect();
            format!("{text} -> {}\n", found.join(" "))
        }
        Err(error) => format!("{text} -> error: {error}\n"),
    };
    expected.assert_eq(&paths.iter().map(shown).collect::<String>());
}

#[test]
fn fields_are_followed() {
    check(
        &[
            ".a.b",
            "{.a.b}",
            "$.a.b",
            "{ .a.b }",
            "metadata.name",
            ".a.d",
            ".a['b']",
            ".a['b.c']",
            r".a['b\.c']",
            r".a.b\.c",
            ".a['d.e']",
            ".a['b/c']",
            ".a.b/c",
            r".metadata.annotations.example\.com/size",
            ".metadata.annotations['example.com/size']",
            ".a.none",
            ".a.none.x",
            ".a.b.x",
            ".nope.x",
            ".",
            "",
        ],
        &expect![[r#"
            .a.b -> 1
            {.a.b} -> 1
            $.a.b -> 1
            { .a.b } -> 1
            metadata.name -> "n"
            .a.d -> {"e":"deep"}
            .a['b'] -> 1
            .a['b.c'] -> "dotted"
            .a['b\.c'] -> "dotted"
            .a.b\.c -> "dotted"
            .a['d.e'] -> "deep"
            .a['b/c'] -> "slashed"
            .a.b/c -> "slashed"
            .metadata.annotations.example\.com/size -> "big"
            .metadata.annotations['example.com/size'] -> "big"
            .a.none -> null
            .a.none.x -> 
            .a.b.x -> 
            .nope.x -> 
            . -> 
             -> {"a":{"b":1,"b.c":"dotted","b/c":"slashed","d":{"e":"deep"},"empty":[],"none":null},"list":[{"n":1,"on":true},{"n":2,"on":false},{"n":3,"w":2.5}],"metadata":{"annotations":{"example.com/size":"big"},"name":"n"},"status":{"conditions":[{"seen":{"by":"x"},"status":"True","type":"Ready"},{"status":"False","type":"Fresh (1)"},{"status":"Unknown","type":"say \"hi\""}]}}
        "#]],
    );
}

#[test]
fn arrays_are_indexed_and_cut() {
    check(
        &[
            ".list[0].n",
            ".list[-1].n",
            ".list[-3].n",
            ".list[*].n",
            ".list[].n",
            ".list[1:].n",
            ".list[:2].n",
            ".list[0:3:2].n",
            ".list[-2:].n",
            ".list.*.n",
            ".a.d.*",
            ".list[1:1].n",
            ".a.empty[*]",
            ".list[*].w",
        ],
        &expect![[r#"
            .list[0].n -> 1
            .list[-1].n -> 3
            .list[-3].n -> 1
            .list[*].n -> 1 2 3
            .list[].n -> 1
            .list[1:].n -> 2 3
            .list[:2].n -> 1 2
            .list[0:3:2].n -> 1 3
            .list[-2:].n -> 2 3
            .list.*.n -> 1 2 3
            .a.d.* -> "deep"
            .list[1:1].n -> 
            .a.empty[*] -> 
            .list[*].w -> 2.5
        "#]],
    );
}

#[test]
fn a_step_that_does_not_fit_finds_nothing() {
    check(
        &[
            ".list[3].n",
            ".list[-4].n",
            ".list[2:1].n",
            ".list[0:9].n",
            ".list[0:2:0].n",
            ".a[0]",
            ".a[*]",
            ".a.none[0]",
            ".a[?(@.b==1)]",
        ],
        &expect![[r#"
            .list[3].n -> 
            .list[-4].n -> 
            .list[2:1].n -> 
            .list[0:9].n -> 
            .list[0:2:0].n -> 
            .a[0] -> 
            .a[*] -> 
            .a.none[0] -> 
            .a[?(@.b==1)] -> 
        "#]],
    );
}

#[test]
fn filters_choose_items() {
    check(
        &[
            r#".status.conditions[?(@.type=="Ready")].status"#,
            ".status.conditions[?(@.type=='Ready')].status",
            r#".status.conditions[?( @.type == "Ready" )].status"#,
            r#".status.conditions[?(@.type!="Ready")].status"#,
            r#".status.conditions[?(@.type=="Fresh (1)")].status"#,
            r#".status.conditions[?(@.type=="say \"hi\"")].status"#,
            ".status.conditions[?(@.seen)].type",
            r#".status.conditions[?(@.seen.by=="x")].type"#,
            r#".status.conditions[?(@.type=="Nope")].status"#,
            ".list[?(@.n>1)].n",
            ".list[?(@.n>=2)].n",
            ".list[?(@.n<2)].n",
            ".list[?(@.n<=+2)].n",
            ".list[?(@.on==true)].n",
            ".list[?(@.w==2.5)].n",
            ".list[?(@.n==@.n)].n",
            ".list[?(@.n=='1')].n",
            ".list[?(@.on<true)].n",
        ],
        &expect![[r#"
            .status.conditions[?(@.type=="Ready")].status -> "True"
            .status.conditions[?(@.type=='Ready')].status -> "True"
            .status.conditions[?( @.type == "Ready" )].status -> "True"
            .status.conditions[?(@.type!="Ready")].status -> "False" "Unknown"
            .status.conditions[?(@.type=="Fresh (1)")].status -> "False"
            .status.conditions[?(@.type=="say \"hi\"")].status -> "Unknown"
            .status.conditions[?(@.seen)].type -> "Ready"
            .status.conditions[?(@.seen.by=="x")].type -> "Ready"
            .status.conditions[?(@.type=="Nope")].status -> 
            .list[?(@.n>1)].n -> 2 3
            .list[?(@.n>=2)].n -> 2 3
            .list[?(@.n<2)].n -> 1
            .list[?(@.n<=+2)].n -> 1 2
            .list[?(@.on==true)].n -> 1
            .list[?(@.w==2.5)].n -> 3
            .list[?(@.n==@.n)].n -> 1 2 3
            .list[?(@.n=='1')].n -> 
            .list[?(@.on<true)].n -> 
        "#]],
    );
}

#[test]
fn what_is_no_column_is_refused() {
    check(
        &[
            "..a",
            ".a..b",
            ".a[0,1]",
            ".a['b','d']",
            ".a[",
            ".a['b'",
            ".a[x]",
            ".a[0:1:2:3]",
            ".a[99999999999999999999]",
            ".a[--1]",
            r#".a["b"]"#,
            ".a[?(@.b",
            ".a[?(@.b)",
            ".a[?(@.b=1)]",
            ".a[?(@.b=~1)]",
            ".a[?(b==1)]",
            ".a[?(@.b==)]",
            ".a[?(==1)]",
            ".a[?(@.b==\"x\\q\")]",
            ".a[?(@.b[?(@.c)])]",
            "{{.a}}",
            ".a}",
            ".a b",
            "\"a\"",
        ],
        &expect![[r#"
            ..a -> error: recursive descent is not supported
            .a..b -> error: recursive descent is not supported
            .a[0,1] -> error: a union is not supported
            .a['b','d'] -> error: a union is not supported
            .a[ -> error: unterminated array
            .a['b' -> error: unterminated array
            .a[x] -> error: invalid array index x
            .a[0:1:2:3] -> error: invalid array index 0:1:2:3
            .a[99999999999999999999] -> error: invalid array index 99999999999999999999
            .a[--1] -> error: invalid array index --1
            .a["b"] -> error: invalid array index "b"
            .a[?(@.b -> error: unterminated filter
            .a[?(@.b) -> error: unterminated filter
            .a[?(@.b=1)] -> error: unrecognized filter operator =
            .a[?(@.b=~1)] -> error: unrecognized filter operator =
            .a[?(b==1)] -> error: cannot parse operand "b"
            .a[?(@.b==)] -> error: cannot parse operand ""
            .a[?(==1)] -> error: cannot parse operand ""
            .a[?(@.b=="x\q")] -> error: cannot parse operand "\"x\\q\""
            .a[?(@.b[?(@.c)])] -> error: a filter inside a filter is not supported
            {{.a}} -> error: unrecognized character '{'
            .a} -> error: unrecognized character '}'
            .a b -> error: unrecognized character 'b'
            "a" -> error: unrecognized character '"'
        "#]],
    );
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC*|[.a\\[\\]?(@='\"1:*\\\\){} -]*") {
        if let Ok(path) = JsonPathExpression::parse(&text) {
            path.find(&document());
        }
    }
}
