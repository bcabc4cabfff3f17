//! A Python that can import the package in `clients/python`.

use std::{path::PathBuf, process::Command};

use crate::shared;

/// An interpreter.
#[derive(Clone)]
pub(crate) struct Python {
    pub(crate) program: PathBuf,
}

impl Python {
    /// A command in the folder of the package, which it can import.
    pub(crate) fn set_up(command: &mut Command) {
        command.current_dir(package()).env("PYTHONPATH", package().join("src")).env("PYTHONDONTWRITEBYTECODE", "1");
    }

    /// What a command printed; panics if it failed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        Self::set_up(&mut command);
        let output = command.output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{arguments:?}: {said}");
        said
    }
}

/// The folder of the package.
pub(crate) fn package() -> PathBuf {
    shared::repository().join("clients/python")
}

/// The folder of the example.
pub(crate) fn example() -> PathBuf {
    shared::repository().join("examples/python-worker")
}

/// The interpreter; `None` if these tests are to be skipped.
pub(crate) fn find() -> Option<Python> {
    shared::find().map(|program| Python { program })
}
