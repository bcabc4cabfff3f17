//! Telemetry is global to a process and reads the environment, so every case runs in its own process: this test binary
//! with one of its ignored tests.

use std::process::{Output, Stdio};

/// Runs the ignored test `name` with exactly these `OTEL_*` (and other) variables added.
pub(crate) async fn run(name: &str, variables: &[(&str, &str)]) -> Output {
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("OTEL_") {
            child.env_remove(key);
        }
    }
    child.args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"]);
    child.envs(variables.iter().copied()).stdin(Stdio::null()).kill_on_drop(true);
    let output = child.output().await.unwrap();
    assert!(output.status.success(), "{name}: {}", everything(&output));
    output
}

pub(crate) fn everything(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Returns the rest of the line of stdout that starts with `label`.
pub(crate) fn said<'a>(output: &'a str, label: &str) -> &'a str {
    let found = output.lines().find_map(|line| line.split_once(label).map(|(_, rest)| rest));
    found.unwrap_or_else(|| panic!("no {label:?} in {output}"))
}
