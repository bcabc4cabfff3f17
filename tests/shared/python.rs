//! The Python with everything that tests need, which `./dev test` installs. All tests share it.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

/// If it is set, these tests are skipped with a note.
const SKIP: &str = "REDIAL_SKIP_PYTHON";

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The interpreter; `None` if these tests are to be skipped. Panics with what to install if there is none, because a test
/// that did not run must not look like one that passed.
pub(crate) fn find() -> Option<PathBuf> {
    if std::env::var_os(SKIP).is_some() {
        // Bypasses the capture of the test's output.
        let note = format!("NOT RUN: the tests with Python, because {SKIP} is set\n");
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return None;
    }
    let home = repository().join(".redial/python");
    let [installed, wanted] =
        [home.join("requirements.txt"), repository().join("tests/requirements.txt")].map(|file| fs::read(file).ok());
    assert!(
        installed == wanted,
        "the tests with Python cannot run: {} has not what tests/requirements.txt names. Run ./dev test, which installs it and \
         needs Python 3.10 or newer with venv (Debian, Ubuntu: python3 python3-venv), or set {SKIP}=1 to go without.",
        home.display()
    );
    Some(home.join("bin/python"))
}
