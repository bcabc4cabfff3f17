//! `redial submit`: submits each line of a file.
//!
//! A line without a key gets one made of the file's name, the line's number and its text. So the same file can be
//! submitted again after a crash, a Ctrl-C or an outage: calls that are on record are found by their keys.

use std::{
    collections::HashSet,
    io::{BufRead, BufReader, IsTerminal, Read},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures_util::{StreamExt, stream::FuturesOrdered};
use indicatif::{ProgressBar, ProgressStyle};
use redial_proto::{
    ApiError, CallId, Code, Submission, SubmitBatch, SubmitBatchReply, SubmitResult, SubmitStatus, subjects,
};
use redial_queue::Queue;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::SubmitArgs,
    connect::{self, Outage, REQUEST},
    exit, output,
    settings::Settings,
};

/// Batches that wait for their replies at the same time.
const PENDING: usize = 8;
/// Bytes of lines in one request; NATS accepts 1 MiB.
const MAX_BYTES: usize = 700 * 1024;
/// After an interruption, answers that are under way are waited for so long.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// A longer line cannot be a submission.
const LONGEST_LINE: u64 = 1024 * 1024;

pub(crate) async fn run(settings: &Settings, args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    let interrupted = connect::shutdown()?;
    let mut lines = Lines::open(&args.file, args.name.as_deref())?;
    let sender = Sender { queue: connect::queue(settings).await?, interrupted };
    // Whatever is on record since then in a batch that had to be sent again, its own first try wrote.
    let Some(Answer { reply: SubmitBatchReply { time: began, .. }, .. }) = sender.send(Vec::new()).await? else {
        return report(settings, &Tally::default(), true);
    };
    let bar = progress(lines.bytes);
    let mut tally = Tally { json: settings.json(), began, ..Tally::default() };
    let mut pending = FuturesOrdered::new();
    loop {
        while pending.len() < PENDING && !sender.interrupted.is_cancelled() {
            let batch = lines.batch(args.batch as usize, &mut tally, &bar)?;
            if batch.is_empty() {
                break;
            }
            let (numbers, calls): (Vec<u64>, Vec<Box<RawValue>>) = batch.into_iter().unzip();
            let sender = &sender;
            pending.push_back(async move { (numbers, sender.send(calls).await) });
        }
        let Some((numbers, answer)) = pending.next().await else { break };
        match answer? {
            Some(answer) => tally.count(&numbers, &answer, &bar)?,
            None => tally.unanswered += numbers.len(),
        }
    }
    bar.finish_and_clear();
    report(settings, &tally, sender.interrupted.is_cancelled())
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

/// What became of the lines of the file.
#[derive(Default)]
struct Tally {
    accepted: u64,
    existing: u64,
    /// The calls that are counted as accepted, so that two lines with one key count once.
    new: HashSet<CallId>,
    refused: u64,
    rejected: u64,
    /// Sent, and interrupted before an answer came: perhaps on record.
    unanswered: usize,
    /// The database's time when the command began.
    began: Option<DateTime<Utc>>,
    json: bool,
}

impl Tally {
    fn count(&mut self, numbers: &[u64], answer: &Answer, bar: &ProgressBar) -> anyhow::Result<()> {
        for (number, result) in numbers.iter().zip(&answer.reply.results) {
            match result.status {
                SubmitStatus::Accepted => {
                    self.new.extend(result.call);
                    self.accepted += 1;
                }
                SubmitStatus::Existing if self.wrote_it_before(answer, result) => self.accepted += 1,
                SubmitStatus::Existing => self.existing += 1,
                SubmitStatus::Refused => self.refused += 1,
                SubmitStatus::Rejected => self.rejected += 1,
            }
            if let Some(error) = &result.error {
                self.problem(*number, result.status, error, bar)?;
            }
        }
        bar.set_message(format!("{} accepted", self.accepted));
        Ok(())
    }

    /// True if a lost try of this command wrote the call, and no line was counted for it yet.
    fn wrote_it_before(&mut self, answer: &Answer, result: &SubmitResult) -> bool {
        let since_begin = answer.sent_again && result.submitted_at >= self.began;
        since_begin && result.call.is_some_and(|call| self.new.insert(call))
    }

    fn bad_line(&mut self, number: u64, error: String, bar: &ProgressBar) -> anyhow::Result<()> {
        self.rejected += 1;
        self.problem(number, SubmitStatus::Rejected, &ApiError::new(Code::InvalidMessage, error), bar)
    }

    fn problem(&self, line: u64, status: SubmitStatus, error: &ApiError, bar: &ProgressBar) -> anyhow::Result<()> {
        if self.json {
            return output::json(&serde_json::json!({"line": line, "status": status, "error": error}));
        }
        bar.suspend(|| output::note(format!("line {line}: {error}")));
        Ok(())
    }
}

/// Numbered lines of one request.
type Batch = Vec<(u64, Box<RawValue>)>;

struct Lines {
    reader: Box<dyn BufRead>,
    name: Option<String>,
    number: u64,
    bytes: Option<u64>,
    /// A line that did not fit into the last batch.
    left: Option<(u64, Box<RawValue>)>,
}

impl Lines {
    fn open(path: &Path, name: Option<&str>) -> Result<Self, ApiError> {
        if path == Path::new("-") {
            let name = name.map(str::to_owned);
            if name.is_none() {
                output::note(
                    "standard input has no name, so a second run submits lines without a key again; see --name",
                );
            }
            return Ok(Self {
                reader: Box::new(BufReader::new(std::io::stdin())),
                name,
                number: 0,
                bytes: None,
                left: None,
            });
        }
        let wrong = |error: std::io::Error| {
            ApiError::new(
                Code::InvalidValue,
                format!("{}: {error}; allowed: a file with one JSON submission on each line", path.display()),
            )
        };
        let file = std::fs::File::open(path).map_err(wrong)?;
        let bytes = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|data| data.len());
        let whole = std::fs::canonicalize(path).map_err(wrong)?;
        let name = name.map_or_else(|| whole.display().to_string(), str::to_owned);
        Ok(Self {
            reader: Box::new(BufReader::with_capacity(1 << 18, file)),
            name: Some(name),
            number: 0,
            bytes,
            left: None,
        })
    }

    /// The next valid lines that fit one request; invalid ones are counted and reported.
    fn batch(&mut self, most: usize, tally: &mut Tally, bar: &ProgressBar) -> anyhow::Result<Batch> {
        let mut batch: Batch = Vec::with_capacity(most);
        let mut bytes = 0;
        while batch.len() < most {
            let (number, line) = match self.left.take() {
                Some(line) => line,
                None => match self.next(tally, bar)? {
                    Some(line) => line,
                    None => break,
                },
            };
            bytes += line.get().len();
            if bytes > MAX_BYTES && !batch.is_empty() {
                self.left = Some((number, line));
                break;
            }
            batch.push((number, line));
        }
        Ok(batch)
    }

    fn next(&mut self, tally: &mut Tally, bar: &ProgressBar) -> anyhow::Result<Option<(u64, Box<RawValue>)>> {
        loop {
            let mut line = Vec::new();
            let read = self.reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(None);
            }
            bar.inc(read as u64);
            self.number += 1;
            if read as u64 == LONGEST_LINE && line.last() != Some(&b'\n') {
                self.reader.skip_until(b'\n')?;
                tally.bad_line(self.number, "longer than 1 MiB".to_owned(), bar)?;
                continue;
            }
            match self.submission(line.trim_ascii_end()) {
                Ok(Some(line)) => return Ok(Some((self.number, line))),
                Ok(None) => {}
                Err(error) => tally.bad_line(self.number, error, bar)?,
            }
        }
    }

    /// The line as a submission with a key; `None` for an empty line.
    fn submission(&self, line: &[u8]) -> Result<Option<Box<RawValue>>, String> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let text = std::str::from_utf8(line)
            .map_err(|error| format!("byte {} is not UTF-8; expected JSON in UTF-8", error.valid_up_to() + 1))?;
        let mut submission: Submission =
            serde_json::from_str(text).map_err(|error| redial_files::json_mistake(text, &error).to_string())?;
        if submission.key.is_none() {
            submission.key = Some(self.key(line));
        }
        serde_json::value::to_raw_value(&submission).map(Some).map_err(|error| error.to_string())
    }

    fn key(&self, line: &[u8]) -> String {
        let Some(name) = &self.name else { return format!("cli-{}", uuid::Uuid::new_v4()) };
        let mut hash = Sha256::new();
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(self.number.to_le_bytes());
        hash.update(line.trim_ascii());
        let digest = hash.finalize();
        format!("file-{}", uuid::Uuid::from_slice(&digest[..16]).unwrap_or_default().simple())
    }
}

struct Sender {
    queue: Queue,
    interrupted: CancellationToken,
}

struct Answer {
    reply: SubmitBatchReply,
    /// An earlier try had no answer, or none for all of its calls: it may have written some of them.
    sent_again: bool,
}

impl Sender {
    /// Sends a batch until it is answered; the keys make that safe. `None`: interrupted before.
    async fn send(&self, calls: Vec<Box<RawValue>>) -> anyhow::Result<Option<Answer>> {
        let message = SubmitBatch { calls };
        let (mut outage, mut sent_again) = (Outage::new(), false);
        loop {
            let request = self.queue.request::<_, SubmitBatchReply>(subjects::SUBMIT, &message, REQUEST);
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
