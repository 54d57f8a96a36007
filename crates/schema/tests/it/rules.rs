//! `x-kubernetes-validations`.

use expect_test::expect;

use crate::{check, refused_schema};

#[test]
fn messages() {
    check(
        "{a: {type: object, properties: {min: {type: integer}, max: {type: integer}}, x-kubernetes-validations: [\
            {rule: 'self.min <= self.max'}, \
            {rule: 'self.max < 100', message: 'too much', reason: FieldValueForbidden, fieldPath: .max}, \
            {rule: 'self.min > 0', messageExpression: \"'min is ' + string(self.min)\", message: unused}, \
            {rule: 'self.min != 3', messageExpression: '\"\"', message: fallback}, \
            {rule: 'self.min != 4', reason: FieldValueRequired, message: needed}, \
            {rule: 'self.min != 5', reason: FieldValueDuplicate}]}}",
        "
        {a: {min: 1, max: 2}}
        {a: {min: 2, max: 1}}
        {a: {min: 1, max: 100}}
        {a: {min: 0, max: 2}}
        {a: {min: 3, max: 3}}
        {a: {min: 4, max: 4}}
        {a: {min: 5, max: 5}}
        ",
        expect![[r#"
            {a: {min: 1, max: 2}}
              ok
            {a: {min: 2, max: 1}}
              FieldValueInvalid spec.a: Invalid value: "object": failed rule: self.min <= self.max
            {a: {min: 1, max: 100}}
              FieldValueForbidden spec.a.max: Forbidden: too much
            {a: {min: 0, max: 2}}
              FieldValueInvalid spec.a: Invalid value: "object": min is 0
            {a: {min: 3, max: 3}}
              FieldValueInvalid spec.a: Invalid value: "object": fallback
            {a: {min: 4, max: 4}}
              FieldValueRequired spec.a: Required value: needed
            {a: {min: 5, max: 5}}
              FieldValueDuplicate spec.a: Duplicate value: "object"
        "#]],
    );
}

#[test]
fn runtime_errors_are_causes() {
    check(
        "{a: {type: object, properties: {x: {type: integer}, s: {type: string}, l: {type: array, items: {type: integer}}}, \
           x-kubernetes-validations: [{rule: 'self.x > 0', message: positive}]}, \
          b: {type: object, properties: {l: {type: array, items: {type: integer}}}, x-kubernetes-validations: [{rule: 'self.l[0] / 0 == 1'}]}, \
          c: {type: integer, x-kubernetes-validations: [{rule: '[self][0]'}]}, \
          d: {type: string, x-kubernetes-validations: [{rule: 'self > 1'}]}}",
        "
        {a: {}}
        {b: {l: []}}
        {b: {l: [1]}}
        {c: 1}
        {d: x}
        ",
        expect![[r#"
            {a: {}}
              FieldValueInvalid spec.a: Invalid value: "object": no such key: x evaluating rule: positive
            {b: {l: []}}
              FieldValueInvalid spec.b: Invalid value: "object": Index out of bounds: Int(0) evaluating rule: self.l[0] / 0 == 1
            {b: {l: [1]}}
              FieldValueInvalid spec.b: Invalid value: "object": Division by zero of Int(1) evaluating rule: self.l[0] / 0 == 1
            {c: 1}
              FieldValueInvalid spec.c: Invalid value: "integer": rule evaluated to int instead of bool: [self][0]
            {d: x}
              FieldValueInvalid spec.d: Invalid value: "string": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: self > 1
        "#]],
    );
}

#[test]
fn names_are_escaped() {
    check(
        "{a: {type: object, properties: {namespace: {type: string}, a-b: {type: integer}, c.d: {type: integer}, e__f: {type: integer}, g_h: {type: integer}}, \
           x-kubernetes-validations: [{rule: \"self.__namespace__ != 'kube-system'\", message: reserved}, {rule: 'self.a__dash__b + self.c__dot__d + self.e__underscores__f + self.g_h < 10'}]}, \
          m: {type: object, additionalProperties: {type: string}, x-kubernetes-validations: [{rule: \"self.all(k, k != 'a-b')\"}, {rule: \"!('c' in self) || self['c'] == 'd'\"}]}}",
        "
        {a: {namespace: default, a-b: 1, c.d: 1, e__f: 1, g_h: 1}, m: {x: w, c: d}}
        {a: {namespace: kube-system, a-b: 4, c.d: 4, e__f: 4, g_h: 4}}
        {m: {a-b: x, c: e}}
        ",
        expect![[r#"
            {a: {namespace: default, a-b: 1, c.d: 1, e__f: 1, g_h: 1}, m: {x: w, c: d}}
              ok
            {a: {namespace: kube-system, a-b: 4, c.d: 4, e__f: 4, g_h: 4}}
              FieldValueInvalid spec.a: Invalid value: "object": reserved
              FieldValueInvalid spec.a: Invalid value: "object": failed rule: self.a__dash__b + self.c__dot__d + self.e__underscores__f + self.g_h < 10
            {m: {a-b: x, c: e}}
              FieldValueInvalid spec.m: Invalid value: "object": failed rule: self.all(k, k != 'a-b')
              FieldValueInvalid spec.m: Invalid value: "object": failed rule: !('c' in self) || self['c'] == 'd'
        "#]],
    );
}

#[test]
fn values_have_the_types_of_the_schema() {
    check(
        "{a: {type: object, properties: {t: {type: string, format: date-time}, d: {type: string, format: duration}, b: {type: string, format: byte}, n: {type: number}, p: {x-kubernetes-int-or-string: true}}, \
           x-kubernetes-validations: [\
            {rule: \"self.t > timestamp('2026-01-01T00:00:00Z')\", message: old}, {rule: \"self.d <= duration('1h')\", message: long}, \
            {rule: 'self.b.size() == 2', message: size}, {rule: 'self.n / 2.0 == 0.5', message: half}, \
            {rule: \"self.p == 5 || self.p == '50%'\", message: percent}]}}",
        r#"
        {a: {t: "2026-06-01T00:00:00Z", d: 30m, b: aGk=, n: 1, p: 50%}}
        {a: {t: "2025-06-01T00:00:00Z", d: 2h, b: aGkh, n: 2, p: 6}}
        "#,
        expect![[r#"
            {a: {t: "2026-06-01T00:00:00Z", d: 30m, b: aGk=, n: 1, p: 50%}}
              ok
            {a: {t: "2025-06-01T00:00:00Z", d: 2h, b: aGkh, n: 2, p: 6}}
              FieldValueInvalid spec.a: Invalid value: "object": old
              FieldValueInvalid spec.a: Invalid value: "object": long
              FieldValueInvalid spec.a: Invalid value: "object": size
              FieldValueInvalid spec.a: Invalid value: "object": half
              FieldValueInvalid spec.a: Invalid value: "object": percent
        "#]],
    );
}

#[test]
fn rules_sit_on_items_entries_and_nulls() {
    check(
        "{l: {type: array, items: {type: string, x-kubernetes-validations: [{rule: 'self.size() < 3'}]}}, \
          m: {type: object, additionalProperties: {type: integer, x-kubernetes-validations: [{rule: 'self > 0'}]}}, \
          n: {type: string, nullable: true, x-kubernetes-validations: [{rule: \"self == 'a'\"}]}}",
        "
        {l: [a, abc], m: {k: 0}, n: null}
        ",
        expect![[r#"
            {l: [a, abc], m: {k: 0}, n: null}
              FieldValueInvalid spec.l[1]: Invalid value: "string": failed rule: self.size() < 3
              FieldValueInvalid spec.m[k]: Invalid value: "integer": failed rule: self > 0
        "#]],
    );
}

#[test]
fn rules_wait_for_a_sound_shape_only() {
    check(
        "{a: {type: integer, minimum: 5, x-kubernetes-validations: [{rule: 'self > 7'}]}, b: {type: string, maxLength: 1}}",
        "
        {a: 1}
        {a: 1, b: xx}
        ",
        expect![[r#"
            {a: 1}
              FieldValueInvalid spec.a: Invalid value: 1: spec.a in body should be greater than or equal to 5
              FieldValueInvalid spec.a: Invalid value: "integer": failed rule: self > 7
            {a: 1, b: xx}
              FieldValueInvalid spec.a: Invalid value: 1: spec.a in body should be greater than or equal to 5
              FieldValueTooLong spec.b: Too long: may not be more than 1 bytes
              FieldValueInvalid <nil>: Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
        "#]],
    );
}

#[test]
fn rules_that_do_not_compile_refuse_the_schema() {
    let node = |rule: &str| {
        format!(
            "{{type: object, properties: {{a: {{type: integer}}, l: {{type: array, items: {{type: object, properties: {{b: {{type: string}}}}}}}}}}, x-kubernetes-validations: [{rule}]}}"
        )
    };
    for (rule, expected) in [
        (
            "{rule: 'self.a >'}",
            expect![[r#"
            FieldValueInvalid x.x-kubernetes-validations[0].rule: Invalid value: "self.a >": compilation failed: ERROR: <input>:1:9: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
            | self.a >
            | ........^
        "#]],
        ),
        (
            "{rule: '!has(self.typo) || self.a > 1'}",
            expect![[r#"
            FieldValueInvalid x.x-kubernetes-validations[0].rule: Invalid value: "!has(self.typo) || self.a > 1": compilation failed: undefined field 'typo'
        "#]],
        ),
        (
            "{rule: 'self.l.all(x, x.typo == 1)'}",
            expect![[r#"
            FieldValueInvalid x.x-kubernetes-validations[0].rule: Invalid value: "self.l.all(x, x.typo == 1)": compilation failed: undefined field 'typo'
        "#]],
        ),
        (
            "{rule: 'self.a.b == 1'}",
            expect![[r#"
            FieldValueInvalid x.x-kubernetes-validations[0].rule: Invalid value: "self.a.b == 1": compilation failed: type 'integer' does not support field selection
        "#]],
        ),
        (
            "{rule: 'other.a == 1'}",
            expect![[r#"
            FieldValueInvalid x.x-kubernetes-validations[0].rule: Invalid value: "other.a == 1": compilation failed: undeclared reference to 'other' (in container '')
        "#]],
        ),
        (
            "{rule: 'self.a.frobnicate()'}",
            expect![[r#"
            FieldValueInvalid x.x-kubernetes-validations[0].rule: Invalid value: "self.a.frobnicate()": compilation failed: undeclared reference to 'frobnicate' (in container '')
        "#]],
        ),
        (
            "{rule: 'cel.bind(x, self.a, x > 1)'}",
            expect![[r#"
            FieldValueInvalid x.x-kubernetes-validations[0].rule: Invalid value: "cel.bind(x, self.a, x > 1)": compilation failed: undeclared reference to 'cel.bind' (in container '')
        "#]],
        ),
        (
            "{rule: 'self.l.all(i, v, i > 0)'}",
            expect![[r#"
            FieldValueInvalid x.x-kubernetes-validations[0].rule: Invalid value: "self.l.all(i, v, i > 0)": compilation failed: undeclared reference to 'all' (in container '')
        "#]],
        ),
        (
            "{rule: 'self.?a.hasValue()'}",
            expect![[r#"
            FieldValueInvalid x.x-kubernetes-validations[0].rule: Invalid value: "self.?a.hasValue()": compilation failed: ERROR: <input>:1:5: unsupported syntax '.?'
            | self.?a.hasValue()
            | ....^
        "#]],
        ),
        (
            "{rule: 'self.a > 1', messageExpression: 'self.'}",
            expect![[r#"
            FieldValueInvalid x.x-kubernetes-validations[0].messageExpression: Invalid value: "self.": compilation failed: ERROR: <input>:1:6: Syntax error: no viable alternative at input '.'
            | self.
            | .....^
        "#]],
        ),
        (
            "{rule: 'self.a > 1', reason: Whim}",
            expect![[r#"
            FieldValueNotSupported x.x-kubernetes-validations[0].reason: Unsupported value: "Whim": supported values: "FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"
        "#]],
        ),
        (
            "{rule: 'self.a > 1', fieldPath: .typo}",
            expect![[r#"
            FieldValueInvalid x.x-kubernetes-validations[0].fieldPath: Invalid value: ".typo": fieldPath must be a valid path to a field of the schema
        "#]],
        ),
        (
            "{rule: 'self.a > 1', optionalOldSelf: true}",
            expect![[r#"
            FieldValueInvalid x.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule
        "#]],
        ),
        (
            "{rule: ''}",
            expect![[r#"
            FieldValueRequired x.x-kubernetes-validations[0].rule: Required value: rule is not specified
        "#]],
        ),
        (
            "{rule: \"self.a\\n> 1\"}",
            expect![[r#"
            FieldValueRequired x.x-kubernetes-validations[0].message: Required value: message must be specified if rule contains line breaks
        "#]],
        ),
    ] {
        refused_schema(&node(rule), expected);
    }
}

#[test]
fn rules_that_compile() {
    let node = |rule: &str| {
        format!(
            "{{type: object, properties: {{a: {{type: integer}}, s: {{type: string}}, l: {{type: array, items: {{type: object, properties: {{b: {{type: string}}}}}}}}}}, x-kubernetes-validations: [{{rule: \"{rule}\"}}]}}"
        )
    };
    for rule in [
        "self.l.exists_one(x, x.b.startsWith('a'))",
        "self.l.map(x, x.b).filter(b, b != '').size() > 0",
        "has(self.a) && !has(oldSelf.a)",
        "self.s.matches('^a') && quantity('1Gi').isGreaterThan(quantity('1Mi'))",
        "sets.contains([1, 2], [self.a]) && math.greatest(self.a, 1) > 0",
        "optional.of(self.a).hasValue()",
        "[self.a, 1].sum() < {'x': self.a}['x']",
        "self.s.find('[0-9]+') == '1' && isURL(self.s) && ip('::1').family() == 6",
    ] {
        refused_schema(&node(rule), expect!["ok\n"]);
    }
}

/// The existence of a function is tested by calling it without arguments: no function may panic on
/// that.
#[test]
fn every_function_can_be_asked_for() {
    const FUNCTIONS: &str = "contains size max min startsWith endsWith string bytes double int uint optional.none \
        optional.of value hasValue or orValue matches duration timestamp getFullYear getMonth getDayOfYear getDate \
        getDayOfWeek getHours getMinutes getSeconds getMilliseconds add asApproximateFloat asInteger base64.decode \
        base64.encode charAt cidr compareTo containsCIDR containsIP distinct family find findAll first flatten format \
        format.byte format.named format.uuid getHost getPort getQuery indexOf ip ip.isCanonical isCIDR isGreaterThan \
        isIP isInteger isLessThan isLoopback isQuantity isSemver isSorted isURL join jsonpatch.escapeKey last \
        lastIndexOf lists.range lowerAscii major masked math.abs math.bitAnd math.greatest math.isNaN minor patch \
        prefixLength quantity replace reverse semver sets.contains sets.equivalent sets.intersects sign slice sort \
        split strings.quote sub substring sum trim upperAscii url validate";
    for function in FUNCTIONS.split_whitespace() {
        let rule = format!("{function}() == 1");
        refused_schema(
            &format!("{{type: integer, x-kubernetes-validations: [{{rule: '{rule}'}}]}}"),
            expect!["ok\n"],
        );
    }
}

#[test]
fn old_self_needs_a_path_to_the_old_value() {
    refused_schema(
        "{type: array, items: {type: object, properties: {a: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf}]}}}}",
        expect![[r#"
            FieldValueInvalid x.items.properties[a].x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within x
        "#]],
    );
    refused_schema(
        "{type: object, x-kubernetes-map-type: atomic, properties: {a: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf}]}}}",
        expect![[r#"
            FieldValueInvalid x.properties[a].x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within x
        "#]],
    );
    refused_schema(
        "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {id: {type: string}, a: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf}]}}}}",
        expect!["ok\n"],
    );
}
