//! Reads reports out of messages. What cannot be taken is kept with its message, as one dead letter; a message that a newer version can
//! take is left to it.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use redial_proto::{
    ApiError, Code, ErrorClass, Failure, GrantRef, Outcome, Report, ReportBatch, WorkerId, limits,
    subjects::results_identity,
};
use redial_queue::Delivery;
use redial_store::{DeadLetter, Rejections};
use redial_telemetry::set_aside;

/// How long a message may be left to a dispatcher of a newer version, counted from when it was sent. Afterwards what this version cannot
/// read of it is wrong like anything else: nobody else has read it, and it must not stay on the stream without an end.
const MAY_BE_LEFT: TimeDelta = TimeDelta::hours(1);

pub(super) struct Decoded {
    pub(super) reports: Vec<Reported>,
    /// What is wrong, by the position of its message in the batch.
    rejected: BTreeMap<usize, Rejections>,
    /// What only a newer version can read, by the position of its message. The rest of these messages is stored; a newer version
    /// finds it on record.
    left: BTreeMap<usize, String>,
    /// Reports that could not be stored now, because others hold their calls locked.
    pub(super) locked: HashSet<GrantRef>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// All of it that this version can take is on record.
    Stored,
    /// The rest is stored; it is delivered again for what is locked.
    Locked,
    /// The rest is stored; it is left to a newer version.
    Left,
}

#[derive(Clone, Copy)]
pub(super) struct ResultMessage<'a> {
    pub(super) subject: &'a str,
    pub(super) payload: &'a [u8],
    /// Its sender is of a newer version.
    pub(super) is_newer: bool,
    pub(super) sent_at: DateTime<Utc>,
    /// How long ago it was left to a newer version before.
    pub(super) left_before: Option<Duration>,
}

/// One report, ready to be stored.
#[derive(Clone)]
pub(super) struct Reported {
    /// The position of its message.
    message: usize,
    pub(super) grant: GrantRef,
    pub(super) worker: WorkerId,
    pub(super) duration_ms: u64,
    pub(super) outcome: Outcome,
}

/// Reads messages. An output of more than `most` bytes becomes an error. `has_room` says whether one more may be left to a newer version.
pub(super) fn decode<'a>(
    messages: impl Iterator<Item = ResultMessage<'a>>,
    now: DateTime<Utc>,
    most: usize,
    has_room: impl Fn(&ResultMessage<'a>) -> bool,
) -> Decoded {
    let mut decoded =
        Decoded { reports: Vec::new(), rejected: BTreeMap::new(), left: BTreeMap::new(), locked: HashSet::new() };
    let mut seen = HashSet::new();
    for (message, result) in messages.enumerate() {
        let subject = result.subject;
        let may_be_left = || result.is_newer && now - result.sent_at < MAY_BE_LEFT && has_room(&result);
        let batch: ReportBatch = match serde_json::from_slice(result.payload) {
            Ok(batch) => batch,
            Err(error) => {
                decoded.unreadable(message, None, may_be_left, format!("not a batch of reports: {error}"));
                continue;
            }
        };
        // The server fixes the subject, so it says who sent this, whatever the message says.
        if results_identity(subject).is_none_or(|identity| identity != batch.worker.identity()) {
            let why = format!("worker {} is not of the identity in the subject {subject}", batch.worker);
            decoded.reject(message, None, why);
            continue;
        }
        if batch.reports.len() > limits::MAX_CLAIM {
            let (found, most) = (batch.reports.len(), limits::MAX_CLAIM);
            decoded.reject(message, None, format!("reports holds {found} reports; allowed: {most}"));
            continue;
        }
        for (position, raw) in batch.reports.iter().enumerate() {
            match read_report(raw.get(), most) {
                // Sent twice within one batch: the first counts.
                Ok((grant, ..)) if !seen.insert((grant, batch.worker.clone())) => {}
                Ok((grant, duration_ms, outcome)) => {
                    let worker = batch.worker.clone();
                    decoded.reports.push(Reported { message, grant, worker, duration_ms, outcome });
                }
                Err(error) => {
                    decoded.unreadable(message, Some(position), may_be_left, format!("not a report: {error}"));
                }
            }
        }
    }
    decoded
}

impl Decoded {
    fn reject(&mut self, message: usize, position: Option<usize>, why: String) {
        self.rejected.entry(message).or_default().add(position, &ApiError::new(Code::InvalidMessage, why));
    }

    /// Leaves a message to a newer version, or rejects what this one cannot read of it.
    fn unreadable(&mut self, message: usize, position: Option<usize>, may_be_left: impl FnOnce() -> bool, why: String) {
        if self.left.contains_key(&message) || may_be_left() {
            self.left.entry(message).or_insert(why);
        } else {
            self.reject(message, position, why);
        }
    }

    pub(super) fn fate(&self, message: usize) -> Fate {
        let mut own = self.reports.iter().filter(|report| report.message == message);
        if !self.locked.is_empty() && own.any(|report| self.locked.contains(&report.grant)) {
            Fate::Locked
        } else if self.left.contains_key(&message) {
            Fate::Left
        } else {
            Fate::Stored
        }
    }

    pub(super) fn stored(&self) -> impl Iterator<Item = &Reported> {
        self.reports.iter().filter(|report| !self.locked.contains(&report.grant))
    }

    /// Logs what is left to a newer version.
    pub(super) fn tell_left(&self, batch: &[Delivery]) {
        if let Some((message, why)) = self.left.first_key_value() {
            set_aside("reports", self.left.len(), &batch[*message].subject(), why);
        }
    }

