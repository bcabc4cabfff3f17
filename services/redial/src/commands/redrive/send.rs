//! Asks the dispatcher to run calls again, batch by batch.

use std::{fmt, io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use redial_proto::{ApiError, CallId, Code, RedriveReply, RedriveRequest, SubmitResult, SubmitStatus, subjects};
use redial_queue::Queue;
use tokio::time::Instant;

use crate::{commands::api, output};

/// Calls in one request.
const BATCH: usize = 500;
/// How long one request may take: the dispatcher reads and writes each of its calls.
const ANSWER: Duration = Duration::from_secs(60);
/// How long an outage of the dispatchers is waited out.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is printed of each call.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Print {
    /// The answer as a line of JSON.
    Json,
    /// The answer in words.
    Lines,
    /// Only why it cannot run again.
    Errors,
}

/// What became of the calls.
#[derive(Default)]
pub(super) struct Tally {
    accepted: u64,
    existing: u64,
    pub(super) rejected: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepted, existing, rejected } = self;
        write!(f, "{accepted} run again, {existing} redriven before, {rejected} rejected")
    }
}

/// Runs calls again and says what became of them.
pub(super) async fn redrive(queue: &Queue, calls: &[CallId], print: Print) -> anyhow::Result<Tally> {
    let bar = progress(calls.len());
    let mut tally = Tally::default();
    for batch in calls.chunks(BATCH) {
        let answers = send(queue, batch.to_vec()).await.inspect_err(|_| {
            bar.finish_and_clear();
            output::note(format!("{tally}; then it failed: run the same command again to go on"));
        })?;
        for (call, answer) in answers {
            tally.count(&answer);
            if print != Print::Errors || answer.error.is_some() {
                bar.suspend(|| tell(print, call, &answer))?;
            }
        }
        bar.inc(batch.len() as u64);
    }
    bar.finish_and_clear();
    Ok(tally)
}

impl Tally {
    fn count(&mut self, answer: &SubmitResult) {
        match answer.status {
            SubmitStatus::Accepted => self.accepted += 1,
            SubmitStatus::Existing => self.existing += 1,
            SubmitStatus::Refused | SubmitStatus::Rejected => self.rejected += 1,
        }
    }
}

#[derive(serde::Serialize)]
struct Line<'a> {
    redrive_of: CallId,
    #[serde(flatten)]
    answer: &'a SubmitResult,
}

fn tell(print: Print, call: CallId, answer: &SubmitResult) -> anyhow::Result<()> {
    if print == Print::Json {
        return output::json(&Line { redrive_of: call, answer });
    }
    if let Some(error) = &answer.error {
        output::note(format!("call {call}: {error}"));
    } else if let Some(new) = answer.call {
        let what = if answer.status == SubmitStatus::Existing { "was redriven before, as" } else { "runs again as" };
        output::line(format!("call {call} {what} {new}"));
    }
    Ok(())
}

/// Asks until each call is answered. A call is redriven once, so asking again is harmless.
async fn send(queue: &Queue, mut calls: Vec<CallId>) -> anyhow::Result<Vec<(CallId, SubmitResult)>> {
    let began = Instant::now();
    let mut pause = Duration::from_millis(100);
    let mut answers = Vec::with_capacity(calls.len());
    loop {
        let request = RedriveRequest { calls };
        let error = match queue.request::<_, RedriveReply>(subjects::REDRIVE, &request, ANSWER).await {
            Ok(reply) => {
                calls = sort_out(&request.calls, reply.results, &mut answers)?;
                if calls.is_empty() {
                    return Ok(answers);
                }
                ApiError::new(Code::Unavailable, "the database is not available")
            }
            Err(error) if error.is_retryable() => {
                calls = request.calls;
                error.into_api()
            }
            Err(error) => return Err(api(error)),
        };
        if began.elapsed() > PATIENCE {
            return Err(error.into());
        }
        tracing::warn!(%error, "asking again");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

/// Keeps the final answers; returns the calls to ask for again.
fn sort_out(
    calls: &[CallId],
    results: Vec<SubmitResult>,
    answers: &mut Vec<(CallId, SubmitResult)>,
) -> Result<Vec<CallId>, ApiError> {
    if results.len() != calls.len() {
        let message = format!("the dispatcher answered {} of {} calls", results.len(), calls.len());
        return Err(ApiError::new(Code::Internal, message));
    }
    let may_pass = |result: &SubmitResult| result.error.as_ref().is_some_and(|error| error.code.is_retryable());
    let answered = calls.iter().copied().zip(results);
    let (again, done): (Vec<_>, Vec<_>) = answered.partition(|(_, result)| may_pass(result));
    answers.extend(done);
    Ok(again.into_iter().map(|(call, _)| call).collect())
}

fn progress(calls: usize) -> ProgressBar {
    if calls <= BATCH || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let form = "{bar:30} {pos} of {len} calls  {elapsed_precise}  eta {eta}";
    ProgressBar::new(calls as u64)
        .with_style(ProgressStyle::with_template(form).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> CallId {
        CallId(uuid::Uuid::from_u128(n))
    }

    fn accepted(n: u128) -> SubmitResult {
        SubmitResult { status: SubmitStatus::Accepted, call: Some(id(n)), state: None, error: None }
    }

    fn rejected(code: Code) -> SubmitResult {
        SubmitResult::rejected(ApiError::new(code, "no"))
    }

    #[test]
    fn only_what_may_pass_is_asked_for_again() {
        let calls = [id(1), id(2), id(3)];
        let results = vec![accepted(11), rejected(Code::Unavailable), rejected(Code::WrongState)];
        let mut answers = Vec::new();
        assert_eq!(sort_out(&calls, results, &mut answers), Ok(vec![id(2)]));
        assert_eq!(answers, [(id(1), accepted(11)), (id(3), rejected(Code::WrongState))]);
        let mut tally = Tally::default();
        for (_, answer) in &answers {
            tally.count(answer);
        }
        assert_eq!(tally.to_string(), "1 run again, 0 redriven before, 1 rejected");
    }

    #[test]
    fn an_answer_that_does_not_fit_is_an_error() {
        assert!(sort_out(&[id(1), id(2)], vec![accepted(11)], &mut Vec::new()).is_err());
    }
}
