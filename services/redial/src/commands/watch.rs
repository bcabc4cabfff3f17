//! `redial watch`: what happens in a task, while it happens.

mod follow;
mod live;
mod printer;
mod waits;

use std::process::ExitCode;

use redial_proto::{
    ApiError, CallId, CallView, Code, GetRequest, Language, TaskId, TaskState, TaskView, subjects::Verb,
};
use redial_queue::Queue;

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
    match follow(settings, &queue, task, printer).await {
        Ok(Some(view)) => Ok(exit_code(&view)),
        Ok(None) => Ok(interrupted(task)),
        Err(error) => Err(if is_call(&queue, task, &error).await { ids::is_a_call(task.0).into() } else { error }),
    }
}

/// Says whether a call has the id that no task has.
async fn is_call(queue: &Queue, id: TaskId, error: &anyhow::Error) -> bool {
    let is_unknown = error.downcast_ref::<ApiError>().is_some_and(|error| error.code == Code::TaskNotFound);
    let get = GetRequest { call: CallId(id.0), language: Language::default() };
    is_unknown && connect::request::<CallView>(queue, Verb::CallGet, &get).await.is_ok()
}

/// Returns success only if the task has an answer that no limit forced.
pub(super) fn exit_code(task: &TaskView) -> ExitCode {
    if task.state == TaskState::Succeeded { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) }
}

/// Returns the exit code after Ctrl-C, which does not stop the task.
pub(super) fn interrupted(task: TaskId) -> ExitCode {
    output::note(format!("the task continues: redial watch {task}"));
    ExitCode::from(130)
}
