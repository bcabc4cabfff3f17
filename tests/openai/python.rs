//! A Python with the official client, in a virtual environment in `target/`.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// If it is set, these tests are skipped with a note.
const SKIP: &str = "REDIAL_SKIP_PYTHON";

/// The folder of the scripts.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/openai").canonicalize().unwrap()
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
        let note = format!("NOT RUN: the tests with OpenAI's client, because {SKIP} is set\n");
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return None;
    }
    Some(ready().unwrap_or_else(|problem| {
        panic!(
            "the tests with OpenAI's client cannot run: {problem}\nPlease install Python 3.10 or newer with venv (Debian, \
             Ubuntu: python3 python3-venv) and let pip download openai, or set {SKIP}=1 to go without."
        )
    }))
}

fn ready() -> Result<PathBuf, String> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openai");
    let own = home.join("bin/python");
    let requirements = folder().join("requirements.txt");
    let wanted = std::fs::read_to_string(&requirements).map_err(|error| error.to_string())?;
    let has = format!("import openai; assert 'openai==' + openai.__version__ == {:?}", wanted.trim());
    if run(&own, &["-c", &has]).is_err() {
        let system = PathBuf::from("python3");
        run(&system, &["-c", "import sys; assert sys.version_info >= (3, 10), sys.version"])?;
        run(&system, &["-m", "venv", "--clear", &home.display().to_string()])?;
        let requirements = requirements.display().to_string();
        run(&own, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", &requirements])?;
        run(&own, &["-c", &has])?;
    }
    Ok(own)
}

fn run(program: &Path, arguments: &[&str]) -> Result<(), String> {
    let command = format!("{} {}", program.display(), arguments.join(" "));
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}
