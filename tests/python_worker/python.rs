//! A Python that has what the package in `clients/python` needs: that of `./dev setup`, or a virtual environment in `target/`.

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

impl Python {
    /// A command in the folder of the package, which it can import.
    pub(crate) fn set_up(command: &mut Command) {
        command.current_dir(package()).env("PYTHONPATH", package().join("src")).env("PYTHONDONTWRITEBYTECODE", "1");
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folder of the package.
pub(crate) fn package() -> PathBuf {
    repository().join("clients/python")
}

/// The folder of the example.
pub(crate) fn example() -> PathBuf {
    repository().join("examples/python-worker")
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
        let note = format!("NOT RUN: the tests of clients/python, because {SKIP} is set\n");
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return None;
    }
    let program = ready().unwrap_or_else(|problem| {
        panic!(
            "clients/python cannot be tested: {problem}\nPlease install Python 3.10 or newer with venv (Debian, Ubuntu: \
             python3 python3-venv) and let pip download what tests/requirements.txt names, or set {SKIP}=1 to go without."
        )
    });
    Some(Python { program })
}

fn ready() -> Result<PathBuf, String> {
    let of_setup = repository().join(".redial/python/bin/python");
    if has_packages(&of_setup) {
        return Ok(of_setup);
    }
    let system = PathBuf::from("python3");
    run(&system, &["-c", "import sys; assert sys.version_info >= (3, 10), sys.version"])?;
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-client");
    let own = home.join("bin/python");
    if !has_packages(&own) {
        run(&system, &["-m", "venv", "--clear", &home.display().to_string()])?;
        let requirements = package().join("tests/requirements.txt").display().to_string();
        run(&own, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", &requirements])?;
        run(&own, &["-c", PACKAGES])?;
    }
    Ok(own)
}

const PACKAGES: &str = "import httpx, mypy, nats.js, pydantic";

fn has_packages(python: &Path) -> bool {
    run(python, &["-c", PACKAGES]).is_ok()
}

fn run(program: &Path, arguments: &[&str]) -> Result<(), String> {
    let command = format!("{} {}", program.display(), arguments.join(" "));
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}
