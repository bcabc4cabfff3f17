//! `redial show`: one call whole.

mod pretty;
#[cfg(test)]
mod tests;
mod timeline;

use std::process::ExitCode;

use redial_proto::{ApiError, CallId, Code};

use crate::{commands::store, output, settings::Settings};

pub(crate) async fn run(settings: &Settings, call: CallId) -> anyhow::Result<ExitCode> {
    let Some(record) = store(settings).await?.record(call).await? else {
        return Err(ApiError::new(Code::CallNotFound, format!("no call {call} is on record")).into());
    };
    if settings.json() {
        output::json(&record)?;
    } else {
        output::line(timeline::render(&record, chrono::Utc::now()));
    }
    Ok(ExitCode::SUCCESS)
}
