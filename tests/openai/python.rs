//! The scripts for OpenAI's official client.

use std::path::PathBuf;

use crate::shared;

/// The folder of the scripts.
pub(crate) fn folder() -> PathBuf {
    shared::repository().join("tests/openai")
}

/// The interpreter; `None` if these tests are to be skipped.
pub(crate) fn find() -> Option<PathBuf> {
    shared::find()
}
