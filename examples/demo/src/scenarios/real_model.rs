//! A scenario with a real model, of which nothing is known in advance. It tells what the model did, always ends in
//! bounded time, and checks only what holds for every model: a valid conversation, a record that replays to the same
//! decisions, and no side effect that happened twice.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use redial_proto::{Role, TaskId};

use super::corrected_arguments;
use crate::{output, stack::Stack, task::Task};

/// Between two looks at the tasks.
const LOOK: Duration = Duration::from_secs(1);
/// A line of progress comes at least this often.
const PROGRESS: Duration = Duration::from_secs(10);
/// How long cancelled tasks may take to end.
const STOP: Duration = Duration::from_secs(30);

/// One task of the scenario.
struct Followed {
    id: TaskId,
    /// Of all tasks, counted from 1.
    number: usize,
    task: Option<Task>,
    took: Duration,
    cancelled: bool,
}

/// Gives the agent these requests; returns a line about all of them and one about each.
pub(super) async fn run(
    stack: &mut Stack,
    agent: &str,
    inputs: &[String],
    limit: Duration,
) -> anyhow::Result<Vec<String>> {
    let began = Instant::now();
    let mut tasks = Vec::new();
    for (input, number) in inputs.iter().zip(1..) {
        let id = stack.submit_task(agent, input).await?;
        tasks.push(Followed { id, number, task: None, took: Duration::ZERO, cancelled: false });
    }
    stack.shown_task = stack.shown_task.or(tasks.first().map(|task| task.id));
    follow(stack, &mut tasks, began, began + limit).await?;
    let late: Vec<TaskId> = tasks.iter().filter(|task| !task.has_ended()).map(|task| task.id).collect();
    if !late.is_empty() {
        output::error_line(format!(
            "  {} s are over: cancelling {} of {} tasks",
            limit.as_secs(),
            late.len(),
            tasks.len()
        ));
        for id in late {
            stack.cli.run(&["cancel", &id.to_string()]).await?;
        }
        for task in tasks.iter_mut().filter(|task| !task.has_ended()) {
            task.cancelled = true;
        }
        follow(stack, &mut tasks, began, Instant::now() + STOP).await?;
    }
    check(stack, &tasks).await?;
    Ok(report(&tasks, limit))
}

/// Looks at the tasks until all have ended, or until a point in time, and prints what changed.
async fn follow(stack: &Stack, tasks: &mut [Followed], began: Instant, until: Instant) -> anyhow::Result<()> {
    let (mut told, mut told_at) = (String::new(), Instant::now());
    while tasks.iter().any(|task| !task.has_ended()) && Instant::now() < until {
        for task in tasks.iter_mut().filter(|task| !task.has_ended()) {
            task.task = Some(stack.show_task(task.id).await?);
            task.took = began.elapsed();
        }
        let now = tasks.iter().map(Followed::progress).collect::<Vec<_>>().join("; ");
        if now != told || told_at.elapsed() >= PROGRESS {
            output::error_line(format!("  {:>4} s  {now}", began.elapsed().as_secs()));
            (told, told_at) = (now, Instant::now());
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

impl Followed {
    fn has_ended(&self) -> bool {
        self.task.as_ref().is_some_and(Task::has_ended)
    }

    fn progress(&self) -> String {
        let Some(task) = &self.task else { return format!("task {} submitted", self.number) };
        let view = &task.view;
        format!("task {} {}, {} turns, {} tool calls", self.number, view.state, view.turns, view.tool_calls)
    }

    fn has_an_answer_of_the_model(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.messages_of(Role::Assistant).is_empty())
    }
}

async fn check(stack: &Stack, tasks: &[Followed]) -> anyhow::Result<()> {
    for task in tasks {
        let Some(record) = task.task.as_ref().filter(|record| record.has_ended()) else {
            bail!("task {} had not ended {} s after it was cancelled", task.id, STOP.as_secs());
        };
        record.check()?;
        stack.cli.run(&["replay", &task.id.to_string()]).await?.expect_success()?;
    }
    let records: Vec<Task> = tasks.iter().filter_map(|task| task.task.clone()).collect();
    corrected_arguments::check_booked_once(stack, &records)?;
    if !tasks.iter().any(Followed::has_an_answer_of_the_model) {
        let why = records.iter().find_map(|record| record.view.message.clone()).unwrap_or_default();
        bail!("the model answered nothing: {why}");
    }
    Ok(())
}

fn report(tasks: &[Followed], limit: Duration) -> Vec<String> {
    let answered = tasks.iter().filter(|task| task.task.as_ref().is_some_and(|task| !task.answer().is_empty())).count();
    let mut lines =
        vec![format!("{answered} of {} tasks have an answer; every conversation is valid and replays", tasks.len())];
    for task in tasks {
        let what = task.task.as_ref().map(Task::summary).unwrap_or_default();
        let cancelled = if task.cancelled { format!("; cancelled after {} s", limit.as_secs()) } else { String::new() };
        lines.push(format!("task {} after {:.0} s: {what}{cancelled}", task.number, task.took.as_secs_f64()));
    }
    lines
}

/// Ensures that a limit leaves time for at least one answer.
pub(crate) fn check_limit(seconds: u64) -> anyhow::Result<Duration> {
    ensure!((5..=3600).contains(&seconds), "--scene-seconds is {seconds}; allowed: 5 to 3600");
    Ok(Duration::from_secs(seconds))
}
