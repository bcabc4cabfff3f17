//! `redial show`: one task or call with everything on record about it.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, process::ExitCode};

use chrono::{DateTime, Utc};
use redial_proto::{ApiError, CallId, Code, TaskCode, TaskId, TaskInput, TaskState, TaskStep, WaitReason};
use redial_store::{Store, audit::CallAudit};
use redial_views::TaskAudit;

use crate::{
    connect,
    ids::{self, IdText, Of},
    output,
    settings::Settings,
    timeline::{Entry, Event, Ink, Page, Printed, TaskTimeline, call, diagram, totals},
};

pub(crate) async fn run(settings: &Settings, id: &IdText, mermaid: bool) -> anyhow::Result<ExitCode> {
    let store = connect::store(settings).await?;
    let id = ids::in_store(&store, id, Of::Any).await?;
    let now = Utc::now();
    if let Some(record) = TaskAudit::load(&store, TaskId(id)).await? {
        if mermaid {
            output::line(task_diagram(&record))?;
        } else if settings.json() {
            output::json(&record)?;
        } else {
            output::line(task_text(&record, Page::of_stdout(), now))?;
            note_pending(&store, &record.calls).await?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let Some(record) = store.record(CallId(id)).await? else { return Err(connect::not_found(id)) };
    if mermaid {
        let message = format!("{id} is a call; allowed with --mermaid: a task");
        return Err(ApiError::new(Code::InvalidValue, message).into());
    }
    if settings.json() {
        output::json(&record)?;
    } else {
        output::line(call_text(&record, Page::of_stdout(), now))?;
        note_pending(&store, std::slice::from_ref(&record)).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Notes what waits for an operator: a call that no worker may serve does, if a worker has brought its tool.
async fn note_pending(store: &Store, calls: &[CallAudit]) -> anyhow::Result<()> {
    let unserved = |record: &&CallAudit| record.waits.is_some_and(|waits| waits.reason == WaitReason::Worker);
    let tools: BTreeSet<&str> = calls.iter().filter(unserved).map(|record| record.line.tool.as_str()).collect();
    if tools.is_empty() {
        return Ok(());
    }
    for pending in store.pending_tools().await?.iter().filter(|pending| tools.contains(pending.tool.as_str())) {
        let (identity, tool) = (&pending.identity, &pending.tool);
        output::note(format!(
            "worker identity {identity:?} has {tool}, and waits until an operator accepts it: see redial tools"
        ));
    }
    Ok(())
}

fn task_diagram(record: &TaskAudit) -> String {
    let entries: Vec<_> = task_events(record, |_| Vec::new()).flat_map(|event| event.entries).collect();
    diagram::render(record.task.agent.as_deref(), &entries, record.task.answer.as_deref())
}

fn task_text(record: &TaskAudit, page: Page, now: DateTime<Utc>) -> String {
    let mut text = totals::head(&record.task, page);
    text.push('\n');
    text.extend(task_events(record, |step| call_of(record, step)).map(|event| page.event(&event)));
    text.push_str(&page.event(&waiting(record, now)));
    if let Some(answer) = &record.task.answer {
        let cut = if record.task.code == Some(TaskCode::AnswerCutOff) { " (cut off)" } else { "" };
        text.push_str(&format!("\nanswer{cut}\n{}", output::plain(answer)));
    }
    text.trim_end().to_owned()
}

fn task_events(record: &TaskAudit, details: impl Fn(&TaskStep) -> Vec<Entry>) -> impl Iterator<Item = Event> {
    let mut timeline = TaskTimeline::new(&record.task);
    timeline.add_messages(&record.messages);
    record.steps.iter().map(move |step| timeline.event(step, Printed::default(), details(step)))
}

/// Returns the call that ended in a step.
fn call_of(record: &TaskAudit, step: &TaskStep) -> Vec<Entry> {
    let (TaskInput::TurnEnded { call, .. } | TaskInput::CallEnded { call, .. }) = &step.input else {
        return Vec::new();
    };
    let record = record.calls.iter().find(|record| record.line.call == *call);
    record.map(call::summary).unwrap_or_default()
}

/// Says what a task that has not ended waits for.
fn waiting(record: &TaskAudit, now: DateTime<Utc>) -> Event {
    let waits = |record: &CallAudit| {
        let waits = call::waiting(record, now)?;
        Some(Entry::new("waits", Ink::Yellow, format!("{}: {waits}\n(call {})", record.line.tool, record.line.call)))
    };
    let mut entries: Vec<_> = record.calls.iter().filter_map(waits).collect();
    if record.task.state == TaskState::Waiting {
        entries.push(Entry::new("waits", Ink::Yellow, "for earlier tasks of its conversation"));
    }
    Event { time: "now".to_owned(), entries }
}

fn call_text(record: &CallAudit, page: Page, now: DateTime<Utc>) -> String {
    let page = page.with_points_in_time();
    let mut text = call::head(record, page);
    text.push('\n');
    text.extend(call::events(record, now).iter().map(|event| page.event(event)));
    if let Some(result) = call::shown_result(record) {
        text.push_str(&format!("\nresult\n{result}"));
    }
    text.trim_end().to_owned()
}
