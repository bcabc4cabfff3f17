//! `redial watch`: what happens to a task, while it happens.

mod follow;
mod live;
mod teller;

use std::process::ExitCode;

use redial_proto::{TaskId, TaskState, TaskView};

pub(super) use self::{
    follow::follow,
    teller::{Out, Teller},
};
use crate::{commands::queue, exit, output, settings::Settings};

pub(crate) async fn run(settings: &Settings, task: TaskId) -> anyhow::Result<ExitCode> {
    let queue = queue(settings).await?;
    let teller = if settings.json() { Teller::Json } else { Teller::story(Out::Stdout) };
    Ok(match follow(&queue, task, teller).await? {
        Some(view) => code(&view),
        None => goes_on(task),
    })
}

/// 0 only if there is an answer that no limit forced.
pub(super) fn code(task: &TaskView) -> ExitCode {
    if task.state == TaskState::Succeeded { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) }
}

/// The user went away; the task does not care.
pub(super) fn goes_on(task: TaskId) -> ExitCode {
    output::note(format!("the task goes on: redial watch {task}"));
    ExitCode::from(130)
}
