//! `redial submit`: submits each line of a file.
//!
//! A line without a key gets one made of the file's name and the line's text. So the same file can be submitted again
//! after a crash, a Ctrl-C or an outage, also with other lines added or removed: calls that are on record are found by
//! their keys.

mod keys;
mod lines;

use std::{collections::HashSet, io::IsTerminal, process::ExitCode, time::Duration};

use chrono::{DateTime, Utc};
use futures_util::{StreamExt, stream::FuturesOrdered};
use indicatif::{ProgressBar, ProgressStyle};
use redial_proto::{ApiError, CallId, Code, SubmitBatch, SubmitBatchReply, SubmitResult, SubmitStatus, subjects::Verb};
use redial_queue::Queue;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use self::lines::{Line, Lines};
use crate::{
    cli::SubmitArgs,
    connect::{self, Outages, REQUEST},
    exit, output,
    settings::Settings,
};

/// Batches that wait for their replies at the same time.
const PENDING: usize = 8;
/// After an interruption, answers that are under way are waited for so long.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

pub(crate) async fn run(settings: &Settings, args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    let interrupted = connect::shutdown()?;
    let mut lines = Lines::open(&args.file, args.name.as_deref())?;
    if !lines.has_name() {
        output::note("standard input has no name, so a second run submits lines without a key again; see --name");
    }
    let sender = Sender { queue: connect::queue(settings).await?, interrupted, outages: Outages::default() };
    // Whatever is on record since then in a batch that had to be sent again, its own first try wrote.
    let Some(Answer { reply: SubmitBatchReply { time: began, .. }, .. }) = sender.send(Vec::new()).await? else {
        return report(settings, &Tally::default(), true);
    };
    let bar = progress(lines.bytes);
    let mut tally = Tally { json: settings.json(), began, ..Tally::default() };
    let (mut pending, mut failed) = (FuturesOrdered::new(), None);
    loop {
        while pending.len() < PENDING && !sender.interrupted.is_cancelled() {
            let batch = lines.batch(args.batch as usize)?;
            bar.set_position(lines.read);
            if batch.is_empty() {
                break;
            }
            let sender = &sender;
            pending.push_back(async move {
                let (lines, calls) = divided(batch);
                let answer = if calls.is_empty() { Ok(None) } else { sender.send(calls).await };
                (lines, answer)
            });
        }
        let Some((lines, answer)) = pending.next().await else { break };
        let answer = answer.unwrap_or_else(|error| {
            // No more is sent, and what is under way has a moment left.
            sender.interrupted.cancel();
            failed.get_or_insert(error);
            None
        });
        tally.count(lines, answer.as_ref(), &bar)?;
    }
    bar.finish_and_clear();
    let code = report(settings, &tally, sender.interrupted.is_cancelled() && failed.is_none())?;
    let Some(error) = failed else { return Ok(code) };
    output::note("gave up: run the same command again to submit the rest");
    Err(error)
}

/// A line's number, and what is wrong with the line.
type Checked = (u64, Option<ApiError>);

/// Returns the lines of a batch, and the calls of those that are right.
fn divided(batch: Vec<Line>) -> (Vec<Checked>, Vec<Box<RawValue>>) {
    let mut calls = Vec::with_capacity(batch.len());
    let divide = |line: Line| match line.submission {
        Ok(call) => {
            calls.push(call);
            (line.number, None)
        }
        Err(wrong) => (line.number, Some(wrong)),
    };
    (batch.into_iter().map(divide).collect(), calls)
}

