//! `redial dead-letters`: messages of the streams that could not be processed, with the reason.

use std::process::ExitCode;

use redial_proto::{ApiError, Code};
use redial_store::audit::DeadLetterRecord;

use crate::{connect, output, settings::Settings};

const HEAD: [&str; 6] = ["id", "source", "received", "code", "message", "payload"];
/// Characters of a reason in the table.
const MESSAGE: usize = 100;
/// Characters of a payload in the table.
const PAYLOAD: usize = 60;

pub(crate) async fn run(settings: &Settings, limit: u32) -> anyhow::Result<ExitCode> {
    if limit == 0 {
        return Err(ApiError::new(Code::InvalidValue, "--limit is 0; allowed: 1 and more").into());
    }
    let store = connect::store(settings).await?;
    let mut messages = store.dead_letter_records(limit.saturating_add(1)).await?;
    let more = messages.len() > limit as usize;
    messages.truncate(limit as usize);
    if messages.is_empty() {
        output::note("there are no dead letters");
    } else if settings.json() {
        messages.iter().try_for_each(output::json)?;
    } else {
        output::line(render(&messages));
    }
    if more {
        output::note(format!("there are older ones: --limit {} shows more", limit.saturating_mul(10)));
    }
    Ok(ExitCode::SUCCESS)
}

fn render(messages: &[DeadLetterRecord]) -> String {
    let row = |message: &DeadLetterRecord| {
        vec![
            message.id.to_string(),
            message.source.clone(),
            output::time(message.received_at),
            message.code.clone(),
            output::one_line(&message.message, MESSAGE),
            output::one_line(&message.payload, PAYLOAD),
        ]
    };
    output::table(&HEAD, messages.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_for_each_message() {
        let message = |id, source: &str, code: &str, why: &str, payload: &str| DeadLetterRecord {
            id,
            source: source.to_owned(),
            received_at: "2026-11-20T08:00:00Z".parse().unwrap(),
            code: code.to_owned(),
            message: why.to_owned(),
            payload: payload.to_owned(),
        };
        let long = format!("{{\"tool\": \"echo\", \"arguments\": {{\"text\": \"{}\"}}}}", "x".repeat(200));
        insta::assert_snapshot!(render(&[
            message(12, "intake", "invalid_message", "unknown field `argument`", &long),
            message(11, "results", "invalid_message", "expected value at line 1 column 1", "\u{1b}[2J\u{0}\n\u{fffd}"),
        ]));
    }
}
