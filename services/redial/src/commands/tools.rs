//! `redial tools`: the tools that workers registered.

use std::process::ExitCode;

use redial_proto::ToolSpec;
use redial_store::audit::ToolRecord;

use crate::{connect, output, settings::Settings};

const HEAD: [&str; 6] = ["tool", "effect", "pool", "timeout", "workers", "description"];
/// Characters of a description in the table.
const DESCRIPTION: usize = 60;

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    let tools = connect::store(settings).await?.tool_records().await?;
    if tools.is_empty() {
        output::note("no worker has registered a tool yet");
    } else if settings.json() {
        tools.iter().try_for_each(output::json)?;
    } else {
        output::line(render(&tools));
    }
    Ok(ExitCode::SUCCESS)
}

fn render(tools: &[ToolRecord]) -> String {
    output::table(&HEAD, tools.iter().map(row).collect())
}

fn row(tool: &ToolRecord) -> Vec<String> {
    let workers = tool.workers.to_string();
    match serde_json::from_str::<ToolSpec>(tool.spec.get()) {
        Ok(spec) => vec![
            spec.name,
            spec.effect.to_string(),
            spec.pool,
            output::span(i64::try_from(spec.timeout_ms).unwrap_or(i64::MAX)),
            workers,
            output::one_line(&spec.description, DESCRIPTION),
        ],
        // A worker of another version registered it.
        Err(error) => {
            let unreadable = output::one_line(&format!("not readable: {error}"), DESCRIPTION);
            vec![tool.name.clone(), "?".to_owned(), "?".to_owned(), "?".to_owned(), workers, unreadable]
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
            tool("tomorrow", 0, json!({"name": "tomorrow", "streams": true})),
        ];
        insta::assert_snapshot!(render(&tools));
    }
}
