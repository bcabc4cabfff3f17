//! Tests that need real processes: signals, exit codes, settings from three places, one trace over all processes.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking, too")]

#[path = "processes/access.rs"]
mod access;
#[path = "processes/checking.rs"]
mod checking;
#[path = "processes/dev.rs"]
mod dev;
#[path = "processes/draining.rs"]
mod draining;
#[path = "processes/exit_codes.rs"]
mod exit_codes;
#[path = "processes/forgetting.rs"]
mod forgetting;
#[path = "processes/one_trace.rs"]
mod one_trace;
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "python_worker/python.rs"]
mod python;
#[path = "processes/readme.rs"]
mod readme;
#[path = "processes/secrets.rs"]
mod secrets;
#[path = "processes/settings.rs"]
mod settings;
#[path = "shared/python.rs"]
mod shared;
#[path = "processes/supervision.rs"]
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

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn scripted_worker() {
    redial_testkit::run_scripted_worker().await;
}
