//! Messages and records as earlier versions wrote them, read by this one.
//!
//! `tests/samples` has a folder for each released series, such as 0.1. `UPDATE_SAMPLES=1 cargo test --workspace --test samples` writes
//! that of this series; once its first version is released, it is never changed (docs/UPGRADING.md).

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

#[path = "samples/messages.rs"]
mod messages;
#[path = "samples/records.rs"]
mod records;
#[path = "samples/restore.rs"]
mod restore;
#[path = "samples/scene.rs"]
mod scene;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/samples");

/// What the version was that wrote the samples of a series.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    /// Its number.
    pub(crate) program: String,
    pub(crate) contract: u32,
    pub(crate) records: u32,
    /// Its newest migration.
    pub(crate) migration: i64,
}

/// The folder of this series.
pub(crate) fn own_folder() -> PathBuf {
    let version = env!("CARGO_PKG_VERSION");
    let (series, _) = version.rsplit_once('.').unwrap();
    Path::new(FOLDER).join(format!("v{series}"))
}

/// The folders of all series, the oldest first.
pub(crate) fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.join("version.json").exists()).collect();
    folders.sort();
    assert!(!folders.is_empty(), "there are no samples in {FOLDER}");
    folders
}

pub(crate) fn version(folder: &Path) -> Version {
    serde_json::from_str(&fs::read_to_string(folder.join("version.json")).unwrap()).unwrap()
}

/// True if samples are to be written.
pub(crate) fn updates() -> bool {
    std::env::var_os("UPDATE_SAMPLES").is_some()
}
