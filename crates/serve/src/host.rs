//! The host names of the hub: the check against DNS rebinding, and the names in its certificate.
//!
//! A page in the user's browser can make a name of its own resolve to 127.0.0.1 and then talk to
//! the hub as if it were its own origin; only the `Host` it sends gives it away. Owns the parsing
//! of a host; must not resolve names, and must treat whatever it cannot parse as foreign.

use std::collections::BTreeSet;
use std::net::IpAddr;

const LOCALHOST: &str = "localhost";
/// Longest DNS name in text form (RFC 1035).
const LONGEST_NAME: usize = 253;

/// The names and addresses that clients may use: always loopback, others by configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedHosts {
    names: BTreeSet<String>,
    addresses: BTreeSet<IpAddr>,
}

/// A configured host that is neither an address nor a DNS name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is neither an IP address nor a DNS name")]
pub struct InvalidHost(String);

impl AllowedHosts {
    /// Loopback only.
    pub fn loopback() -> Self {
        Self::default()
    }

    /// Loopback and `extra`: names or addresses without a port, IPv6 with or without brackets. The
    /// unspecified address (of `--listen 0.0.0.0`) is ignored, because no client uses it as a host.
    pub fn new<S: AsRef<str>>(extra: impl IntoIterator<Item = S>) -> Result<Self, InvalidHost> {
        let mut hosts = Self::loopback();
        for host in extra {
            let text = host.as_ref();
            let parsed = text.parse().map(Host::Address).ok().or_else(|| Host::parse(text));
            match parsed.ok_or_else(|| InvalidHost(text.to_owned()))? {
                Host::Address(address) if address.is_unspecified() => false,
                Host::Address(address) => hosts.addresses.insert(address),
                Host::Name(name) => hosts.names.insert(name),
            };
        }
        Ok(hosts)
    }

    /// The names in the server certificate, loopback first.
    pub(crate) fn subject_names(&self) -> Vec<String> {
        let mut subjects: Vec<String> = [LOCALHOST, "127.0.0.1", "::1"].map(String::from).into();
        let addresses = self.addresses.iter().map(IpAddr::to_string);
        for extra in self.names.iter().cloned().chain(addresses) {
            if !subjects.contains(&extra) {
                subjects.push(extra);
            }
        }
        subjects
    }
}

/// Whether a `Host` header or an HTTP/2 `:authority` is allowed. Any port is accepted: DNS
/// rebinding does not change the port, and a forwarded port (`ssh -L`, `kubectl port-forward`)
/// differs from ours.
pub fn host_allowed(host: &str, allowed: &AllowedHosts) -> bool {
    let Some(name) = without_port(host) else { return false };
    match Host::parse(name) {
        Some(Host::Address(address)) => address.is_loopback() || allowed.addresses.contains(&address),
        Some(Host::Name(name)) => name == LOCALHOST || allowed.names.contains(&name),
        None => false,
    }
}

enum Host {
    Address(IpAddr),
    Name(String),
}

impl Host {
    /// A bracketed IPv6 address, an IPv4 address or a DNS name, as in a URL.
    fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('[') {
            return Some(Self::Address(IpAddr::V6(inner.strip_suffix(']')?.parse().ok()?)));
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = text.parse() {
            return Some(Self::Address(IpAddr::V4(address)));
        }
        (text.len() <= LONGEST_NAME && text.split('.').all(is_label))
            .then(|| Self::Name(text.to_ascii_lowercase()))
    }
}

fn is_label(label: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=63).contains(&label.len()) && label.bytes().all(allowed)
}

/// `host` or `host:port` without the port; `None` if the part after the colon is not a port.
fn without_port(authority: &str) -> Option<&str> {
    // The colons of an IPv6 address are inside its brackets, so the last `]` ends the host.
    let end = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    let Some(colon) = authority[end..].find(':') else { return Some(authority) };
    let (host, port) = authority.split_at(end + colon);
    let digits = &port[1..];
    // `parse` alone would accept "+80".
    let is_port = digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok();
    is_port.then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_configured_hosts_are_ours_and_nothing_else_is() {
        let allowed =
            AllowedHosts::new(["Hub.Example.com", "192.0.2.7", "[2001:db8::1]", "0.0.0.0"]).unwrap();
        let table = "
            yes localhost
            yes localhost:6443
            yes LocalHost:1
            yes localhost.
            yes localhost.:6443
            yes 127.0.0.1
            yes 127.0.0.1:65535
            yes 127.8.9.10:80
            yes [::1]
            yes [::1]:6443
            yes [0:0:0:0:0:0:0:1]:6443
            yes hub.example.com
            yes HUB.example.COM.:6443
            yes 192.0.2.7:6443
            yes [2001:DB8::1]:6443
            no  evil.example.com
            no  localhost.evil.com
            no  evil-localhost
            no  127.0.0.1.evil.com
            no  hub.example.com.evil.com
            no  192.0.2.8
            no  0.0.0.0:6443
            no  [::]:6443
            no  [2001:db8::2]
            no  ::1
            no  ::1:6443
            no  [::1
            no  ::1]
            no  [::1]x
            no  [::1]:
            no  [localhost]
            no  [127.0.0.1]
            no  [::1%eth0]
            no  localhost:
            no  localhost:+80
            no  localhost:65536
            no  localhost:80:80
            no  localhost:http
            no  localhost..
            no  user@localhost
            no  localhost/
            no  localhost,evil.com
            no  http://localhost
            no  127.1
            no  2130706433
            no  0x7f000001
            no  lócalhost
            no  .
            no  :
            no  :6443
        ";
        for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (expected, host) = line.split_once(' ').unwrap();
            assert_eq!(host_allowed(host.trim(), &allowed), expected == "yes", "{line}");
        }
        for garbage in ["", " ", "local host", "localhost ", "\0", "localhost\r\n", &"a".repeat(70_000)] {
            assert!(!host_allowed(garbage, &allowed), "{garbage:?}");
        }
    }

    #[test]
    fn configured_hosts_are_parsed_once_and_bad_ones_named() {
        assert_eq!(AllowedHosts::new(["a b"]), Err(InvalidHost("a b".into())));
        assert!(AllowedHosts::new(["hub:6443"]).is_err());
        assert!(AllowedHosts::new([""]).is_err());
        assert_eq!(AllowedHosts::new(["0.0.0.0", "::"]), Ok(AllowedHosts::loopback()));
    }

    #[test]
    fn the_certificate_names_loopback_and_the_configured_hosts_once() {
        let hosts = AllowedHosts::new(["hub.example.com", "127.0.0.1", "localhost", "2001:db8::1"]).unwrap();
        assert_eq!(
            hosts.subject_names(),
            ["localhost", "127.0.0.1", "::1", "hub.example.com", "2001:db8::1"]
        );
    }
}
