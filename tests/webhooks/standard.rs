//! Python's library of Standard Webhooks, in a virtual environment in `target/`: it verifies what a receiver got.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use redial_testkit::Request;
use serde_json::json;

/// If it is set, the verification is skipped with a note.
const SKIP: &str = "REDIAL_SKIP_PYTHON";

const VERIFY: &str = "
import json, sys
from standardwebhooks import Webhook, WebhookVerificationError
given = json.load(sys.stdin)
try:
    Webhook(given['secret']).verify(given['body'], given['headers'])
    print('verified')
except WebhookVerificationError as error:
    print('refused', error)
";

/// Whether the library takes a request for one that was signed with this secret; `None` without the library.
pub(crate) fn verifies(secret: &str, request: &Request) -> Option<bool> {
    let python = find()?;
    let headers: serde_json::Map<_, _> =
        request.headers.iter().map(|(name, value)| (name.to_lowercase(), json!(value))).collect();
    let body = String::from_utf8(request.body.clone()).unwrap();
    let given = json!({ "secret": secret, "headers": headers, "body": body }).to_string();
    let mut child =
        Command::new(&python).args(["-c", VERIFY]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(given.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && (said.starts_with("verified") || said.starts_with("refused")), "{said}");
    Some(said.starts_with("verified"))
}

fn find() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let look = || {
        if std::env::var_os(SKIP).is_some() {
            // Bypasses the capture of the test's output.
            let note = format!("NOT RUN: the verification of webhooks by Python, because {SKIP} is set\n");
            std::io::stderr().write_all(note.as_bytes()).unwrap();
            return None;
        }
        let python = ready().unwrap_or_else(|problem| {
            panic!(
                "signatures of webhooks cannot be verified: {problem}\nPlease install Python 3.10 or newer with venv (Debian, \
                 Ubuntu: python3 python3-venv) and let pip download standardwebhooks, or set {SKIP}=1 to go without."
            )
        });
        Some(python)
    };
    FOUND.get_or_init(look).clone()
}

fn ready() -> Result<PathBuf, String> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("standardwebhooks");
    let python = home.join("bin/python");
    if run(&python, &["-c", "import standardwebhooks"]).is_err() {
        run(Path::new("python3"), &["-m", "venv", "--clear", &home.display().to_string()])?;
        let package = "standardwebhooks==1.1.0";
        run(&python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package])?;
    }
    run(&python, &["-c", "import standardwebhooks"]).map(|()| python)
}

fn run(program: &Path, arguments: &[&str]) -> Result<(), String> {
    let command = format!("{} {}", program.display(), arguments.join(" "));
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}
