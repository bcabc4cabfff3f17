//! `redial watch`: what happens in a task, while it happens.

mod follow;
mod live;
mod printer;
mod waits;

use std::process::ExitCode;

use redial_proto::{TaskId, TaskState, TaskView};

pub(super) use self::{
    follow::follow,
    printer::{Out, Printer},
};
use crate::{
    connect, exit,
    ids::{self, IdText, Of},
    output,
    settings::Settings,
};

pub(crate) async fn run(settings: &Settings, task: &IdText) -> anyhow::Result<ExitCode> {
    let task = TaskId(ids::resolve(settings, task, Of::Task).await?);
    let queue = connect::queue(settings).await?;
    let printer = if settings.json() { Printer::Json } else { Printer::text(Out::Stdout) };
    Ok(match follow(settings, &queue, task, printer).await? {
        Some(view) => exit_code(&view),
        None => interrupted(task),
    })
}

/// Success only if the task has an answer that no limit forced.
pub(super) fn exit_code(task: &TaskView) -> ExitCode {
    if task.state == TaskState::Succeeded { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) }
}

/// The exit code after Ctrl-C, which does not stop the task.
pub(super) fn interrupted(task: TaskId) -> ExitCode {
    output::note(format!("the task continues: redial watch {task}"));
    ExitCode::from(130)
}
