//! `redial tasks`: tasks, newest first.

use std::process::ExitCode;

use redial_proto::TaskView;
use redial_store::audit::TaskFilter;
use uuid::Uuid;

use crate::{
    cli::TasksArgs,
    connect,
    ids::{self, Short},
    list::{Field, Form, List},
    output,
    settings::Settings,
    table::{self, Cell},
};

const FIELDS: &[Field<TaskView>] = &[
    Field::whole("task", |task, form| form.ids.text(task.task.0).into()),
    Field::whole("state", |task, _| table::state(task.state.as_str())),
    Field::shortened("code", 6, |task, _| task.code.map(|code| code.to_string()).unwrap_or_default().into()),
    Field::shortened("agent", 6, |task, _| text(task.agent.as_deref())),
    Field::wide("conversation", |task, _| text(Some(&task.conversation))),
    Field::wide("turns", |task, _| task.turns.to_string().into()),
    Field::whole("submitted", |task, form| form.time(task.submitted_at).into()),
    Field::wide("total", |task, _| {
        let total = task.finished_at.map(|end| output::span((end - task.submitted_at).num_milliseconds()));
        total.unwrap_or_default().into()
    }),
    Field::shortened("input", 8, |task, _| text(Some(&task.input))),
    Field::wide("message", |task, _| text(task.message.as_deref())),
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
    let mut table = List::of_stdout(FIELDS, Form::new(wide, store.now().await?));
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
            if !wide {
                let ids: Vec<Uuid> = page.iter().map(|task| task.task.0).collect();
                table.form.ids = Short::of(&store, &ids).await?;
            }
            output::line(table.part(&page))?;
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

fn text(text: Option<&str>) -> Cell {
    output::one_line(text.unwrap_or_default(), TEXT).into()
}

#[cfg(test)]
mod tests {
    use redial_proto::{TaskState, Usage};

    use super::*;
    use crate::{list, timeline::sample};

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
        insta::assert_snapshot!(list::both(FIELDS, now, &tasks));
    }
}
