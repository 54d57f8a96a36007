//! The kubeconfig by which kubectl and every client library reach the hub.
//!
//! Owns its text. It carries the CA and the token inline, so that the file works from anywhere and
//! kubectl never prompts for a user name. Must not read or merge other kubeconfigs. What it returns
//! is a secret: write it with [`aviary_serve::write_private`] only.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A kubeconfig with one cluster, one user and one context, all named `context_name`.
pub fn kubeconfig(server_url: &str, ca_pem: &str, token: &str, context_name: &str) -> String {
    // A JSON string is a YAML string, whatever it contains.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let name = quoted(context_name);
    let server = quoted(server_url);
    let authority = STANDARD.encode(ca_pem);
    let token = quoted(token);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {name}
  user:
    token: {token}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {name}
current-context: {name}
preferences: {{}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_carries_the_authority_and_the_token_inline() {
        let text = kubeconfig("https://127.0.0.1:6443", "PEM\n", "aviary_x", "aviary");
        assert_eq!(
            text,
            r#"apiVersion: v1
kind: Config
clusters:
- name: "aviary"
  cluster:
    server: "https://127.0.0.1:6443"
    certificate-authority-data: UEVNCg==
users:
- name: "aviary"
  user:
    token: "aviary_x"
contexts:
- name: "aviary"
  context:
    cluster: "aviary"
    user: "aviary"
current-context: "aviary"
preferences: {}
"#
        );
    }

    #[test]
    fn a_hostile_context_name_stays_one_string() {
        let text = kubeconfig("https://[::1]:1", "", "t", "a\"\n- name: evil: #");
        assert!(text.contains(r#"current-context: "a\"\n- name: evil: #""#), "{text}");
        assert_eq!(text.lines().count(), 18);
    }
}
