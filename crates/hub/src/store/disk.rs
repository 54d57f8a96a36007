//! What is on disk: one file, one table of objects and the last revision.
//!
//! Owns the format and the checks on opening. Every record carries a checksum of its own; anything that cannot be read
//! whole is refused with a message, never dropped. Must not be asked anything while the hub runs: reads are from memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};

use super::FIRST_REVISION;
use super::log::{Event, EventKind};
use super::state::State;
use crate::object::{ResourceId, Stored};

const FILE: &str = "hub.redb";
const FORMAT: u64 = 1;

/// `resource \0 key` to checksum and JSON.
const OBJECTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("objects");
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("{} is in use by another process: only one hub can run on a data directory", .0.display())]
    InUse(PathBuf),
    #[error("{} is damaged: {why}; nothing was changed: restore it from a copy, or start with an empty directory", .file.display())]
    Damaged { file: PathBuf, why: String },
    #[error("{} was written by another version of the hub (format {found}, this one reads {FORMAT})", .file.display())]
    Format { file: PathBuf, found: u64 },
    #[error("failed to open {}", .file.display())]
    Open { file: PathBuf, source: Box<redb::Error> },
    #[error("failed to create the data directory {}", .directory.display())]
    Directory { directory: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Write(Box<redb::Error>),
}

fn write_error(error: impl Into<redb::Error>) -> DiskError {
    DiskError::Write(Box::new(error.into()))
}

#[derive(Debug)]
pub(crate) enum Disk {
    /// Nothing outlives the process.
    None,
    File(Box<Database>),
}

impl Disk {
    pub(super) fn open(directory: &Path) -> Result<(Self, State), DiskError> {
        make_directory(directory)?;
        let file = directory.join(FILE);
        // A damaged file can make the database panic instead of failing; for us that is one more way to say damaged.
        let opened = catch_unwind(AssertUnwindSafe(|| read(&file)));
        let (database, state) = opened.unwrap_or_else(|_| {
            Err(DiskError::Damaged { file: file.clone(), why: "its pages do not make sense".into() })
        })?;
        Ok((Self::File(Box::new(database)), state))
    }

    /// Writes a batch. When it returns, the batch is on disk, whole.
    pub(super) fn write(&self, events: &[Arc<Event>], revision: u64) -> Result<(), DiskError> {
        let Self::File(database) = self else { return Ok(()) };
        let transaction = database.begin_write().map_err(write_error)?;
        {
            let mut objects = transaction.open_table(OBJECTS).map_err(write_error)?;
            let (mut key, mut value) = (Vec::new(), Vec::new());
            for event in events {
                key.clear();
                key.extend_from_slice(event.resource.as_bytes());
                key.push(0);
                key.extend_from_slice(event.object.key.as_bytes());
                if event.kind == EventKind::Deleted {
                    objects.remove(key.as_slice()).map_err(write_error)?;
                } else {
                    value.clear();
                    value.extend_from_slice(&checksum(&key, &event.object.json).to_le_bytes());
                    value.extend_from_slice(&event.object.json);
                    objects.insert(key.as_slice(), value.as_slice()).map_err(write_error)?;
                }
            }
            let mut numbers = transaction.open_table(NUMBERS).map_err(write_error)?;
            numbers.insert("revision", revision).map_err(write_error)?;
        }
        transaction.commit().map_err(write_error)
    }
}

fn checksum(key: &[u8], json: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(json);
    hasher.finalize()
}

fn make_directory(directory: &Path) -> Result<(), DiskError> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
        .create(directory)
        .map_err(|source| DiskError::Directory { directory: directory.to_owned(), source })
}

fn read(file: &Path) -> Result<(Database, State), DiskError> {
    let open = |error: redb::Error| DiskError::Open { file: file.to_owned(), source: Box::new(error) };
    let damaged = |why: String| DiskError::Damaged { file: file.to_owned(), why };
    let is_new = !file.exists();
    // Everything is served from memory; the cache is for the pages that a commit touches.
    let mut builder = Database::builder();
    builder.set_cache_size(32 << 20);
    let database = builder.create(file).map_err(|error| match error {
        redb::DatabaseError::DatabaseAlreadyOpen => DiskError::InUse(file.to_owned()),
        redb::DatabaseError::Storage(redb::StorageError::Corrupted(why)) => damaged(why),
        redb::DatabaseError::Storage(redb::StorageError::Io(error))
            if error.kind() == std::io::ErrorKind::InvalidData =>
        {
            damaged(error.to_string())
        }
        other => open(other.into()),
    })?;
    if is_new {
        create(&database)?;
        make_private(file)?;
    }
    let transaction = database.begin_read().map_err(|error| open(error.into()))?;
    let missing = |error: TableError| match error {
        TableError::TableDoesNotExist(name) => damaged(format!("it has no table {name:?}")),
        other => open(other.into()),
    };
    let numbers = transaction.open_table(NUMBERS).map_err(missing)?;
    let number = |name: &str| -> Result<u64, DiskError> {
        let found = numbers.get(name).map_err(|error| open(error.into()))?;
        found.map(|number| number.value()).ok_or_else(|| damaged(format!("it has no {name}")))
    };
    match number("format")? {
        FORMAT => {}
        found => return Err(DiskError::Format { file: file.to_owned(), found }),
    }
    let revision = number("revision")?;
    let mut objects = Vec::new();
    for entry in
        transaction.open_table(OBJECTS).map_err(missing)?.iter().map_err(|error| open(error.into()))?
    {
        let (key, value) = entry.map_err(|error| open(error.into()))?;
        objects.push(record(key.value(), value.value(), revision).map_err(damaged)?);
    }
    drop(numbers);
    drop(transaction);
    Ok((database, State::restored(revision, objects)))
}

/// One record, checked.
fn record(key: &[u8], value: &[u8], newest: u64) -> Result<(ResourceId, Arc<Stored>), String> {
    let shown = String::from_utf8_lossy(key).replace('\0', " ");
    let (sum, json) =
        value.split_first_chunk::<4>().ok_or_else(|| format!("the record of {shown} is cut off"))?;
    if u32::from_le_bytes(*sum) != checksum(key, json) {
        return Err(format!("the record of {shown} does not match its checksum"));
    }
    let (resource, name) = std::str::from_utf8(key)
        .ok()
        .and_then(|key| key.split_once('\0'))
        .ok_or_else(|| format!("{shown} is not a key of the hub"))?;
    let stored = Stored::read(name.into(), Bytes::copy_from_slice(json))
        .map_err(|error| format!("{shown}: {error}"))?;
    if stored.revision > newest {
        return Err(format!("{shown} has revision {}, the newest is {newest}", stored.revision));
    }
    Ok((resource.into(), Arc::new(stored)))
}

/// Only the owner may read: secrets are in here.
fn make_private(file: &Path) -> Result<(), DiskError> {
    use std::os::unix::fs::PermissionsExt;
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(file, private).map_err(|error| write_error(redb::Error::Io(error)))
}

fn create(database: &Database) -> Result<(), DiskError> {
    let transaction = database.begin_write().map_err(write_error)?;
    transaction.open_table(OBJECTS).map_err(write_error)?;
    {
        let mut numbers = transaction.open_table(NUMBERS).map_err(write_error)?;
        numbers.insert("format", FORMAT).map_err(write_error)?;
        numbers.insert("revision", FIRST_REVISION).map_err(write_error)?;
    }
    transaction.commit().map_err(write_error)
}
