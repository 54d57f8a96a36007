//! Formats: what is checked, and what is not.

use expect_test::expect;

use crate::check;

#[test]
fn formats_are_checked_where_known() {
    check(
        "{dt: {type: string, format: date-time}, d: {type: string, format: date}, du: {type: string, format: duration}, \
          by: {type: string, format: byte}, u: {type: string, format: uri}, m: {type: string, format: email}, \
          h: {type: string, format: hostname}, i4: {type: string, format: ipv4}, i6: {type: string, format: ipv6}, \
          c: {type: string, format: cidr}, mac: {type: string, format: mac}, id: {type: string, format: uuid}, \
          id4: {type: string, format: uuid4}, i: {type: integer, format: int32}, l: {type: integer, format: int64}, \
          f: {type: number, format: float}, x: {type: string, format: unheard-of}, w: {type: integer, format: uint8}}",
        r#"
        {dt: "2026-01-02T03:04:05Z", d: "2026-01-02", du: 1h30m, by: aGk=, u: "https://a.b/c", m: a@b.c, h: a.b}
        {i4: 10.0.0.1, i6: "::1", c: 10.0.0.0/8, mac: "00:00:5e:00:53:01", id: 550e8400-e29b-41d4-a716-446655440000}
        {id4: 550e8400-e29b-41d4-a716-446655440000, i: 2147483647, l: 9223372036854775807, f: 1.5, x: anything, w: 300}
        {dt: "2026-01-02 03:04:05Z"}
        {d: "2026-13-02", du: 1 fortnight, by: "a"}
        {u: "not a uri", m: a.b, h: -a}
        {i4: 10.0.0.256, i6: 10.0.0.1, c: 10.0.0.0/33, mac: "00:00", id: "550e8400"}
        {id4: 550e8400-e29b-11d4-a716-446655440000}
        {i: 2147483648}
        {l: 9223372036854775808}
        {f: 3.5e+38}
        "#,
        expect![[r#"
            {dt: "2026-01-02T03:04:05Z", d: "2026-01-02", du: 1h30m, by: aGk=, u: "https://a.b/c", m: a@b.c, h: a.b}
              ok
            {i4: 10.0.0.1, i6: "::1", c: 10.0.0.0/8, mac: "00:00:5e:00:53:01", id: 550e8400-e29b-41d4-a716-446655440000}
              ok
            {id4: 550e8400-e29b-41d4-a716-446655440000, i: 2147483647, l: 9223372036854775807, f: 1.5, x: anything, w: 300}
              ok
            {dt: "2026-01-02 03:04:05Z"}
              FieldValueTypeInvalid spec.dt: Invalid value: "2026-01-02 03:04:05Z": spec.dt in body must be of type date-time: "2026-01-02 03:04:05Z"
            {d: "2026-13-02", du: 1 fortnight, by: "a"}
              FieldValueTypeInvalid spec.by: Invalid value: "a": spec.by in body must be of type byte: "a"
              FieldValueTypeInvalid spec.d: Invalid value: "2026-13-02": spec.d in body must be of type date: "2026-13-02"
              FieldValueTypeInvalid spec.du: Invalid value: "1 fortnight": spec.du in body must be of type duration: "1 fortnight"
            {u: "not a uri", m: a.b, h: -a}
              FieldValueTypeInvalid spec.h: Invalid value: "-a": spec.h in body must be of type hostname: "-a"
              FieldValueTypeInvalid spec.m: Invalid value: "a.b": spec.m in body must be of type email: "a.b"
              FieldValueTypeInvalid spec.u: Invalid value: "not a uri": spec.u in body must be of type uri: "not a uri"
            {i4: 10.0.0.256, i6: 10.0.0.1, c: 10.0.0.0/33, mac: "00:00", id: "550e8400"}
              FieldValueTypeInvalid spec.c: Invalid value: "10.0.0.0/33": spec.c in body must be of type cidr: "10.0.0.0/33"
              FieldValueTypeInvalid spec.i4: Invalid value: "10.0.0.256": spec.i4 in body must be of type ipv4: "10.0.0.256"
              FieldValueTypeInvalid spec.i6: Invalid value: "10.0.0.1": spec.i6 in body must be of type ipv6: "10.0.0.1"
              FieldValueTypeInvalid spec.id: Invalid value: "550e8400": spec.id in body must be of type uuid: "550e8400"
              FieldValueTypeInvalid spec.mac: Invalid value: "00:00": spec.mac in body must be of type mac: "00:00"
            {id4: 550e8400-e29b-11d4-a716-446655440000}
              FieldValueTypeInvalid spec.id4: Invalid value: "550e8400-e29b-11d4-a716-446655440000": spec.id4 in body must be of type uuid4: "550e8400-e29b-11d4-a716-446655440000"
            {i: 2147483648}
              FieldValueInvalid spec.i: Invalid value: 2147483648: Checked value must be of type integer with format int32 in spec.i
            {l: 9223372036854775808}
              FieldValueInvalid spec.l: Invalid value: 9223372036854775808: Checked value must be of type integer with format int64 in spec.l
            {f: 3.5e+38}
              FieldValueInvalid spec.f: Invalid value: 3.5e+38: Checked value must be of type number with format float in spec.f
        "#]],
    );
}
