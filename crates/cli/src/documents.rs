//! Reads files as documents, and records where each document is.
//!
//! Owns reading, and knows nothing about the meaning of documents. An unreadable document becomes a
//! [`Finding`], never a partial document, and does not hide the other documents in its file.

mod text;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::findings::{Finding, numbered};

/// The largest file that is read.
const MOST_BYTES: u64 = 512 * 1024 * 1024;

/// The position of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: Arc<str>,
    /// Counted from 1, without empty documents.
    pub(crate) document: usize,
    /// The position in a List, counted from 1.
    pub(crate) item: Option<usize>,
    /// The line in the file where the document starts.
    pub(crate) line: usize,
}

/// One document, or one item of a List.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

impl Document {
    fn text(&self, pointer: &str) -> &str {
        self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn api_version(&self) -> &str {
        self.text("/apiVersion")
    }

    pub(crate) fn kind(&self) -> &str {
        self.text("/kind")
    }

    pub(crate) fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    pub(crate) fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// The API group; empty for the core group.
    pub(crate) fn group(&self) -> &str {
        self.api_version().rsplit_once('/').map_or("", |(group, _)| group)
    }

    pub(crate) fn version(&self) -> &str {
        self.api_version().rsplit_once('/').map_or(self.api_version(), |(_, version)| version)
    }

    /// Describes the document: its file, its number, and its kind and name.
    pub(crate) fn said(&self) -> String {
        let Place { file, document, item, .. } = &self.place;
        format!("{file}: {}", numbered(*document, *item, self.kind(), self.namespace(), self.name()))
    }
}

/// The documents that were read, and the problems with those that were not.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) documents: Vec<Document>,
    pub(crate) faults: Vec<Finding>,
}

/// Reads all documents of all files, in order. If a path is a directory, reads the files in it, and
/// with `recursive` also those in all directories below it.
pub(crate) fn read(files: &[PathBuf], recursive: bool, stdin: &mut dyn Read) -> Reading {
    let mut read = Reading::default();
    for (index, file) in files.iter().enumerate() {
        let shown = shown(file);
        if files.iter().take(index).any(|earlier| earlier == file) {
            read.faults.push(Finding::in_file(&shown, "GivenTwice", "is given twice"));
            continue;
        }
        match contents(file, recursive, stdin) {
            Ok(contents) => {
                for (file, bytes) in contents {
                    read.add(&file, &bytes);
                }
            }
            Err(message) => read.faults.push(Finding::in_file(&shown, "Unreadable", message)),
        }
    }
    read
}

impl Reading {
    fn add(&mut self, file: &str, bytes: &[u8]) {
        let text = match as_text(bytes) {
            Ok(text) => text,
            Err(message) => return self.faults.push(Finding::in_file(file, "Unreadable", message)),
        };
        let parsed = text::parse(file, text);
        if parsed.documents.is_empty() && parsed.faults.is_empty() {
            let message = "is empty: it contains only comments and white space";
            self.faults.push(Finding::in_file(file, "Empty", message));
        }
        self.faults.extend(parsed.faults);
        for document in parsed.documents {
            self.documents.extend(expand(document));
        }
    }
}

/// The name of a file in messages.
fn shown(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.to_string_lossy().into_owned() }
}

/// Reads a file, standard input, or each file in a directory.
fn contents(file: &Path, recursive: bool, stdin: &mut dyn Read) -> Result<Vec<(String, Vec<u8>)>, String> {
    if file == Path::new("-") {
        return Ok(vec![(shown(file), limited(stdin)?)]);
    }
    let metadata = fs::metadata(file).map_err(|error| said(&error))?;
    if !metadata.is_dir() {
        let mut open = File::open(file).map_err(|error| said(&error))?;
        return Ok(vec![(shown(file), limited(&mut open)?)]);
    }
    let mut found = Vec::new();
    let mut has_directories = false;
    let mut directories = vec![file.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).map_err(|error| said(&error))? {
            let entry = entry.map_err(|error| said(&error))?;
            let path = entry.path();
            let wanted = path.extension().and_then(|extension| extension.to_str());
            // A link to a directory is not followed: it may lead back.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                has_directories = true;
                directories.extend(recursive.then_some(path));
            } else if matches!(wanted, Some("yaml" | "yml" | "json")) && path.is_file() {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        let below = if has_directories && !recursive { "; -R also reads the directories in it" } else { "" };
        return Err(format!("is a directory without any .yaml, .yml or .json file{below}"));
    }
    found.sort();
    found
        .iter()
        .map(|path| {
            let mut open = File::open(path).map_err(|error| format!("{}: {}", shown(path), said(&error)))?;
            Ok((shown(path), limited(&mut open)?))
        })
        .collect()
}

fn limited(from: &mut dyn Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    from.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| said(&error))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err("is larger than 512 MiB: split it".to_owned());
    }
    Ok(bytes)
}

/// Describes an I/O error, without the operating system's error number.
fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "cannot be read: permission denied".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

fn as_text(bytes: &[u8]) -> Result<&str, String> {
    if bytes.contains(&0) {
        return Err("is not text: it contains NUL bytes; use YAML or JSON in UTF-8".to_owned());
    }
    let text = str::from_utf8(bytes).map_err(|error| {
        format!("is not text: byte {} is not UTF-8; use YAML or JSON in UTF-8", error.valid_up_to() + 1)
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Returns the items of a List, or the document itself. Items of a typed list may omit their kind,
/// because the list determines it.
fn expand(document: Document) -> Vec<Document> {
    let element = document.kind().strip_suffix("List").map(str::to_owned);
    let (Some(element), Some(items)) = (element, document.value.get("items").and_then(Value::as_array))
    else {
        return vec![document];
    };
    let api_version = document.api_version().to_owned();
    items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let mut value = item.clone();
            if let Value::Object(fields) = &mut value
                && !element.is_empty()
            {
                fields.entry("apiVersion").or_insert_with(|| api_version.clone().into());
                fields.entry("kind").or_insert_with(|| element.clone().into());
            }
            Document { place: Place { item: Some(index + 1), ..document.place.clone() }, value }
        })
        .collect()
}
