//! A Python with everything that tests need: that of `./dev setup`, or a virtual environment in `target/`. All tests share it.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
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
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(look).clone()
}

fn look() -> Option<PathBuf> {
    if std::env::var_os(SKIP).is_some() {
        // Bypasses the capture of the test's output.
        let note = format!("NOT RUN: the tests with Python, because {SKIP} is set\n");
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return None;
    }
    Some(ready().unwrap_or_else(|problem| {
        panic!(
            "the tests with Python cannot run: {problem}\nPlease install Python 3.10 or newer with venv (Debian, Ubuntu: \
             python3 python3-venv) and let pip download what tests/requirements.txt names, or set {SKIP}=1 to go without."
        )
    }))
}

fn ready() -> Result<PathBuf, String> {
    let wanted = repository().join("tests/requirements.txt");
    let of_setup = repository().join(".redial/python");
    if is_current(&of_setup, &wanted) {
        return Ok(of_setup.join("bin/python"));
    }
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    // One test process at a time installs; the others wait for it.
    let lock = std::fs::File::create(own.with_extension("lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let python = own.join("bin/python");
    if !is_current(&own, &wanted) {
        let system = PathBuf::from("python3");
        run(&system, &["-c", "import sys; assert sys.version_info >= (3, 10), sys.version"])?;
        run(&system, &["-m", "venv", "--clear", &own.display().to_string()])?;
        let file = wanted.display().to_string();
        run(&python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", &file])?;
        std::fs::copy(&wanted, own.join("requirements.txt")).map_err(|error| error.to_string())?;
    }
    Ok(python)
}

/// Whether exactly this was installed.
fn is_current(home: &Path, wanted: &Path) -> bool {
    let read = |path: &Path| std::fs::read(path).ok();
    home.join("bin/python").exists() && read(&home.join("requirements.txt")) == read(wanted)
}

fn run(program: &Path, arguments: &[&str]) -> Result<(), String> {
    let command = format!("{} {}", program.display(), arguments.join(" "));
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}