fn report(settings: &Settings, tally: &Tally, interrupted: bool) -> anyhow::Result<ExitCode> {
    let Tally { accepted, existing, refused, rejected, unanswered, .. } = tally;
    if settings.json() {
        output::json(&serde_json::json!({
            "accepted": accepted, "existing": existing, "refused": refused, "rejected": rejected,
            "unanswered": unanswered, "interrupted": interrupted,
        }))?;
    } else {
        let unanswered = match unanswered {
            0 => String::new(),
            count => format!(", {count} without an answer"),
        };
        output::line(format!(
            "{accepted} accepted, {existing} already on record, {refused} refused (on record, never run), \
             {rejected} rejected{unanswered}"
        ))?;
    }
    if interrupted {
        output::note("interrupted: run the same command again to submit the rest");
        return Ok(ExitCode::from(130));
    }
    Ok(if refused + rejected == 0 { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

#[derive(Default)]
struct Tally {
    accepted: u64,
    existing: u64,
    /// The calls that are counted as accepted, so that two lines with one key count once.
    new: HashSet<CallId>,
    refused: u64,
    rejected: u64,
    /// Sent, and interrupted or given up before an answer came: perhaps on record.
    unanswered: u64,
    /// The database's time when the command began.
    began: Option<DateTime<Utc>>,
    json: bool,
}

impl Tally {
    /// Counts the lines of one batch in their order. Without an answer, those that were sent may be on record or not.
    fn count(&mut self, lines: Vec<Checked>, answer: Option<&Answer>, bar: &ProgressBar) -> anyhow::Result<()> {
        let mut results = answer.map(|answer| answer.reply.results.iter());
        for (number, wrong) in lines {
            if let Some(wrong) = wrong {
                self.bad_line(number, &wrong, bar)?;
                continue;
            }
            match (answer, results.as_mut().and_then(Iterator::next)) {
                (Some(answer), Some(result)) => self.line(number, answer, result, bar)?,
                _ => self.unanswered += 1,
            }
        }
        bar.set_message(format!("{} accepted", self.accepted));
        Ok(())
    }

    fn line(&mut self, number: u64, answer: &Answer, result: &SubmitResult, bar: &ProgressBar) -> anyhow::Result<()> {
        match result.status {
            SubmitStatus::Accepted if self.is_new(result) => self.accepted += 1,
            SubmitStatus::Existing if self.wrote_it_before(answer, result) => self.accepted += 1,
            // Accepted, and counted already: an earlier line with the same key was sent again, and found the call that this
            // line wrote.
            SubmitStatus::Accepted | SubmitStatus::Existing => self.existing += 1,
            SubmitStatus::Refused => self.refused += 1,
            SubmitStatus::Rejected => self.rejected += 1,
        }
        match &result.error {
            Some(error) => self.problem(number, result.status, error, bar),
            None => Ok(()),
        }
    }

    /// Returns true if a lost try of this command wrote the call, and no line was counted for it yet.
    fn wrote_it_before(&mut self, answer: &Answer, result: &SubmitResult) -> bool {
        answer.sent_again && result.submitted_at >= self.began && self.is_new(result)
    }

    /// Returns true if no line was counted for the call yet. Counts it.
    fn is_new(&mut self, result: &SubmitResult) -> bool {
        result.call.is_some_and(|call| self.new.insert(call))
    }

    fn bad_line(&mut self, number: u64, error: &ApiError, bar: &ProgressBar) -> anyhow::Result<()> {
        self.rejected += 1;
        self.problem(number, SubmitStatus::Rejected, error, bar)
    }

    fn problem(&self, line: u64, status: SubmitStatus, error: &ApiError, bar: &ProgressBar) -> anyhow::Result<()> {
        if self.json {
            return output::json(&serde_json::json!({"line": line, "status": status, "error": error}));
        }
        bar.suspend(|| output::note(format!("line {line}: {error}")));
        Ok(())
    }
}

struct Sender {
    queue: Queue,
    interrupted: CancellationToken,
    outages: Outages,
}

struct Answer {
    reply: SubmitBatchReply,
    /// An earlier try had no answer, or none for all of its calls: it may have written some of them.
    sent_again: bool,
}

impl Sender {
    /// Sends a batch until it is answered; the keys make that safe. `None` if interrupted before.
    async fn send(&self, calls: Vec<Box<RawValue>>) -> anyhow::Result<Option<Answer>> {
        let message = SubmitBatch { calls };
        let (mut outage, mut sent_again) = (self.outages.of_request(), false);
        loop {
            let request = self.queue.ask::<_, SubmitBatchReply>(Verb::CallSubmit, &message, REQUEST);
            let Some(answer) = self.unless_interrupted(request).await else { return Ok(None) };
            let error = match answer {
                Ok(reply) if reply.results.iter().any(connect::is_retryable) => {
                    ApiError::new(Code::Unavailable, "the database is not available")
                }
                Ok(reply) => return Ok(Some(Answer { reply, sent_again })),
                Err(error) if error.is_retryable() => connect::user_error(error),
                Err(error) => return Err(connect::api(error)),
            };
            sent_again = true;
            match self.unless_interrupted(outage.wait(error)).await {
                Some(waited) => waited?,
                None => return Ok(None),
            }
        }
    }

    /// Waits for something, but not for long after an interruption.
    async fn unless_interrupted<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let patience = async {
            self.interrupted.cancelled().await;
            tokio::time::sleep(LAST_ANSWERS).await;
        };
        tokio::select! {
            done = work => Some(done),
            () = patience => None,
        }
    }
}

fn progress(bytes: Option<u64>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, form) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:30} {percent:>3} %  {msg}  {elapsed_precise}  eta {eta}"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes}  {msg}  {elapsed_precise}"),
    };
    bar.with_style(ProgressStyle::with_template(form).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_two_lines_counts_once_whichever_of_them_wrote_it() {
        let (call, now) = (CallId::generate(), Utc::now());
        let answer = |status, sent_again| {
            let any = SubmitResult::rejected(ApiError::new(Code::InvalidMessage, "replaced"));
            let result = SubmitResult { status, call: Some(call), submitted_at: Some(now), error: None, ..any };
            Answer { reply: SubmitBatchReply { results: vec![result], time: Some(now) }, sent_again }
        };
        let (accepted, existing) = (SubmitStatus::Accepted, SubmitStatus::Existing);
        for answers in [
            [answer(accepted, false), answer(existing, false)],
            [answer(existing, false), answer(accepted, false)],
            [answer(existing, true), answer(existing, true)],
            [answer(existing, true), answer(accepted, false)],
            [answer(accepted, true), answer(existing, true)],
        ] {
            let mut tally = Tally { began: Some(now), ..Tally::default() };
            for answer in &answers {
                tally.count(vec![(1, None)], Some(answer), &ProgressBar::hidden()).unwrap();
            }
            assert_eq!((tally.accepted, tally.existing), (1, 1));
        }
    }
}
