//! `redial version`.

use std::process::ExitCode;

use redial_proto::{CONTRACT, OLDEST_CONTRACT};
use redial_store::RECORDS;

use crate::{output, settings::Settings};

pub(crate) fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    if settings.json() {
        output::json(&serde_json::json!({
            "version": version,
            "contract": { "newest": CONTRACT, "oldest": OLDEST_CONTRACT },
            "records": RECORDS,
        }))?;
    } else {
        output::line(format!("redial {version}"))?;
        output::line(format!("contract between processes: {CONTRACT}, works with {OLDEST_CONTRACT} to {CONTRACT}"))?;
        output::line(format!("records: {RECORDS}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
