//! Bearer tokens: who a request comes from.
//!
//! Owns `tokens.json` (0600), which holds the SHA-256 of each token and never the token itself. A
//! token is 256 random bits, so a fast hash without salt is enough: there is nothing to guess. One
//! token per name; issuing again replaces it. Must not decide what an identity may do.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use aviary_serve::{private_directory, read_secret, write_private};

use super::access::Role;

const FILE: &str = "tokens.json";
const VERSION: u32 = 1;
/// Lets secret scanners find a leaked one.
const PREFIX: &str = "aviary_";
const TOKEN_BYTES: usize = 32;
/// The prefix and 32 bytes in unpadded base64.
const TOKEN_LENGTH: usize = PREFIX.len() + 43;

/// Who makes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub groups: Vec<String>,
    pub role: Role,
}

impl Identity {
    /// The identity of `name` in `role`; its groups follow from the role.
    pub fn new(name: impl Into<String>, role: Role) -> Self {
        let group = match role {
            Role::Admin => "system:masters",
            Role::ReadOnly => "aviary:readers",
            Role::Agent { .. } => "aviary:agents",
        };
        Self { name: name.into(), groups: vec![group.into(), "system:authenticated".into()], role }
    }
}

/// The text of a token. It exists once, when it is issued; the debug form does not show it.
pub struct Secret(String);

impl Secret {
    /// The text, to be given to its owner.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(..)")
    }
}

/// Why tokens could not be loaded or issued.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("failed to read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("failed to write {path}")]
    Write { path: PathBuf, source: io::Error },
    #[error("{path} is damaged ({reason}); restore it, or remove it and issue new tokens")]
    Damaged { path: PathBuf, reason: String },
    #[error("{0:?} is not a valid token name: use 1 to 253 printable ASCII characters without spaces")]
    Name(String),
    #[error("{0:?} is not a valid namespace: use 1 to 63 lower-case letters, digits and dashes")]
    Namespace(String),
    #[error("failed to get random bytes: {0}")]
    Random(getrandom::Error),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenEntry {
    name: String,
    role: Role,
    #[serde(with = "hex_digest")]
    sha256: [u8; 32],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    version: u32,
    tokens: Vec<TokenEntry>,
}

/// Indexed by the first bytes of the hash, so that thousands of agents need no scan. The lookup
/// leaks only bits of a hash, which an attacker cannot control; the comparison that matters is
/// constant-time.
type Index = HashMap<[u8; 8], Vec<TokenEntry>>;

/// The tokens this hub knows.
#[derive(Debug)]
pub struct Tokens {
    path: Option<PathBuf>,
    entries: RwLock<Index>,
}

impl Tokens {
    /// The tokens stored in `directory`; none if there is no file yet.
    pub fn open(directory: &Path) -> Result<Self, TokenError> {
        let path = directory.join(FILE);
        private_directory(directory)
            .map_err(|source| TokenError::Write { path: directory.to_owned(), source })?;
        let text = read_secret(&path).map_err(|source| TokenError::Read { path: path.clone(), source })?;
        let entries = match text {
            Some(text) => {
                parse(&text).map_err(|reason| TokenError::Damaged { path: path.clone(), reason })?
            }
            None => Vec::new(),
        };
        Ok(Self { path: Some(path), entries: RwLock::new(index(entries)) })
    }

    /// Tokens in memory.
    pub fn ephemeral() -> Self {
        Self { path: None, entries: RwLock::default() }
    }

