//! `redial tools`: the tools that workers registered, and whether their calls run.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use redial_engine::{publish::MAX_CHECK_MS, tools::version};
use redial_proto::{
    AcceptTool, AcceptToolReply, ForgetTool, ForgetToolReply, ToolSpec, WorkerIdentity, subjects::Verb,
};
use redial_store::audit::{PendingTool, ToolRecord};
use serde::Serialize;

use crate::{
    connect,
    list::{Field, Form, List},
    output,
    settings::Settings,
    table::{self, Cell},
    timeline::{text, totals},
};

const FIELDS: &[Field<ToolRecord>] = &[
    Field::shortened("tool", 12, |tool, _| tool.name.clone().into()),
    Field::whole("effect", |tool, _| of_spec(tool, |spec| spec.effect.to_string())),
    Field::wide("pool", |tool, _| of_spec(tool, |spec| spec.pool)),
    Field::wide("timeout", |tool, _| {
        of_spec(tool, |spec| output::span(i64::try_from(spec.timeout_ms).unwrap_or(i64::MAX)))
    }),
    Field::whole("workers", |tool, _| tool.workers.to_string().into()),
    Field::whole("waiting calls", |tool, _| waiting(tool).into()),
    Field::whole("state", |tool, _| table::state(state(tool))),
    Field::wide("since", |tool, form| since(tool, form.now).into()),
    Field::shortened("description", 8, |tool, _| {
        let text = spec(tool).map_or_else(|error| format!("not readable: {error}"), |spec| spec.description);
        output::one_line(&text, DESCRIPTION).into()
    }),
];
const PENDING: &[Field<PendingTool>] = &[
    Field::whole("tool", |pending, _| pending.tool.clone().into()),
    Field::whole("identity", |pending, _| pending.identity.clone().into()),
    Field::whole("waits since", |pending, form| form.time(pending.since).into()),
    Field::wide("fingerprint", |pending, _| pending.fingerprint.clone().into()),
    Field::shortened("change", 8, |pending, form| {
        output::one_line(&pending.reasons.join("; "), if form.wide { WHOLE_CHANGE } else { CHANGE }).into()
    }),
];
/// Commands that accept something which are shown.
const SHOWN: usize = 3;
/// Characters of what changes, in the table and in the wide one.
const CHANGE: usize = 300;
const WHOLE_CHANGE: usize = 4000;
/// Characters of a description in the table.
const DESCRIPTION: usize = 200;

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    tool: &'a ToolRecord,
    state: &'static str,
    /// Fingerprint of what was registered, unless it is not readable.
    version: Option<String>,
    /// The worker identities that may serve it.
    identities: Vec<&'a str>,
    /// What waits until an operator accepts it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending: Vec<&'a PendingTool>,
}

