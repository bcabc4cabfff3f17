//! A Python that can import nats-py: the one on the PATH, or a virtual environment in `target/`.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// If it is set, these tests are skipped with a note.
const SKIP: &str = "REDIAL_SKIP_PYTHON";

/// An interpreter.
#[derive(Clone)]
pub(crate) struct Python {
    pub(crate) program: PathBuf,
}

/// The folder of the example.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/python-worker").canonicalize().unwrap()
}

/// The interpreter; `None` if these tests are to be skipped. Panics with what to install if there is none, because a test
/// that did not run must not look like one that passed.
pub(crate) fn find() -> Option<Python> {
    static FOUND: OnceLock<Option<Python>> = OnceLock::new();
    FOUND.get_or_init(look).clone()
}

fn look() -> Option<Python> {
    if std::env::var_os(SKIP).is_some() {
        // Bypasses the capture of the test's output.
        let note = format!("NOT RUN: the tests of examples/python-worker, because {SKIP} is set\n");
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return None;
    }
    let program = ready().unwrap_or_else(|problem| {
        panic!(
            "examples/python-worker cannot be tested: {problem}\nPlease install Python 3.10 or newer with venv \
             (Debian, Ubuntu: python3 python3-venv) and let pip download nats-py, or set {SKIP}=1 to go without."
        )
    });
    Some(Python { program })
}

fn ready() -> Result<PathBuf, String> {
    let system = PathBuf::from("python3");
    run(&system, &["-c", "import sys; assert sys.version_info >= (3, 10), sys.version"])?;
    if has_nats(&system) {
        return Ok(system);
    }
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-worker");
    let own = home.join("bin/python");
    if !has_nats(&own) {
        run(&system, &["-m", "venv", "--clear", &home.display().to_string()])?;
        let requirements = folder().join("requirements.txt").display().to_string();
        run(&own, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", &requirements])?;
        run(&own, &["-c", "import nats"])?;
    }
    Ok(own)
}

fn has_nats(python: &Path) -> bool {
    run(python, &["-c", "import nats.js"]).is_ok()
}

fn run(program: &Path, arguments: &[&str]) -> Result<(), String> {
    let command = format!("{} {}", program.display(), arguments.join(" "));
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}
