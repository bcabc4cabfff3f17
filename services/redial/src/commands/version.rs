//! `redial version`.

use std::process::ExitCode;

use redial_proto::CONTRACT;

use crate::{output, settings::Settings};

pub(crate) fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    if settings.json() {
        output::json(&serde_json::json!({ "version": version, "contract": CONTRACT }))?;
    } else {
        output::line(format!("redial {version}"))?;
        output::line(format!("contract between processes: {CONTRACT}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