pub(crate) async fn run(settings: &Settings, wide: bool) -> anyhow::Result<ExitCode> {
    let store = connect::store(settings).await?;
    let tools = store.tool_records(MAX_CHECK_MS).await?;
    connect::note_missing_dispatcher(settings).await;
    if tools.is_empty() {
        output::note("no worker has registered a tool yet");
    } else if settings.json() {
        let (identities, pending) = (store.tool_identities().await?, store.pending_tools().await?);
        tools.iter().try_for_each(|tool| {
            let mut identities: Vec<&str> =
                identities.get(&tool.name).into_iter().flatten().map(String::as_str).collect();
            identities.sort_unstable();
            let pending = pending.iter().filter(|pending| pending.tool == tool.name).collect();
            let version = spec(tool).ok().map(|spec| version(&spec).simple().to_string());
            output::json(&Line { tool, state: state(tool), version, identities, pending })
        })?;
    } else {
        let now = store.now().await?;
        output::line(List::of_stdout(FIELDS, Form::new(wide, now)).part(&tools))?;
        let pending = store.pending_tools().await?;
        if !pending.is_empty() {
            output::line(format!("\n{}", List::of_stdout(PENDING, Form::new(wide, now)).part(&pending)))?;
        }
        for PendingTool { tool, identity, fingerprint, .. } in pending.iter().take(SHOWN) {
            output::note(format!(
                "to accept it: redial tools accept {tool} --identity {identity} --fingerprint {fingerprint}"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn accept(
    settings: &Settings,
    tool: String,
    identity: Option<WorkerIdentity>,
    fingerprint: String,
) -> anyhow::Result<ExitCode> {
    let queue = connect::queue(settings).await?;
    let request = AcceptTool { tool, identity, fingerprint };
    let reply: AcceptToolReply = connect::request(&queue, Verb::ToolAccept, &request).await.map_err(connect::api)?;
    if settings.json() {
        output::json(&serde_json::json!({
            "tool": request.tool, "identity": reply.identity, "changes": reply.changes
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format!(
        "worker identity {} may serve tool {} now, as it registered it",
        reply.identity, request.tool
    ))?;
    for change in reply.changes {
        output::line(format!("  {}", output::one_line(&change, WHOLE_CHANGE)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes a tool that no worker has.
pub(crate) async fn forget(settings: &Settings, tool: String) -> anyhow::Result<ExitCode> {
    let queue = connect::queue(settings).await?;
    let request = ForgetTool { tool };
    let reply: ForgetToolReply = connect::request(&queue, Verb::ToolForget, &request).await.map_err(connect::api)?;
    if settings.json() {
        output::json(&serde_json::json!({ "tool": request.tool, "waiting": reply.waiting }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format!("tool {} is forgotten: new calls of it are refused", request.tool))?;
    if reply.waiting > 0 {
        output::note(format!(
            "still waiting for a worker until the deadline: {}; redial history --tool {} --state ready",
            totals::count(reply.waiting, "call"),
            request.tool
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether its calls run now.
const fn state(tool: &ToolRecord) -> &'static str {
    match (tool.workers, tool.failing_since, tool.recovering_since) {
        (0, ..) => "no worker",
        (_, Some(_), _) => "failing",
        (_, _, Some(_)) => "recovering",
        _ => "served",
    }
}

/// Says since when it has its state, and what becomes of its retries.
fn since(tool: &ToolRecord, now: DateTime<Utc>) -> String {
    let since = |at: DateTime<Utc>| format!("{} ({})", output::time(at), text::span(now - at));
    let retries = tool.retries_per_second.filter(|_| tool.waiting_retries > 0).map(text::retries);
    let retries = retries.map(|rate| format!("; {rate}")).unwrap_or_default();
    match (tool.workers, tool.failing_since, tool.recovering_since) {
        (0, ..) => match tool.last_seen_at {
            Some(at) => format!("last seen {}", since(at)),
            None => "last seen: unknown".to_owned(),
        },
        (_, Some(at), _) | (_, _, Some(at)) => since(at) + &retries,
        _ => String::new(),
    }
}

fn waiting(tool: &ToolRecord) -> String {
    match tool.waiting_retries {
        0 => tool.waiting.to_string(),
        1 => format!("{} (1 retry)", tool.waiting),
        retries => format!("{} ({retries} retries)", tool.waiting),
    }
}

/// Shows a text of a tool as registered; `?` if a worker of another version registered what this one cannot read.
fn of_spec(tool: &ToolRecord, text: fn(ToolSpec) -> String) -> Cell {
    spec(tool).map_or_else(|_| "?".to_owned(), text).into()
}

fn spec(tool: &ToolRecord) -> Result<ToolSpec, serde_json::Error> {
    serde_json::from_str(tool.spec.get())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::list;

    #[test]
    fn one_line_for_each_tool() {
        let tool = |name: &str, workers, spec: serde_json::Value| ToolRecord {
            name: name.to_owned(),
            spec: serde_json::value::to_raw_value(&spec).unwrap(),
            registered_by: "host-0123456789ab".to_owned(),
            registered_at: "2026-11-20T08:00:00Z".parse().unwrap(),
            workers,
            last_seen_at: (name != "tomorrow").then(|| "2026-11-20T07:59:00Z".parse().unwrap()),
            waiting: i64::try_from(name.len()).unwrap(),
            waiting_retries: if name == "echo" { 3 } else { 0 },
            failing_since: (name == "echo").then(|| "2026-11-20T07:58:00Z".parse().unwrap()),
            recovering_since: None,
            retries_per_second: (name == "echo").then_some(1.0),
        };
        let long =
            "Books a flight.\nNeeds a date, an origin and a destination, and answers with the number of the booking.";
        let tools = [
            tool(
                "book_flight",
                2,
                json!({"name": "book_flight", "effect": "keyed", "timeout_ms": 90_000, "description": long}),
            ),
            tool("echo", 1, json!({"name": "echo", "effect": "read", "pool": "fast"})),
            tool("gone", 0, json!({"name": "gone"})),
            tool("tomorrow", 0, json!({"name": "tomorrow", "streams": true})),
        ];
        let now = "2026-11-20T08:00:00Z".parse().unwrap();
        insta::assert_snapshot!(list::both(FIELDS, now, &tools));
    }
    #[test]
    fn what_waits_says_who_brings_it_and_what_it_changes() {
        let pending = |tool: &str, reasons: &[&str]| PendingTool {
            tool: tool.to_owned(),
            identity: "night".to_owned(),
            worker: "night-0123456789ab".to_owned(),
            since: "2026-11-20T07:00:00Z".parse().unwrap(),
            reasons: reasons.iter().map(|&reason| reason.to_owned()).collect(),
            spec: serde_json::value::to_raw_value(&json!({"name": tool})).unwrap(),
            fingerprint: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        };
        let pending = [
            pending(
                "book_flight",
                &["worker identity \"night\" may not serve it yet", "its effect is read instead of keyed"],
            ),
            pending("echo", &["\"/text\": maxLength is gone\u{1b}[2J"]),
        ];
        let now = "2026-11-20T08:00:00Z".parse().unwrap();
        insta::assert_snapshot!(list::both(PENDING, now, &pending));
    }
}
