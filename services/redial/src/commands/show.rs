//! `redial show`: one task or call whole.

mod mermaid;
pub(super) mod pretty;
pub(super) mod record;
mod task;
#[cfg(test)]
mod tests;
mod timeline;

use std::process::ExitCode;

use redial_proto::{ApiError, CallId, Code, TaskId};
use uuid::Uuid;

use crate::{
    commands::{nothing, store, story::Page},
    output,
    settings::Settings,
};

pub(crate) async fn run(settings: &Settings, id: Uuid, mermaid: bool) -> anyhow::Result<ExitCode> {
    let store = store(settings).await?;
    let now = chrono::Utc::now();
    if let Some(record) = record::load(&store, TaskId(id)).await? {
        if mermaid {
            output::line(mermaid::render(&record.task, &record.steps, &record.messages));
        } else if settings.json() {
            output::json(&record)?;
        } else {
            output::line(task::render(&record, Page::of_stdout(), now));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let Some(record) = store.record(CallId(id)).await? else { return Err(nothing(id)) };
    if mermaid {
        let message = format!("{id} is a call; allowed with --mermaid: a task");
        return Err(ApiError::new(Code::InvalidValue, message).into());
    }
    if settings.json() {
        output::json(&record)?;
    } else {
        output::line(timeline::render(&record, now));
    }
    Ok(ExitCode::SUCCESS)
}
