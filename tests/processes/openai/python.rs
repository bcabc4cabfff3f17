//! The scripts for OpenAI's official client.

use std::path::PathBuf;

use crate::python;

/// The folder of the scripts.
pub(crate) fn folder() -> PathBuf {
    python::repository().join("tests/processes/openai")
}

/// The interpreter; `None` if these tests are to be skipped.
pub(crate) fn find() -> Option<PathBuf> {
    python::find()
}
