//! The file on disk: one table of objects, and the last revision.
//!
//! Owns the format and the checks on opening. Every record has a checksum; a file that cannot be
//! read completely is refused with a message, never partly dropped. Not used for reads while the
//! hub runs: those come from memory.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use bytes::Bytes;
use redb::{
    Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, Table, TableDefinition,
    TableError,
};

use super::FIRST_REVISION;
use super::log::{CommittedEvent, EventKind};
use super::overlay::Overlay;
use super::state::StoreState;
use crate::store::object::{ResourceId, StoreKey, StoredObject};

const FILE: &str = "hub.redb";
/// A new file gets its final name when it is complete.
const NEW_FILE: &str = "hub.redb.new";
/// Locked by the only process that may use the other files. Contains the last acknowledged
/// revision.
const LOCK: &str = "hub.lock";
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
    #[error("failed to create {} in the data directory", .file.display())]
    Create { file: PathBuf, source: std::io::Error },
    #[error("failed to create the data directory {}", .directory.display())]
    Directory { directory: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Write(Box<redb::Error>),
    #[error("the database failed in the middle of a write")]
    Broken,
}

fn write_error(error: impl Into<redb::Error>) -> DiskError {
    DiskError::Write(Box::new(error.into()))
}

#[derive(Debug)]
pub(crate) enum Disk {
    /// Nothing is stored.
    None,
    File(Box<DataFile>),
    #[cfg(test)]
    Scripted(super::tests::Script),
}

/// The open file.
#[derive(Debug)]
pub(crate) struct DataFile {
    file: PathBuf,
    /// `None` after a failed write: the database then refuses everything until it is opened again.
    database: Option<Database>,
    /// The objects of failed writes. These may have reached the disk nevertheless, so the next
    /// write corrects them.
    unsure: BTreeSet<(ResourceId, StoreKey)>,
    lock: Lock,
}

/// The exclusive lock.
///
/// After each batch its revision is written here, without a flush. An acknowledged batch was
/// flushed before. So a store whose last revision is lower than this one has lost something,
/// whatever its own checksums say: after a crash, the database treats a last batch with a wrong
/// checksum as unfinished, and undoes it.
#[derive(Debug)]
struct Lock(File);

impl Disk {
    pub(super) fn open(directory: &Path) -> Result<(Self, StoreState), DiskError> {
        make_directory(directory)?;
        let lock = Lock::take(directory)?;
        let file = directory.join(FILE);
        let acknowledged = lock.acknowledged().unwrap_or(0);
        let lacks = |what: String| {
            let why = format!(
                "{what}, but revision {acknowledged} was acknowledged (if that is how you want it, remove {LOCK})"
            );
            Err(DiskError::Damaged { file: file.clone(), why })
        };
        if !file.exists() {
            if acknowledged > 0 {
                return lacks("it is not there".into());
            }
            create(directory, &file)?;
        }
        let state = verify(&file)?;
        if state.revision() < acknowledged {
            return lacks(format!("it ends at revision {}", state.revision()));
        }
        let database = unpanicked(&file, || open_database(&file))?;
        let disk = DataFile { file, database: Some(database), unsure: BTreeSet::new(), lock };
        Ok((Self::File(Box::new(disk)), state))
    }

    /// Writes a batch, which changes the objects from one state to the other. When it returns, the
    /// whole batch is on disk.
    pub(super) fn write(
        &mut self,
        events: &[Arc<CommittedEvent>],
        before: &StoreState,
        after: &StoreState,
    ) -> Result<(), DiskError> {
        match self {
            Self::None => Ok(()),
            Self::File(file) => file.write(events, before, after.revision()),
            #[cfg(test)]
            Self::Scripted(script) => script.write(events, before, after),
        }
    }
}

impl DataFile {
    fn write(
        &mut self,
        events: &[Arc<CommittedEvent>],
        before: &StoreState,
        revision: u64,
    ) -> Result<(), DiskError> {
        let Self { file, database, unsure, lock } = self;
        let written = catch_unwind(AssertUnwindSafe(|| {
            let open = match database.take() {
                Some(open) => open,
                None => open_database(file)?,
            };
            write(&open, unsure, before, events, revision)?;
            Ok(open)
        }));
        match written.unwrap_or(Err(DiskError::Broken)) {
            Ok(open) => {
                *database = Some(open);
                unsure.clear();
                lock.note(revision);
                Ok(())
            }
            Err(error) => {
                unsure.extend(events.iter().map(|event| (event.resource.clone(), event.object.key.clone())));
                Err(error)
            }
        }
    }
}

