//! The credential of a request.
//!
//! Taken from `Authorization: Bearer` only: no cookie, no query, no client certificate, so that
//! nothing a browser sends by itself can authenticate.

use http::HeaderMap;
use http::header::AUTHORIZATION;

/// The credential of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential<'a> {
    None,
    Token(&'a str),
    /// There is a credential, but it is not a usable token.
    Unusable,
}

impl<'a> Credential<'a> {
    pub fn of(headers: &'a HeaderMap) -> Self {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), second) = (values.next(), values.next()) else { return Self::None };
        // With two credentials it is unclear which one is meant.
        if second.is_some() {
            return Self::Unusable;
        }
        match value.to_str().ok().and_then(|text| text.split_once(' ')) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => {
                Self::Token(token.trim())
            }
            _ => Self::Unusable,
        }
    }

    pub fn token(self) -> Option<&'a str> {
        match self {
            Self::Token(token) => Some(token),
            Self::None | Self::Unusable => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_token_stands_in_one_header_and_nowhere_else() {
        let table: [(&[&str], Credential<'_>); 9] = [
            (&[], Credential::None),
            (&["Bearer abc"], Credential::Token("abc")),
            (&["bearer  abc "], Credential::Token("abc")),
            (&["abc"], Credential::Unusable),
            (&["Basic abc"], Credential::Unusable),
            (&["Bearer"], Credential::Unusable),
            (&["Bearer "], Credential::Unusable),
            (&["Bearer t\u{f6}k"], Credential::Unusable),
            (&["Bearer a", "Bearer a"], Credential::Unusable),
        ];
        for (values, expected) in table {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            assert_eq!(Credential::of(&headers), expected, "{values:?}");
        }
    }
}
