//! `redial tasks`: tasks, newest first.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use redial_proto::TaskView;
use redial_store::audit::TaskFilter;
use uuid::Uuid;

use crate::{
    cli::TasksArgs,
    connect,
    ids::{self, Short},
    output,
    settings::Settings,
    table::{self, Cell, Column, Paper, Table},
};

const NARROW: [Column; 6] = [
    Column::whole("task"),
    Column::whole("state"),
    Column::shortened("code", 6),
    Column::shortened("agent", 6),
    Column::whole("submitted"),
    Column::shortened("input", 8),
];
const WIDE: [Column; 10] = [
    Column::whole("task"),
    Column::whole("state"),
    Column::whole("code"),
    Column::whole("agent"),
    Column::whole("conversation"),
    Column::whole("turns"),
    Column::whole("submitted"),
    Column::whole("total"),
    Column::whole("input"),
    Column::whole("message"),
];
/// Characters of a text that are shown.
const TEXT: usize = 200;
/// Tasks that are read at once, each with its input and its answer.
const PAGE: u32 = 100;

pub(crate) async fn run(settings: &Settings, args: TasksArgs) -> anyhow::Result<ExitCode> {
    let store = connect::store(settings).await?;
    let before = ids::task(&store, args.before.as_ref()).await?;
    let TasksArgs { state, conversation, agent, since, until, limit, wide, .. } = args;
    let tenant = settings.only_tenant()?;
    let mut filter = TaskFilter { state, conversation, tenant, agent, since, until, before };
    let mut table = Table::new(Paper::of_stdout(wide), if wide { &WIDE } else { &NARROW });
    let now = store.now().await?;
    let (mut left, mut last) = (limit, None);
    while left > 0 {
        let wanted = left.min(PAGE);
        let page = store.tasks(&filter, wanted).await?;
        let Some(end) = page.last() else { break };
        (filter.before, last) = (Some(end.task), Some(end.task));
        left -= wanted;
        if settings.json() {
            page.iter().try_for_each(output::json)?;
        } else {
            let ids: Vec<Uuid> = page.iter().map(|task| task.task.0).collect();
            let short = if wide { Short::whole() } else { Short::of(&store, &ids).await? };
            output::line(table.part(&rows(&page, wide, &short, now)))?;
        }
        if page.len() < wanted as usize {
            break;
        }
    }
    match last {
        None => output::note("no task on record matches"),
        Some(last) if left == 0 && !store.tasks(&filter, 1).await?.is_empty() => {
            output::note(format!("there are more: add --before {last}, or a greater --limit"));
        }
        Some(_) => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn rows(tasks: &[TaskView], wide: bool, short: &Short, now: DateTime<Utc>) -> Vec<Vec<Cell>> {
    tasks.iter().map(|task| if wide { wide_row(task) } else { narrow_row(task, short, now) }).collect()
}

fn narrow_row(task: &TaskView, short: &Short, now: DateTime<Utc>) -> Vec<Cell> {
    vec![
        short.text(task.task.0).into(),
        table::state(task.state.as_str()),
        code(task),
        text(task.agent.as_deref()),
        output::ago(task.submitted_at, now).into(),
        text(Some(&task.input)),
    ]
}

fn wide_row(task: &TaskView) -> Vec<Cell> {
    let total = task.finished_at.map(|end| output::span((end - task.submitted_at).num_milliseconds()));
    vec![
        task.task.to_string().into(),
        table::state(task.state.as_str()),
        code(task),
        text(task.agent.as_deref()),
        text(Some(&task.conversation)),
        task.turns.to_string().into(),
        output::time(task.submitted_at).into(),
        total.unwrap_or_default().into(),
        text(Some(&task.input)),
        text(task.message.as_deref()),
    ]
}

fn code(task: &TaskView) -> Cell {
    task.code.map(|code| code.to_string()).unwrap_or_default().into()
}

fn text(text: Option<&str>) -> Cell {
    output::one_line(text.unwrap_or_default(), TEXT).into()
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
        let tasks = [running, ended];
        let now = tasks[0].submitted_at + chrono::TimeDelta::minutes(3);
        let narrow = rows(&tasks, false, &Short::whole(), now);
        insta::assert_snapshot!("narrow", Table::new(Paper::test(Some(80)), &NARROW).part(&narrow));
        let wide = rows(&tasks, true, &Short::whole(), now);
        insta::assert_snapshot!("wide", Table::new(Paper::test(None), &WIDE).part(&wide));
    }
}
