//! `redial tools`: the tools that workers registered, and whether their calls run.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use redial_engine::publish::MAX_CHECK_MS;
use redial_proto::{ForgetTool, ForgetToolReply, ToolSpec, subjects};
use redial_store::audit::ToolRecord;

use crate::{
    connect, output,
    settings::Settings,
    timeline::{text, totals},
};

const HEAD: [&str; 8] = ["tool", "effect", "pool", "timeout", "workers", "waiting", "state", "description"];
/// Characters of a description in the table.
const DESCRIPTION: usize = 60;

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    let tools = connect::store(settings).await?.tool_records(MAX_CHECK_MS).await?;
    if tools.is_empty() {
        output::note("no worker has registered a tool yet");
    } else if settings.json() {
        tools.iter().try_for_each(output::json)?;
    } else {
        output::line(render(&tools, Utc::now()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes a tool that no worker has.
pub(crate) async fn forget(settings: &Settings, tool: String) -> anyhow::Result<ExitCode> {
    let queue = connect::queue(settings).await?;
    let request = ForgetTool { tool };
    let reply: ForgetToolReply =
        connect::request(&queue, subjects::FORGET_TOOL, &request).await.map_err(connect::api)?;
    if settings.json() {
        output::json(&serde_json::json!({ "tool": request.tool, "waiting": reply.waiting }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format!("tool {} is forgotten: new calls of it are refused", request.tool));
    if reply.waiting > 0 {
        output::note(format!(
            "still waiting for a worker until the deadline: {}; redial history --tool {} --state ready",
            totals::count(reply.waiting, "call"),
            request.tool
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn render(tools: &[ToolRecord], now: DateTime<Utc>) -> String {
    output::table(&HEAD, tools.iter().map(|tool| row(tool, now)).collect())
}

/// Whether its calls run now, and if not, why and since when.
fn state(tool: &ToolRecord, now: DateTime<Utc>) -> String {
    let since = |at: DateTime<Utc>| format!("since {} ({})", output::time(at), text::span(now - at));
    let rate = tool.retries_per_second.unwrap_or(1.0);
    match (tool.workers, tool.failing_since, tool.recovering_since) {
        (0, ..) => match tool.last_seen_at {
            Some(at) => format!("no worker, last seen {} ({} ago)", output::time(at), text::span(now - at)),
            None => "no worker; last seen: unknown".to_owned(),
        },
        (_, Some(at), _) if tool.waiting_retries > 0 => {
            format!("failing {}; {} to probe it", since(at), text::retries(rate))
        }
        (_, Some(at), _) => format!("failing {}", since(at)),
        (_, _, Some(at)) if tool.waiting_retries > 0 => format!("recovering {}; {}", since(at), text::retries(rate)),
        _ => "served".to_owned(),
    }
}

fn waiting(tool: &ToolRecord) -> String {
    match tool.waiting_retries {
        0 => tool.waiting.to_string(),
        1 => format!("{} (1 retry)", tool.waiting),
        retries => format!("{} ({retries} retries)", tool.waiting),
    }
}

fn row(tool: &ToolRecord, now: DateTime<Utc>) -> Vec<String> {
    let workers = tool.workers.to_string();
    let (waiting, state) = (waiting(tool), state(tool, now));
    match serde_json::from_str::<ToolSpec>(tool.spec.get()) {
        Ok(spec) => vec![
            spec.name,
            spec.effect.to_string(),
            spec.pool,
            output::span(i64::try_from(spec.timeout_ms).unwrap_or(i64::MAX)),
            workers,
            waiting,
            state,
            output::one_line(&spec.description, DESCRIPTION),
        ],
        // A worker of another version registered it.
        Err(error) => {
            let unreadable = output::one_line(&format!("not readable: {error}"), DESCRIPTION);
            vec![tool.name.clone(), "?".to_owned(), "?".to_owned(), "?".to_owned(), workers, waiting, state, unreadable]
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
            retries_per_second: None,
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
        insta::assert_snapshot!(render(&tools, "2026-11-20T08:00:00Z".parse().unwrap()));
    }
}
