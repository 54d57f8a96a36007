//! Files that hold secrets: written whole or not at all, for their owner only.
//!
//! Owns the modes (files 0600, directories 0700) and the order temp file, fsync, rename, fsync of
//! the directory. It must not know what it writes, and must never open an existing file for
//! writing.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
/// Far above the size of any of our files, so that a replaced file cannot exhaust memory.
const READ_LIMIT: u64 = 16 << 20;

/// Replaces `path` by `contents`, mode 0600, atomically and durably. The parent directory must
/// exist.
///
/// A reader sees the old file or the new one, never a part. Rights only ever shrink: a file that
/// its owner had made 0400 stays 0400. A symbolic link is refused: following it could put the
/// secret into a directory with unchecked rights, and replacing it would silently undo its owner's
/// setup. The same holds for anything else that is not a regular file.
pub fn write_private(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mode = match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => return Err(refused(path, "is a symbolic link")),
        Ok(found) if !found.is_file() => return Err(refused(path, "is not a regular file")),
        Ok(found) => found.permissions().mode() & FILE_MODE,
        Err(error) if error.kind() == ErrorKind::NotFound => FILE_MODE,
        Err(error) => return Err(error),
    };
    let name = path.file_name().ok_or_else(|| refused(path, "has no file name"))?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut temporary_name = OsString::from(".");
    temporary_name.push(name);
    let unique = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
    temporary_name.push(format!(".{unique:016x}.tmp"));
    let temporary = directory.join(temporary_name);

    let renamed = write_new(&temporary, contents, mode).and_then(|()| fs::rename(&temporary, path));
    if renamed.is_err() {
        // The first error is reported; a remaining temporary file is private as well.
        let _ = fs::remove_file(&temporary);
    }
    renamed?;
    // Without this the rename may be lost in a power failure.
    File::open(directory)?.sync_all()
}

fn write_new(path: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    // create_new is O_EXCL: a file or link planted under this name makes it fail instead of being
    // used.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    // The umask can only remove bits; this makes the mode exact.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(contents)?;
    file.sync_all()
}

/// Creates `directory` (0700) if it is missing. A directory that others may write is refused, not
/// repaired: a key in it may already have been replaced.
pub fn private_directory(directory: &Path) -> io::Result<()> {
    match fs::metadata(directory) {
        Ok(found) if !found.is_dir() => Err(refused(directory, "is not a directory")),
        Ok(found) if found.permissions().mode() & 0o022 != 0 => {
            Err(refused(directory, "is writable by others (chmod 700 it)"))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory)
        }
        Err(error) => Err(error),
    }
}

/// The text of a file, or `None` if there is none.
pub(crate) fn read_text(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    if file.take(READ_LIMIT + 1).read_to_string(&mut text)? as u64 > READ_LIMIT {
        return Err(refused(path, "is far too large"));
    }
    Ok(Some(text))
}

/// As [`read_text`]; a file that others may read is refused, because its content is no longer
/// secret.
pub fn read_secret(path: &Path) -> io::Result<Option<String>> {
    match fs::metadata(path) {
        Ok(found) if found.permissions().mode() & 0o077 != 0 => {
            Err(refused(path, "is accessible to others (chmod 600 it, or replace it if it may have leaked)"))
        }
        Ok(_) => read_text(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{} {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{mode_of, names};
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    #[test]
    fn a_new_file_is_private_and_leaves_no_temporary_behind() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("config");
        write_private(&path, b"one").unwrap();
        write_private(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(mode_of(&path), 0o600);
        assert_eq!(names(dir.path()), ["config"]);
    }

    #[test]
    fn rights_only_ever_shrink() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("config");
        for (before, after) in [(0o644, 0o600), (0o400, 0o400), (0o600, 0o600)] {
            write_private(&path, b"old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            write_private(&path, b"new").unwrap();
            assert_eq!(mode_of(&path), after, "from {before:o}");
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_link_is_neither_followed_nor_replaced() {
        let dir = TempDir::new().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        fs::write(&target, "kept").unwrap();
        symlink(&target, &link).unwrap();
        let error = write_private(&link, b"secret").unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
        assert_eq!(fs::read(&target).unwrap(), b"kept");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        symlink(dir.path().join("nowhere"), dir.path().join("dangling")).unwrap();
        assert!(write_private(&dir.path().join("dangling"), b"secret").is_err());
    }

    #[test]
    fn a_missing_parent_and_a_directory_in_the_way_are_errors() {
        let dir = TempDir::new().unwrap();
        assert!(write_private(&dir.path().join("no/such/config"), b"x").is_err());
        assert!(write_private(dir.path(), b"x").is_err());
        assert_eq!(names(dir.path()), Vec::<String>::new());
    }

    #[test]
    fn directories_are_created_private_and_refused_when_others_may_write() {
        let dir = TempDir::new().unwrap();
        let made = dir.path().join("a/b");
        private_directory(&made).unwrap();
        assert_eq!(mode_of(&made), 0o700);
        fs::set_permissions(&made, Permissions::from_mode(0o770)).unwrap();
        let error = private_directory(&made).unwrap_err();
        assert!(error.to_string().contains("writable by others"), "{error}");
    }

    #[test]
    fn a_secret_that_others_may_read_is_refused() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("ca.key");
        assert_eq!(read_secret(&path).unwrap(), None);
        write_private(&path, b"key").unwrap();
        assert_eq!(read_secret(&path).unwrap().as_deref(), Some("key"));
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert!(read_secret(&path).is_err());
    }
}
