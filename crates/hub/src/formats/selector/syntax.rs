//! The syntax of label keys and values. Owns nothing else; object validation may use it too.

const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const MAX_NAME: usize = 63;
const MAX_SUBDOMAIN: usize = 253;

/// A qualified name: `[prefix/]name`. The error lists every reason, joined by `; `.
pub(crate) fn label_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((prefix, name)) if !name.contains('/') => (Some(prefix), name),
        Some(_) => {
            let optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return Err(format!("a valid label key {NAME} {optional}"));
        }
    };
    let mut problems = Vec::new();
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            if prefix.len() > MAX_SUBDOMAIN {
                problems.push(format!("prefix part must be no more than {MAX_SUBDOMAIN} bytes"));
            }
            if !is_subdomain(prefix) {
                problems.push(format!("prefix part {SUBDOMAIN}"));
            }
        }
        None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_NAME {
        problems.push(format!("name part must be no more than {MAX_NAME} bytes"));
    }
    if !is_name(name) {
        problems.push(format!("name part {NAME}"));
    }
    verdict(&problems)
}

/// A label value, which may be empty.
pub(crate) fn label_value(value: &str) -> Result<(), String> {
    let mut problems = Vec::new();
    if value.len() > MAX_NAME {
        problems.push(format!("must be no more than {MAX_NAME} bytes"));
    }
    if !value.is_empty() && !is_name(value) {
        problems.push(VALUE.to_owned());
    }
    verdict(&problems)
}

fn verdict(problems: &[String]) -> Result<(), String> {
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

fn is_name(name: &str) -> bool {
    let (first, last) = (name.bytes().next(), name.bytes().next_back());
    first.is_some_and(|byte| byte.is_ascii_alphanumeric())
        && last.is_some_and(|byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(|label| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_qualified_names() {
        for key in ["a", "A", "1", "a.b_c-d", "example.com/My.Name", "0.1.2.domain/99", &"a".repeat(63)] {
            assert_eq!(label_key(key), Ok(()), "{key}");
        }
        for key in ["", "-a", "a-", "a b", "é", "/a", "a/", "a/b/c", "A/b", "a..b/c", "-a/b", &"a".repeat(64)]
        {
            assert!(label_key(key).is_err(), "{key}");
        }
        assert!(label_key(&format!("{}/a", "a".repeat(254))).is_err());
    }

    #[test]
    fn values_may_be_empty() {
        for value in ["", "a", "10.10.100.1", &"a".repeat(63)] {
            assert_eq!(label_value(value), Ok(()), "{value}");
        }
        for value in ["-", ".a", "a b", "a/b", "a=b", &"a".repeat(64)] {
            assert!(label_value(value).is_err(), "{value}");
        }
    }
}
