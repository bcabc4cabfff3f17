//! `redial dead-letters`: messages of the streams that could not be processed, with the reason.

use std::process::ExitCode;

use redial_proto::{ApiError, Code};
use redial_store::audit::DeadLetterRecord;

use crate::{
    connect,
    list::{self, Field, Form},
    output,
    settings::Settings,
    table::Cell,
};

const FIELDS: &[Field<DeadLetterRecord>] = &[
    Field::whole("id", |message, _| message.id.to_string().into()),
    Field::whole("source", |message, _| message.source.clone().into()),
    Field::whole("received", |message, form| form.time(message.received_at).into()),
    Field::wide("tenant", |message, _| message.tenant.clone().unwrap_or_default().into()),
    Field::wide("identity", |message, _| message.identity.clone().unwrap_or_default().into()),
    Field::whole("errors", |message, _| message.error_count.to_string().into()),
    Field::shortened("code", 8, |message, _| message.code.clone().into()),
    Field::shortened("message", 10, |message, form| text(&first_error(message), form)),
    Field::shortened("payload", 8, |message, form| text(&message.payload, form)),
];
/// Characters of a reason, and of a payload, in the table and in the wide one.
const TEXT: usize = 100;
const LONG_TEXT: usize = 1000;

pub(crate) async fn run(settings: &Settings, limit: u32, wide: bool) -> anyhow::Result<ExitCode> {
    if limit == 0 {
        return Err(ApiError::new(Code::InvalidValue, "--limit is 0; allowed: 1 and more").into());
    }
    let store = connect::store(settings).await?;
    let found = store.dead_letter_records(settings.only_tenant()?.as_deref(), limit.saturating_add(1)).await?;
    let (messages, more) = list::first(found, limit);
    if messages.is_empty() {
        output::note("there are no dead letters");
    } else {
        list::print(settings, &store, FIELDS, &messages, wide).await?;
    }
    if more {
        output::note(format!("there are older ones: --limit {} shows more", limit.saturating_mul(10)));
    }
    Ok(ExitCode::SUCCESS)
}

fn text(text: &str, form: &Form) -> Cell {
    output::one_line(text, if form.wide { LONG_TEXT } else { TEXT }).into()
}

/// Returns the first error, with the position of its entry if the message is a batch; `--json` lists the others.
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
        insta::assert_snapshot!(list::both(FIELDS, now, &messages));
    }
}
