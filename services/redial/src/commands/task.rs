//! `redial task`: one task, by the same request that any client sends.

mod agent_file;

use std::{io::Read, process::ExitCode};

use redial_proto::{AgentRef, ApiError, Code, SubmitStatus, TaskId, TaskResult, TaskSubmission, TaskView, subjects};
use redial_queue::Queue;

use crate::{
    cli::TaskArgs,
    commands::{
        REQUEST, api, queue,
        watch::{Out, Teller, code, follow, goes_on},
    },
    exit, output,
    settings::Settings,
};

pub(crate) async fn run(settings: &Settings, args: TaskArgs) -> anyhow::Result<ExitCode> {
    let wait = args.wait;
    let submission = submission(args)?;
    let queue = queue(settings).await?;
    let result = submit(&queue, &submission).await?;
    if !matches!(result.status, SubmitStatus::Accepted | SubmitStatus::Existing) {
        if settings.json() {
            output::json(&result)?;
            return Ok(ExitCode::from(exit::FAILED));
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
        output::line(task.to_string());
    }
    Ok(ExitCode::SUCCESS)
}

fn submission(args: TaskArgs) -> anyhow::Result<TaskSubmission> {
    let input = if args.input == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        text.trim_end().to_owned()
    } else {
        args.input
    };
    if input.trim().is_empty() {
        return Err(ApiError::new(Code::InvalidValue, "the task is empty; allowed: what you want, in words").into());
    }
    let agent = match (args.agent, args.agent_file) {
        (_, Some(file)) => AgentRef::Inline(Box::new(agent_file::read(&file)?)),
        (name, None) => AgentRef::Name(name.unwrap_or_default()),
    };
    // A key of its own makes it safe to send the request again when the answer was lost.
    let key = args.key.unwrap_or_else(|| format!("cli-{}", uuid::Uuid::new_v4()));
    Ok(TaskSubmission { input, agent, conversation: args.conversation, key: Some(key), tenant: args.tenant })
}

/// Submits, a second time if the first answer did not come: the key makes that the same task.
async fn submit(queue: &Queue, submission: &TaskSubmission) -> anyhow::Result<TaskResult> {
    match queue.request(subjects::TASK_SUBMIT, submission, REQUEST).await {
        Err(error) if error.is_retryable() => {
            tracing::warn!(%error, "submitting again");
            queue.request(subjects::TASK_SUBMIT, submission, REQUEST).await.map_err(api)
        }
        done => done.map_err(api),
    }
}

/// Waits for the end: the story on standard error, the answer alone on standard output.
async fn answer(settings: &Settings, queue: &Queue, task: TaskId) -> anyhow::Result<ExitCode> {
    let teller = if settings.json() { Teller::Silent } else { Teller::story(Out::Stderr) };
    let Some(view) = follow(queue, task, teller).await? else { return Ok(goes_on(task)) };
    print(settings, &view)?;
    Ok(code(&view))
}

fn print(settings: &Settings, view: &TaskView) -> anyhow::Result<()> {
    if settings.json() {
        return output::json(view);
    }
    if let Some(answer) = &view.answer {
        output::line(output::plain(answer));
    }
    Ok(())
}
