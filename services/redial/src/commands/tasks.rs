//! `redial tasks`: tasks, newest first.

use std::process::ExitCode;

use redial_proto::TaskView;
use redial_store::audit::TaskFilter;

use crate::{cli::TasksArgs, connect, output, settings::Settings};

const HEAD: [&str; 9] = ["task", "state", "code", "agent", "conversation", "turns", "submitted", "total", "input"];
/// Characters of a text that are shown.
const INPUT: usize = 60;
const NAME: usize = 40;

pub(crate) async fn run(settings: &Settings, args: TasksArgs) -> anyhow::Result<ExitCode> {
    let TasksArgs { state, conversation, tenant, agent, since, limit, before } = args;
    let filter = TaskFilter { state, conversation, tenant, agent, since, before };
    // One more than the limit, to know whether there are more.
    let mut tasks = connect::store(settings).await?.tasks(&filter, limit + 1).await?;
    let more = tasks.len() > limit as usize;
    tasks.truncate(limit as usize);
    if settings.json() {
        tasks.iter().try_for_each(output::json)?;
    } else if !tasks.is_empty() {
        output::line(render(&tasks));
    }
    match tasks.last() {
        None => output::note("no task on record matches"),
        Some(last) if more => output::note(format!("there are more: add --before {}", last.task)),
        Some(_) => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn render(tasks: &[TaskView]) -> String {
    let row = |task: &TaskView| {
        vec![
            task.task.to_string(),
            task.state.to_string(),
            task.code.map(|code| code.to_string()).unwrap_or_default(),
            task.agent.as_deref().map(|agent| output::one_line(agent, NAME)).unwrap_or_default(),
            output::one_line(&task.conversation, NAME),
            task.turns.to_string(),
            output::time(task.submitted_at),
            task.finished_at.map(|end| output::span((end - task.submitted_at).num_milliseconds())).unwrap_or_default(),
            output::one_line(&task.input, INPUT),
        ]
    };
    output::table(&HEAD, tasks.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use redial_proto::{TaskState, Usage};

    use super::*;
    use crate::timeline::sample;

    #[test]
    fn one_line_for_each_task() {
        let ended = sample::report().task;
        let running = TaskView {
            agent: None,
            conversation: "0193\u{1b}[31m".to_owned(),
            state: TaskState::Running,
            code: None,
            usage: Usage::default(),
            finished_at: None,
            input: "What is the weather\nin Paris? ".repeat(10),
            ..ended.clone()
        };
        insta::assert_snapshot!(render(&[running, ended]));
    }
}
