//! A Python that can import the package in `clients/python`.

use std::{path::PathBuf, process::Command};

use crate::python;
pub(crate) use crate::python::find;

/// Sets a command up in the folder of the package, which it can import.
pub(crate) fn set_up(command: &mut Command) {
    command.current_dir(package()).env("PYTHONPATH", package().join("src")).env("PYTHONDONTWRITEBYTECODE", "1");
}

/// The folder of the package.
pub(crate) fn package() -> PathBuf {
    python::repository().join("clients/python")
}

/// The folder of the example.
pub(crate) fn example() -> PathBuf {
    python::repository().join("examples/python-worker")
}
