//! Tokens are recognised, survive a restart, and are never stored in plain text.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn agent(namespace: &str) -> Role {
    Role::Agent { namespace: namespace.into() }
}

#[test]
fn a_token_identifies_its_holder_and_nothing_else_does() {
    let tokens = Tokens::ephemeral();
    let admin = tokens.issue("admin", Role::Admin).unwrap();
    let c1 = tokens.issue("c1-agent", agent("c1")).unwrap();
    assert_eq!(tokens.identify(admin.expose()), Some(Identity::new("admin", Role::Admin)));
    assert_eq!(tokens.identify(c1.expose()), Some(Identity::new("c1-agent", agent("c1"))));

    let token = admin.expose();
    let mut flipped = token.to_owned().into_bytes();
    flipped[20] ^= 1;
    let garbage = [
        String::new(),
        " ".into(),
        "\0".repeat(TOKEN_LENGTH),
        "ü".repeat(TOKEN_LENGTH / 2),
        "🦜".into(),
        "x".repeat(10 << 20),
        "A".repeat(TOKEN_LENGTH),
        PREFIX.into(),
        token.to_uppercase(),
        format!("{token} "),
        token[..token.len() - 1].into(),
        String::from_utf8(flipped).unwrap(),
    ];
    for text in garbage {
        let shown: String = text.chars().take(60).collect();
        assert_eq!(tokens.identify(&text), None, "{shown:?}");
    }
}

#[test]
fn tokens_are_long_random_and_fit_a_header() {
    let tokens = Tokens::ephemeral();
    let (a, b) = (tokens.issue("a", Role::Admin).unwrap(), tokens.issue("b", Role::Admin).unwrap());
    assert_ne!(a.expose(), b.expose());
    assert_eq!(a.expose().len(), TOKEN_LENGTH);
    let random = URL_SAFE_NO_PAD.decode(a.expose().strip_prefix(PREFIX).unwrap()).unwrap();
    assert_eq!(random.len() * 8, 256);
    assert!(a.expose().bytes().all(|byte| byte.is_ascii_graphic()));
}

#[test]
fn the_file_is_private_and_never_contains_the_token() {
    let dir = TempDir::new().unwrap();
    let state = dir.path().join("security");
    let tokens = Tokens::open(&state).unwrap();
    let secret = tokens.issue("admin", Role::Admin).unwrap();
    let text = fs::read_to_string(state.join("tokens.json")).unwrap();
    let bare = secret.expose().strip_prefix(PREFIX).unwrap();
    assert!(!text.contains(bare) && !text.contains(&bare[..12]), "{text}");
    assert_eq!((mode_of(&state), mode_of(&state.join("tokens.json"))), (0o700, 0o600));
    assert_eq!(format!("{secret:?}"), "Secret(..)");
}

#[test]
fn tokens_survive_a_restart_with_their_role() {
    let dir = TempDir::new().unwrap();
    let roles = [("admin", Role::Admin), ("viewer", Role::ReadOnly), ("c1", agent("c1"))];
    let before = Tokens::open(dir.path()).unwrap();
    let issued = roles.map(|(name, role)| (name, role.clone(), before.issue(name, role).unwrap()));
    let after = Tokens::open(dir.path()).unwrap();
    for (name, role, secret) in issued {
        assert_eq!(after.identify(secret.expose()), Some(Identity::new(name, role)));
    }
    let names: Vec<_> = after.holders().into_iter().map(|holder| holder.name).collect();
    assert_eq!(names, ["admin", "c1", "viewer"]);
}

#[test]
fn issuing_again_or_revoking_ends_the_old_token() {
    let dir = TempDir::new().unwrap();
    let tokens = Tokens::open(dir.path()).unwrap();
    let old = tokens.issue("admin", Role::Admin).unwrap();
    let new = tokens.issue("admin", Role::ReadOnly).unwrap();
    assert_eq!(tokens.identify(old.expose()), None);
    assert_eq!(tokens.identify(new.expose()).unwrap().role, Role::ReadOnly);
    assert!(tokens.revoke("admin").unwrap());
    assert!(!tokens.revoke("admin").unwrap());
    for tokens in [tokens, Tokens::open(dir.path()).unwrap()] {
        assert_eq!(tokens.identify(new.expose()), None);
    }
}

#[test]
fn a_damaged_file_is_named_and_kept() {
    let hash = "0".repeat(64);
    let table = [
        String::new(),
        "{".into(),
        r#"{"version":2,"tokens":[]}"#.into(),
        r#"{"version":1,"tokens":[{"name":"a","role":"admin","sha256":"00"}]}"#.into(),
        format!(r#"{{"version":1,"tokens":[{{"name":"a","role":"admin","sha256":"{}"}}]}}"#, "é".repeat(32)),
        format!(r#"{{"version":1,"tokens":[{{"name":"a","role":"god","sha256":"{hash}"}}]}}"#),
        format!(r#"{{"version":1,"tokens":[{{"name":"","role":"admin","sha256":"{hash}"}}]}}"#),
    ];
    for text in table {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("tokens.json");
        write_private(&path, text.as_bytes()).unwrap();
        let error = Tokens::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("tokens.json is damaged"), "{text}: {error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_token_that_cannot_be_stored_is_not_valid() {
    let dir = TempDir::new().unwrap();
    let tokens = Tokens::open(&dir.path().join("security")).unwrap();
    let old = tokens.issue("admin", Role::Admin).unwrap();
    fs::remove_dir_all(dir.path().join("security")).unwrap();
    tokens.issue("admin", Role::Admin).unwrap_err();
    assert!(tokens.identify(old.expose()).is_some());
}

#[test]
fn names_and_namespaces_are_checked() {
    let tokens = Tokens::ephemeral();
    for name in ["", "a b", "a\n", "ä", &"a".repeat(254)] {
        assert!(matches!(tokens.issue(name, Role::Admin), Err(TokenError::Name(_))), "{name:?}");
    }
    for namespace in ["", "C1", "a/b", "*", &"a".repeat(64)] {
        assert!(matches!(tokens.issue("x", agent(namespace)), Err(TokenError::Namespace(_))));
    }
    tokens.issue("system:agent:c1", agent("c-1")).unwrap();
}
