//! `redial cancel`: stops a call, by the same request that any client sends.

use std::process::ExitCode;

use redial_proto::{CallId, CallState, CancelReply, CancelRequest, subjects};
use redial_queue::{Queue, QueueError};

use crate::{
    commands::{REQUEST, api, queue},
    exit, output,
    settings::Settings,
};

pub(crate) async fn run(settings: &Settings, call: CallId) -> anyhow::Result<ExitCode> {
    let queue = queue(settings).await?;
    let reply = match ask(&queue, call).await {
        // Asking twice is the same as asking once.
        Err(error) if error.is_retryable() => ask(&queue, call).await,
        done => done,
    }
    .map_err(api)?;
    if settings.json() {
        output::json(&serde_json::json!({ "call": call, "state": reply.state }))?;
    } else {
        output::line(words(call, reply.state));
    }
    let stopped = matches!(reply.state, CallState::Cancelled | CallState::Running);
    Ok(if stopped { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

async fn ask(queue: &Queue, call: CallId) -> Result<CancelReply, QueueError> {
    queue.request(subjects::CANCEL, &CancelRequest { call }, REQUEST).await
}

fn words(call: CallId, state: CallState) -> String {
    match state {
        CallState::Cancelled => format!("call {call} is cancelled: no attempt starts any more"),
        CallState::Running => format!(
            "call {call} is running and its worker was told to stop; it ends cancelled, or with its result if that \
             is faster: redial show {call}"
        ),
        ended => format!("call {call} had ended already: {ended}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_in_words() {
        let call: CallId = "01936b1c-0000-7000-8000-000000000001".parse().unwrap();
        let lines = [CallState::Cancelled, CallState::Running, CallState::Unknown].map(|state| words(call, state));
        insta::assert_snapshot!(lines.join("\n"));
    }
}