    /// Logs what becomes dead letters: in one line for each worker identity, because one of them may send nothing else.
    fn tell_rejected(&self, batch: &[Delivery]) {
        let mut by_identity = BTreeMap::<String, Vec<&Rejections>>::new();
        for (message, rejections) in self.rejected.iter().filter(|(message, _)| self.fate(**message) == Fate::Stored) {
            let identity = results_identity(batch[*message].subject()).map(|identity| identity.to_string());
            by_identity.entry(identity.unwrap_or_default()).or_default().push(rejections);
        }
        for (identity, rejections) in by_identity {
            let (messages, (_, why)) = (rejections.len(), rejections[0].first());
            let (errors, why): (u64, _) =
                (rejections.iter().map(|one| u64::from(one.count())).sum(), limits::shorten(why, 200));
            tracing::error!(identity, messages, errors, %why, "Keeping messages as dead letters because of some of their reports");
        }
    }

    /// Makes one dead letter for each message in which something was rejected, unless a newer version will do that.
    pub(super) fn dead_letters(&self, batch: &[Delivery]) -> Vec<DeadLetter> {
        self.tell_rejected(batch);
        let letter = |(message, rejections): (&usize, &Rejections)| {
            let delivery = &batch[*message];
            DeadLetter::of_results(delivery.subject(), delivery.payload.to_vec(), rejections.clone())
        };
        self.rejected.iter().filter(|(message, _)| self.fate(**message) == Fate::Stored).map(letter).collect()
    }
}

fn read_report(raw: &str, most: usize) -> Result<(GrantRef, u64, Outcome), String> {
    let report: Report = serde_json::from_str(raw).map_err(|error| error.to_string())?;
    let (grant, duration_ms) = (report.grant_ref(), report.duration_ms);
    Ok((grant, duration_ms, within_limits(report.outcome()?, most)))
}

/// Keeps an outcome within the limits, which a worker in another language may exceed: its attempt then ends with an
/// error instead of a result that the database always refuses.
fn within_limits(outcome: Outcome, most: usize) -> Outcome {
    let failure = |class, message| Outcome::Failure(Failure::new(class, message));
    match outcome {
        Outcome::Success(output) if output.get().len() > most => failure(
            ErrorClass::OutputTooLarge,
            format!("the result takes {} bytes; allowed: {most}", output.get().len()),
        ),
        Outcome::Success(output) if limits::json_depth(output.get()) > limits::MAX_DEPTH => failure(
            ErrorClass::OutputInvalid,
            format!("the result nests deeper than {} arrays and objects", limits::MAX_DEPTH),
        ),
        Outcome::Failure(failure) => Outcome::Failure(failure.within_limits()),
        fits @ Outcome::Success(_) => fits,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::left_bytes::LeftBytes;

    #[test]
    fn a_message_has_at_most_256_reports() {
        let report =
            || json!({"call": Uuid::now_v7(), "attempt": 1, "claim": Uuid::now_v7(), "duration_ms": 1, "output": 1});
        let message = |reports: usize| {
            let reports: Vec<_> = (0..reports).map(|_| report()).collect();
            json!({"worker": "tools-000000000001", "reports": reports}).to_string()
        };
        let (most, more) = (message(256), message(257));
        let decoded =
            decode([sent(&most, false), sent(&more, false)].into_iter(), Utc::now(), limits::MAX_PAYLOAD, |_| true);
        assert_eq!(decoded.reports.len(), 256);
        assert_eq!(decoded.rejected.into_keys().collect::<Vec<_>>(), [1]);
    }

    fn sent(payload: &str, is_newer: bool) -> ResultMessage<'_> {
        let subject = "redial.results.tools";
        ResultMessage { subject, payload: payload.as_bytes(), is_newer, sent_at: Utc::now(), left_before: None }
    }

    #[test]
    fn what_a_newer_version_can_read_is_left_to_it_for_an_hour() {
        let report = |class: &str| {
            json!({
                "call": Uuid::now_v7(), "attempt": 1, "claim": Uuid::now_v7(), "duration_ms": 1, "mood": "calm",
                "error": {"class": class, "message": ""},
            })
        };
        let odd = json!({"worker": "tools-000000000001", "reports": [report("tired"), report("auth")]}).to_string();
        let (other, now) = (r#"{"v2":[]}"#.to_owned(), Utc::now());
        let messages = [sent(&odd, true), sent(&other, true), sent(&odd, false)];
        let decoded = decode(messages.into_iter(), now, limits::MAX_PAYLOAD, |_| true);
        assert_eq!(decoded.reports.len(), 1, "what can be read is taken");
        assert_eq!(decoded.left.into_keys().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(decoded.rejected.into_keys().collect::<Vec<_>>(), [2], "of an own version it is wrong");
        let later =
            decode(messages.into_iter(), now + MAY_BE_LEFT + TimeDelta::seconds(1), limits::MAX_PAYLOAD, |_| true);
        assert_eq!((later.left.len(), later.rejected.len()), (0, 3));
    }

    #[test]
    fn an_identity_has_a_sixteenth_of_the_stream_for_what_is_left() {
        let (left, large) = (LeftBytes::default(), " ".repeat(1024 * 1024));
        let messages = || std::iter::repeat_n(sent(&large, true), 100);
        let decoded = decode(messages(), Utc::now(), limits::MAX_PAYLOAD, |message| {
            left.has_room(message.subject, message.payload.len(), None, Instant::now())
        });
        assert_eq!((decoded.left.len(), decoded.rejected.len()), (64, 36));
        let other = ResultMessage { subject: "redial.results.other", ..sent(&large, true) };
        let decoded = decode([other].into_iter(), Utc::now(), limits::MAX_PAYLOAD, |message| {
            left.has_room(message.subject, message.payload.len(), None, Instant::now())
        });
        assert_eq!(decoded.left.len(), 1, "what one left is not in the way of another");
    }
}
