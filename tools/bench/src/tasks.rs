//! Tasks of five turns: a scripted model calls `echo` four times, then answers.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, TryStreamExt, stream};
use redial_proto::{AgentRef, AgentSpec, SubmitStatus, TaskResult, TaskSubmission, subjects::Verb};
use redial_queue::Queue;

use crate::{database::Database, load::PATIENCE};

const TURNS: u32 = 5;
/// Model turns and tool calls of one task.
pub(crate) const CALLS: u32 = TURNS + TURNS - 1;
/// Submissions under way at once.
const AT_ONCE: usize = 64;

const MODELS: &str = "[models.scripted]\nprovider = \"script\"\nscript = \"script.toml\"\n";

/// Writes the model's files; returns the flag of a worker that plays it.
pub(crate) fn model(folder: &Path) -> anyhow::Result<String> {
    let file = folder.join("models.toml");
    fs::write(&file, MODELS)?;
    fs::write(folder.join("script.toml"), script())?;
    Ok(format!("--models={}", file.display()))
}

fn script() -> String {
    let calls = (0..TURNS - 1).map(|results| {
        let text = "x".repeat(150);
        format!(
            "[[rule]]\nwhen = {{ results = {results} }}\n[[rule.calls]]\nname = \"echo\"\n\
             arguments = {{ step = {results}, text = \"{text}\" }}\n\n"
        )
    });
    let answer = format!("[[rule]]\nwhen = {{ results = {} }}\ntext = \"All steps are done.\"\n", TURNS - 1);
    calls.chain([answer]).collect()
}

/// Tasks per second, from the first submission to the last answer on record.
pub(crate) async fn throughput(queue: &Queue, database: &Database, tasks: u32) -> anyhow::Result<f64> {
    let before = database.tasks_answered(TURNS).await?;
    let began = Instant::now();
    stream::iter((0..tasks).map(|n| submit(queue, n))).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    while database.any_live_task().await? {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = began.elapsed();
    let answered = database.tasks_answered(TURNS).await? - before;
    anyhow::ensure!(answered == u64::from(tasks), "{answered} of {tasks} tasks were answered after {TURNS} turns");
    Ok(f64::from(tasks) / took.as_secs_f64())
}

async fn submit(queue: &Queue, n: u32) -> anyhow::Result<()> {
    let agent = AgentSpec {
        system: "Work through the steps, one call at a time.".to_owned(),
        tools: vec!["echo".to_owned()],
        ..AgentSpec::new("scripted")
    };
    let submission = TaskSubmission::new(format!("Do all steps of job {n}."), AgentRef::Inline(Box::new(agent)));
    let result: TaskResult = queue.ask_as(submission.role(), Verb::TaskSubmit, &submission, PATIENCE).await?;
    match (result.status, result.error) {
        (SubmitStatus::Accepted, _) => Ok(()),
        (_, Some(error)) => Err(error.into()),
        (status, None) => anyhow::bail!("a submission ended as {status:?}"),
    }
}
