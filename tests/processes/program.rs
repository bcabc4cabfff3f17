//! Tests that need real processes: signals, exit codes, settings from three places, one trace over all processes.

mod access;
mod dev;
mod exit_codes;
mod forgetting;
mod health;
mod one_trace;
mod readme;
mod refused;
mod secrets;
mod settings;
mod supervision;

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Stdio};

use tokio::process::Command;

use crate::audit_commands::fixture::{Done, ended};

/// A folder for `redial dev`. If the test runs as root, Postgres runs as another user, who needs access.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
    folder
}

/// Runs `redial` in a folder, without those variables of this process that are settings of Redial.
async fn redial(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Done {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redial"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("REDIAL_") || name.starts_with("OTEL_")) {
        command.env_remove(name);
    }
    command.current_dir(folder).envs(environment.iter().copied()).args(arguments).stdin(Stdio::null());
    command.kill_on_drop(true);
    ended(command).await
}

/// Runs `redial` in an empty folder.
async fn run_alone(arguments: &[&str]) -> Done {
    redial(tempfile::tempdir().unwrap().path(), &[], arguments).await
}
