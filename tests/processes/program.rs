//! Tests that need real processes: signals, exit codes, settings from three places, one trace over all processes.

mod access;
mod checking;
mod dev;
mod draining;
mod exit_codes;
mod forgetting;
mod one_trace;
mod readme;
mod secrets;
mod settings;
mod supervision;

use std::{path::Path, process::Stdio};

use tokio::process::Command;

/// The result of a run of the program.
struct Run {
    code: i32,
    out: String,
    err: String,
}

/// Runs `redial` in a folder, without those variables of this process that are settings of Redial.
async fn redial(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redial"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("REDIAL_") || name.starts_with("OTEL_")) {
        command.env_remove(name);
    }
    command.current_dir(folder).envs(environment.iter().copied()).args(arguments).stdin(Stdio::null());
    let output = command.kill_on_drop(true).output().await.unwrap();
    Run {
        code: output.status.code().expect("it ends by itself"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