    /// Issues a new token for `name`, replacing an earlier one. It is valid, and on disk, when this
    /// returns.
    pub fn issue(&self, name: &str, role: Role) -> Result<Secret, TokenError> {
        check_name(name)?;
        check_role(&role)?;
        let mut random = [0; TOKEN_BYTES];
        getrandom::fill(&mut random).map_err(TokenError::Random)?;
        let secret = Secret(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random)));
        let entry = TokenEntry { name: name.to_owned(), role, sha256: digest(secret.expose()) };

        let mut entries = self.write();
        let others = all(&entries).filter(|held| held.name != name).cloned();
        let tokens = others.chain([entry]).collect();
        self.replace(&mut entries, tokens)?;
        Ok(secret)
    }

    /// Revokes the token of `name`. Returns whether it had one.
    pub fn revoke(&self, name: &str) -> Result<bool, TokenError> {
        let mut entries = self.write();
        if !all(&entries).any(|held| held.name == name) {
            return Ok(false);
        }
        let kept = all(&entries).filter(|held| held.name != name).cloned().collect();
        self.replace(&mut entries, kept)?;
        Ok(true)
    }

    /// The owner of `token`; `None` for anything that is not a valid token.
    pub fn identify(&self, token: &str) -> Option<Identity> {
        // The length is not secret, and a huge input must cost nothing.
        if token.len() != TOKEN_LENGTH {
            return None;
        }
        let sha256 = digest(token);
        let entries = self.read();
        let candidates = entries.get(&prefix(&sha256))?;
        let found = candidates.iter().find(|held| held.sha256.ct_eq(&sha256).into())?;
        Some(Identity::new(found.name.clone(), found.role.clone()))
    }

    /// Everyone who holds a token, by name.
    pub fn holders(&self) -> Vec<Identity> {
        let mut holders: Vec<_> =
            all(&self.read()).map(|held| Identity::new(held.name.clone(), held.role.clone())).collect();
        holders.sort_by(|a, b| a.name.cmp(&b.name));
        holders
    }

    /// Disk first, then memory: a token that works now also works after a crash.
    fn replace(&self, entries: &mut Index, mut tokens: Vec<TokenEntry>) -> Result<(), TokenError> {
        tokens.sort_by(|a, b| a.name.cmp(&b.name));
        let stored = TokenFile { version: VERSION, tokens };
        if let Some(path) = &self.path {
            serde_json::to_vec_pretty(&stored)
                .map_err(io::Error::from)
                .and_then(|text| write_private(path, &text))
                .map_err(|source| TokenError::Write { path: path.clone(), source })?;
        }
        *entries = index(stored.tokens);
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Index> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn all(entries: &Index) -> impl Iterator<Item = &TokenEntry> {
    entries.values().flatten()
}

fn index(tokens: Vec<TokenEntry>) -> Index {
    let mut entries = Index::new();
    for entry in tokens {
        entries.entry(prefix(&entry.sha256)).or_default().push(entry);
    }
    entries
}

fn parse(text: &str) -> Result<Vec<TokenEntry>, String> {
    let stored: TokenFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if stored.version != VERSION {
        return Err(format!("version {} is not {VERSION}", stored.version));
    }
    for entry in &stored.tokens {
        check_name(&entry.name).and_then(|()| check_role(&entry.role)).map_err(|error| error.to_string())?;
    }
    Ok(stored.tokens)
}

/// Names end up in messages, logs and managed fields.
fn check_name(name: &str) -> Result<(), TokenError> {
    let fits = (1..=253).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(()) } else { Err(TokenError::Name(name.to_owned())) }
}

fn check_role(role: &Role) -> Result<(), TokenError> {
    let Role::Agent { namespace } = role else { return Ok(()) };
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = (1..=63).contains(&namespace.len()) && namespace.bytes().all(plain);
    if fits { Ok(()) } else { Err(TokenError::Namespace(namespace.clone())) }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn prefix(sha256: &[u8; 32]) -> [u8; 8] {
    std::array::from_fn(|at| sha256[at])
}

mod hex_digest {
    use std::fmt::Write;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(digest: &[u8; 32], out: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(64);
        for byte in digest {
            write!(text, "{byte:02x}").map_err(serde::ser::Error::custom)?;
        }
        out.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(input)?;
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(D::Error::custom("a hash is 64 hexadecimal digits"));
        }
        let mut digest = [0; 32];
        for (at, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(D::Error::custom)?;
        }
        Ok(digest)
    }
}

#[cfg(test)]
mod tests;
