//! `redial dead-letters`: messages of the streams that could not be processed, with the reason.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use redial_proto::{ApiError, Code};
use redial_store::audit::DeadLetterRecord;

use crate::{
    connect, output,
    settings::Settings,
    table::{Cell, Column, Paper, Table},
};

const NARROW: [Column; 7] = [
    Column::whole("id"),
    Column::whole("source"),
    Column::whole("received"),
    Column::whole("errors"),
    Column::shortened("code", 8),
    Column::shortened("message", 10),
    Column::shortened("payload", 8),
];
const WIDE: [Column; 9] = [
    Column::whole("id"),
    Column::whole("source"),
    Column::whole("received"),
    Column::whole("tenant"),
    Column::whole("identity"),
    Column::whole("errors"),
    Column::whole("code"),
    Column::whole("message"),
    Column::whole("payload"),
];
/// Characters of a reason, and of a payload, in the table and in the wide one.
const TEXT: usize = 100;
const LONG_TEXT: usize = 1000;

pub(crate) async fn run(settings: &Settings, limit: u32, wide: bool) -> anyhow::Result<ExitCode> {
    if limit == 0 {
        return Err(ApiError::new(Code::InvalidValue, "--limit is 0; allowed: 1 and more").into());
    }
    let store = connect::store(settings).await?;
    let mut messages = store.dead_letter_records(settings.only_tenant()?.as_deref(), limit.saturating_add(1)).await?;
    let more = messages.len() > limit as usize;
    messages.truncate(limit as usize);
    if messages.is_empty() {
        output::note("there are no dead letters");
    } else if settings.json() {
        messages.iter().try_for_each(output::json)?;
    } else {
        output::line(render(&messages, wide, Paper::of_stdout(wide), store.now().await?))?;
    }
    if more {
        output::note(format!("there are older ones: --limit {} shows more", limit.saturating_mul(10)));
    }
    Ok(ExitCode::SUCCESS)
}

fn render(messages: &[DeadLetterRecord], wide: bool, paper: Paper, now: DateTime<Utc>) -> String {
    let most = if wide { LONG_TEXT } else { TEXT };
    let row = |message: &DeadLetterRecord| -> Vec<Cell> {
        let received = message.received_at;
        let mut cells = vec![
            message.id.to_string(),
            message.source.clone(),
            if wide { output::time(received) } else { output::ago(received, now) },
        ];
        if wide {
            cells.extend([&message.tenant, &message.identity].map(|name| name.clone().unwrap_or_default()));
        }
        cells.extend([
            message.error_count.to_string(),
            message.code.clone(),
            output::one_line(&first_error(message), most),
            output::one_line(&message.payload, most),
        ]);
        cells.into_iter().map(Cell::from).collect()
    };
    let rows: Vec<_> = messages.iter().map(row).collect();
    Table::new(paper, if wide { &WIDE } else { &NARROW }).part(&rows)
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
            tenant: (source == "intake").then(|| "acme".to_owned()),
            identity: (source == "results").then(|| "tools".to_owned()),
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
        let messages = [
            batch(3, message(13, "intake", "invalid_message", "missing field `arguments`", "{\"calls\": []}")),
            message(12, "intake", "invalid_message", "unknown field `argument`", &long),
            message(11, "results", "invalid_message", "expected value at line 1 column 1", "\u{1b}[2J\u{0}\n\u{fffd}"),
        ];
        let now = "2026-11-20T08:05:00Z".parse().unwrap();
        insta::assert_snapshot!("narrow", render(&messages, false, Paper::test(Some(80)), now));
        insta::assert_snapshot!("wide", render(&messages, true, Paper::test(None), now));
    }
}