fn write(
    database: &Database,
    unsure: &BTreeSet<(ResourceId, StoreKey)>,
    before: &StoreState,
    events: &[Arc<CommittedEvent>],
    revision: u64,
) -> Result<(), DiskError> {
    let transaction = database.begin_write().map_err(write_error)?;
    {
        let mut objects = transaction.open_table(OBJECTS).map_err(write_error)?;
        for (resource, key) in unsure {
            put(&mut objects, resource, key, before.get(resource, key).map(|stored| &*stored.json))?;
        }
        for event in events {
            let json = (event.kind != EventKind::Deleted).then_some(&*event.object.json);
            put(&mut objects, &event.resource, &event.object.key, json)?;
        }
        let mut numbers = transaction.open_table(NUMBERS).map_err(write_error)?;
        numbers.insert("revision", revision).map_err(write_error)?;
    }
    transaction.commit().map_err(write_error)
}

/// Writes or removes a record.
fn put(
    objects: &mut Table<'_, &[u8], &[u8]>,
    resource: &str,
    key: &str,
    json: Option<&[u8]>,
) -> Result<(), DiskError> {
    let key = [resource.as_bytes(), &[0], key.as_bytes()].concat();
    match json {
        Some(json) => {
            let value = [&checksum(&key, json).to_le_bytes(), json].concat();
            objects.insert(key.as_slice(), value.as_slice()).map_err(write_error)?;
        }
        None => {
            objects.remove(key.as_slice()).map_err(write_error)?;
        }
    }
    Ok(())
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

impl Lock {
    fn take(directory: &Path) -> Result<Self, DiskError> {
        let file = directory.join(LOCK);
        let lock = private_options().create(true).truncate(false).open(&file);
        let lock = lock.map_err(|source| DiskError::Create { file: file.clone(), source })?;
        match lock.try_lock() {
            Ok(()) => Ok(Self(lock)),
            Err(TryLockError::WouldBlock) => Err(DiskError::InUse(directory.to_owned())),
            Err(TryLockError::Error(source)) => Err(DiskError::Create { file, source }),
        }
    }

    fn acknowledged(&self) -> Option<u64> {
        let mut digits = [0; 20];
        self.0.read_exact_at(&mut digits, 0).ok()?;
        std::str::from_utf8(&digits).ok()?.parse().ok()
    }

    fn note(&self, revision: u64) {
        // A second line of defence: a failure here does not affect what is stored.
        if let Err(error) = self.0.write_all_at(format!("{revision:020}\n").as_bytes(), 0) {
            tracing::warn!(%error, "failed to note the last revision in {LOCK}");
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is just being started shares the file until
        // its exec.
        let _ = self.0.unlock();
    }
}

/// Only the owner may read it: it contains secrets.
fn private_options() -> std::fs::OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options.read(true).write(true).mode(0o600);
    options
}

fn builder() -> Builder {
    let mut builder = Database::builder();
    // Reads come from memory; the cache is for the pages that a commit touches.
    builder.set_cache_size(32 << 20);
    builder
}

/// Creates an empty store. It gets its name when it is complete, so a crash leaves no invalid
/// store.
fn create(directory: &Path, file: &Path) -> Result<(), DiskError> {
    let new = directory.join(NEW_FILE);
    let failed = |source| DiskError::Create { file: file.to_owned(), source };
    let made = private_options().create(true).truncate(true).open(&new).map_err(failed)?;
    let database = builder().create_file(made).map_err(write_error)?;
    let transaction = database.begin_write().map_err(write_error)?;
    transaction.open_table(OBJECTS).map_err(write_error)?;
    {
        let mut numbers = transaction.open_table(NUMBERS).map_err(write_error)?;
        numbers.insert("format", FORMAT).map_err(write_error)?;
        numbers.insert("revision", FIRST_REVISION).map_err(write_error)?;
    }
    transaction.commit().map_err(write_error)?;
    drop(database);
    std::fs::rename(&new, file).map_err(failed)?;
    // The rename must also survive a power loss.
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
}

/// A damaged file can make the database panic; this turns the panic into an error.
fn unpanicked<T>(file: &Path, open: impl FnOnce() -> Result<T, DiskError>) -> Result<T, DiskError> {
    catch_quietly(open).unwrap_or_else(|_| {
        Err(DiskError::Damaged { file: file.to_owned(), why: "its pages do not make sense".into() })
    })
}

/// Runs something that may panic, without printing a backtrace.
fn catch_quietly<T>(run: impl FnOnce() -> T) -> std::thread::Result<T> {
    thread_local!(static QUIET: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    QUIET.set(false);
    outcome
}

fn open_database(file: &Path) -> Result<Database, DiskError> {
    let open = private_options().open(file).map_err(DatabaseError::from);
    open.and_then(|open| builder().create_file(open)).map_err(|error| opening(file, error))
}

fn opening(file: &Path, error: DatabaseError) -> DiskError {
    let damaged = |why: String| DiskError::Damaged { file: file.to_owned(), why };
    let is_of_content =
        |error: &std::io::Error| matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof);
    match error {
        DatabaseError::DatabaseAlreadyOpen => DiskError::InUse(file.to_owned()),
        DatabaseError::Storage(StorageError::Corrupted(why)) => damaged(why),
        DatabaseError::Storage(StorageError::Io(error)) if is_of_content(&error) => {
            damaged(error.to_string())
        }
        DatabaseError::UpgradeRequired(_) => damaged(error.to_string()),
        other => DiskError::Open { file: file.to_owned(), source: Box::new(other.into()) },
    }
}

/// Reads and checks the whole file, without changing a byte.
fn verify(file: &Path) -> Result<StoreState, DiskError> {
    let damaged = |why: &str| DiskError::Damaged { file: file.to_owned(), why: why.to_owned() };
    let opened = File::open(file).and_then(Overlay::new);
    let overlay = opened.map_err(|error| opening(file, error.into()))?;
    unpanicked(file, || {
        if redb::StorageBackend::len(&overlay).is_ok_and(|length| length == 0) {
            return Err(damaged("it is empty"));
        }
        let failed = |error| opening(file, error);
        let mut database = builder().create_with_backend(overlay).map_err(failed)?;
        if !database.check_integrity().map_err(failed)? {
            return Err(damaged("its pages do not agree with each other"));
        }
        read(file, &database)
    })
}

fn read(file: &Path, database: &Database) -> Result<StoreState, DiskError> {
    let damaged = |why: String| DiskError::Damaged { file: file.to_owned(), why };
    let stored = |error: StorageError| opening(file, error.into());
    let table = |error: TableError| match error {
        TableError::Storage(error) => stored(error),
        // Missing, or of another type.
        other => damaged(other.to_string()),
    };
    let transaction = database
        .begin_read()
        .map_err(|error| DiskError::Open { file: file.to_owned(), source: Box::new(error.into()) })?;
    let numbers = transaction.open_table(NUMBERS).map_err(table)?;
    let number = |name: &str| -> Result<u64, DiskError> {
        let found = numbers.get(name).map_err(stored)?;
        found.map(|number| number.value()).ok_or_else(|| damaged(format!("it has no {name}")))
    };
    match number("format")? {
        FORMAT => {}
        found => return Err(DiskError::Format { file: file.to_owned(), found }),
    }
    let revision = number("revision")?;
    let mut objects = Vec::new();
    for entry in transaction.open_table(OBJECTS).map_err(table)?.iter().map_err(stored)? {
        let (key, value) = entry.map_err(stored)?;
        objects.push(record(key.value(), value.value(), revision).map_err(damaged)?);
    }
    Ok(StoreState::restored(revision, objects))
}

fn record(key: &[u8], value: &[u8], newest: u64) -> Result<(ResourceId, Arc<StoredObject>), String> {
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
    let stored = StoredObject::read(name.into(), Bytes::copy_from_slice(json))
        .map_err(|error| format!("{shown}: {error}"))?;
    if stored.revision > newest {
        return Err(format!("{shown} has revision {}, the newest is {newest}", stored.revision));
    }
    Ok((resource.into(), Arc::new(stored)))
}
