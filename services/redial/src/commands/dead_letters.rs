//! `redial dead-letters`: messages of the streams that could not be processed, with the reason.

use std::process::ExitCode;

use redial_proto::{ApiError, Code};
use redial_store::audit::DeadLetterRecord;

use crate::{connect, output, settings::Settings};

const HEAD: [&str; 7] = ["id", "source", "received", "errors", "code", "message", "payload"];
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
            message.error_count.to_string(),
            message.code.clone(),
            output::one_line(&first_error(message), MESSAGE),
            output::one_line(&message.payload, PAYLOAD),
        ]
    };
    output::table(&HEAD, messages.iter().map(row).collect())
}

/// The first error, with the position of its entry if the message is a batch; `--json` lists the others.
fn first_error(message: &DeadLetterRecord) -> String {
    match message.errors.first().and_then(|error| error.position) {
        Some(position) => format!("entry {position}: {}", message.message),
        None => message.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use redial_store::Rejection;

    use super::*;

    #[test]
    fn one_line_for_each_message() {
        let message = |id, source: &str, code: &str, why: &str, payload: &str| DeadLetterRecord {
            id,
            source: source.to_owned(),
            received_at: "2026-11-20T08:00:00Z".parse().unwrap(),
            code: code.to_owned(),
            message: why.to_owned(),
            error_count: 1,
            errors: vec![Rejection { position: None, code: code.to_owned(), message: why.to_owned() }],
            payload: payload.to_owned(),
        };
        let batch = |position, message: DeadLetterRecord| {
            let errors = message.errors.into_iter().map(|error| Rejection { position: Some(position), ..error });
            DeadLetterRecord { error_count: 640, errors: errors.collect(), ..message }
        };
        let long = format!("{{\"tool\": \"echo\", \"arguments\": {{\"text\": \"{}\"}}}}", "x".repeat(200));
        insta::assert_snapshot!(render(&[
            batch(3, message(13, "intake", "invalid_message", "missing field `arguments`", "{\"calls\": []}")),
            message(12, "intake", "invalid_message", "unknown field `argument`", &long),
            message(11, "results", "invalid_message", "expected value at line 1 column 1", "\u{1b}[2J\u{0}\n\u{fffd}"),
        ]));
    }
}
