//! Sends the redrive requests, batch by batch.

use std::{fmt, io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use redial_proto::{ApiError, CallId, Code, RedriveReply, RedriveRequest, SubmitResult, SubmitStatus, subjects::Verb};
use redial_queue::Queue;

use crate::{
    connect::{self, Outage},
    output,
};

const BATCH: usize = 500;
/// Longest wait for one reply: the dispatcher reads and writes each call of the request.
const REPLY: Duration = Duration::from_mins(1);

/// How many calls had which result.
#[derive(Default)]
pub(super) struct Tally {
    accepted: u64,
    existing: u64,
    pub(super) rejected: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accepted, existing, rejected } = self;
        write!(f, "{accepted} run again, {existing} already redriven, {rejected} rejected")
    }
}

/// Runs calls again and prints for each its id and that of the new call, or its error; as JSON its result.
pub(super) async fn redrive(queue: &Queue, calls: &[CallId], json: bool) -> anyhow::Result<Tally> {
    let bar = progress(calls.len());
    let mut tally = Tally::default();
    for batch in calls.chunks(BATCH) {
        let answers = send(queue, batch.to_vec()).await.inspect_err(|_| {
            bar.finish_and_clear();
            output::note(format!("{tally}; then a request failed: run the same command again for the rest"));
        })?;
        for (call, answer) in answers {
            tally.count(&answer);
            bar.suspend(|| print_result(json, call, &answer))?;
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

fn print_result(json: bool, call: CallId, answer: &SubmitResult) -> anyhow::Result<()> {
    if json {
        return output::json(&Line { redrive_of: call, answer });
    }
    if let Some(error) = &answer.error {
        output::note(format!("call {call}: {error}"));
    } else if let Some(new) = answer.call {
        let already = if answer.status == SubmitStatus::Existing { " (already redriven)" } else { "" };
        output::line(format!("{call} → {new}{already}"))?;
    }
    Ok(())
}

/// Sends requests until each call has a final answer. A call is redriven at most once, so retries are safe.
async fn send(queue: &Queue, mut calls: Vec<CallId>) -> anyhow::Result<Vec<(CallId, SubmitResult)>> {
    let mut outage = Outage::new();
    let mut answers = Vec::with_capacity(calls.len());
    loop {
        let request = RedriveRequest::unchanged(calls);
        let error = match queue.ask::<_, RedriveReply>(Verb::CallRedrive, &request, REPLY).await {
            Ok(reply) => {
                calls = keep_final(&request.calls, reply.results, &mut answers)?;
                if calls.is_empty() {
                    return Ok(answers);
                }
                ApiError::new(Code::Unavailable, "the database is not available")
            }
            Err(error) if error.is_retryable() => {
                calls = request.calls;
                connect::user_error(error)
            }
            Err(error) => return Err(connect::api(error)),
        };
        outage.wait(error).await?;
    }
}

/// Keeps the final answers; returns the calls to send again.
fn keep_final(
    calls: &[CallId],
    results: Vec<SubmitResult>,
    answers: &mut Vec<(CallId, SubmitResult)>,
) -> Result<Vec<CallId>, ApiError> {
    if results.len() != calls.len() {
        let message = format!("the dispatcher answered {} of {} calls", results.len(), calls.len());
        return Err(ApiError::new(Code::Internal, message));
    }
    let answered = calls.iter().copied().zip(results);
    let (again, done): (Vec<_>, Vec<_>) = answered.partition(|(_, result)| connect::is_retryable(result));
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
        let (status, call) = (SubmitStatus::Accepted, Some(id(n)));
        SubmitResult { status, call, error: None, ..rejected(Code::WrongState) }
    }

    fn rejected(code: Code) -> SubmitResult {
        SubmitResult::rejected(ApiError::new(code, "no"))
    }

    #[test]
    fn only_retryable_answers_are_requested_again() {
        let calls = [id(1), id(2), id(3)];
        let results = vec![accepted(11), rejected(Code::Unavailable), rejected(Code::WrongState)];
        let mut answers = Vec::new();
        assert_eq!(keep_final(&calls, results, &mut answers), Ok(vec![id(2)]));
        let kept: Vec<_> = answers.iter().map(|(call, answer)| (*call, answer.status, answer.call)).collect();
        assert_eq!(kept, [(id(1), SubmitStatus::Accepted, Some(id(11))), (id(3), SubmitStatus::Rejected, None)]);
        let mut tally = Tally::default();
        for (_, answer) in &answers {
            tally.count(answer);
        }
        assert_eq!(tally.to_string(), "1 run again, 0 already redriven, 1 rejected");
    }

    #[test]
    fn a_reply_with_too_few_answers_is_an_error() {
        assert!(keep_final(&[id(1), id(2)], vec![accepted(11)], &mut Vec::new()).is_err());
    }
}
