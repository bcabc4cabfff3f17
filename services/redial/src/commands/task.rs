//! `redial task`: submits one task with the request that any client sends.

mod agent_file;

use std::process::ExitCode;

use redial_proto::{
    AgentRef, ApiError, Code, SubmitStatus, TaskCode, TaskId, TaskResult, TaskSubmission, TaskView, subjects::Verb,
};
use redial_queue::Queue;

use crate::{
    cli::{self, TaskArgs},
    commands::watch::{self, Out, Printer},
    connect, exit, output,
    settings::Settings,
};

pub(crate) async fn run(settings: &Settings, args: TaskArgs) -> anyhow::Result<ExitCode> {
    let wait = args.wait;
    let submission = submission(args)?;
    let queue = connect::queue(settings).await?;
    let result: TaskResult =
        connect::request_as(&queue, submission.role(), Verb::TaskSubmit, &submission).await.map_err(connect::api)?;
    if !matches!(result.status, SubmitStatus::Accepted | SubmitStatus::Existing) {
        if settings.json() {
            output::json(&result)?;
            return Ok(exit::of(result.error.map_or(Code::Internal, |error| error.code)));
        }
        return Err(result.error.unwrap_or_else(|| ApiError::new(Code::Internal, "rejected without a reason")).into());
    }
    if let Some(warning) = &result.warning {
        output::note(format!("warning: {warning}"));
    }
    let Some(task) = result.task else { anyhow::bail!("the dispatcher accepted the task but did not name it") };
    if wait {
        return answer(settings, &queue, task).await;
    }
    if settings.json() {
        output::json(&result)?;
    } else {
        output::line(task.to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn submission(args: TaskArgs) -> anyhow::Result<TaskSubmission> {
    let input = input(args.input)?;
    if input.trim().is_empty() {
        return Err(ApiError::new(Code::InvalidValue, "the task is empty; allowed: a request in words").into());
    }
    let agent = match (args.agent, args.agent_file) {
        (_, Some(file)) => AgentRef::Inline(Box::new(agent_file::read(&file)?)),
        (name, None) => AgentRef::Name(name.unwrap_or_default()),
    };
    // A generated key makes it safe to retry the request when the reply was lost.
    let key = args.key.unwrap_or_else(|| format!("cli-{}", uuid::Uuid::new_v4()));
    Ok(TaskSubmission { conversation: args.conversation, key: Some(key), ..TaskSubmission::new(input, agent) })
}

/// Returns the text as it was given; from standard input without the line break at its end.
fn input(argument: String) -> std::io::Result<String> {
    let is_stdin = argument == "-";
    let text = cli::argument_or_stdin(argument)?;
    Ok(if is_stdin { text.trim_end().to_owned() } else { text })
}

/// Waits for the end. The timeline goes to standard error, so that standard output has nothing but the answer.
async fn answer(settings: &Settings, queue: &Queue, task: TaskId) -> anyhow::Result<ExitCode> {
    let printer = if settings.json() { Printer::Silent } else { Printer::text(Out::Stderr) };
    let Some(view) = watch::follow(settings, queue, task, printer).await? else { return Ok(watch::interrupted(task)) };
    print(settings, &view)?;
    Ok(watch::exit_code(&view))
}

fn print(settings: &Settings, view: &TaskView) -> anyhow::Result<()> {
    if settings.json() {
        return output::json(view);
    }
    if let Some(answer) = &view.answer {
        output::line(output::plain(answer))?;
    }
    if view.code == Some(TaskCode::AnswerCutOff) {
        output::note(view.message.as_deref().unwrap_or("the answer is cut off"));
    }
    Ok(())
}
