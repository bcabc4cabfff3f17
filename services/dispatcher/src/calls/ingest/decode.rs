//! Reads reports out of messages. What cannot be taken is kept with its message, as one dead letter.

use std::collections::{BTreeMap, HashSet};

use redial_proto::{
    ApiError, Code, ErrorClass, Failure, GrantRef, Outcome, Report, ReportBatch, WorkerId, limits,
    subjects::results_identity,
};
use redial_queue::Delivery;
use redial_store::{DeadLetter, Rejections, UnreadableCall};

use crate::error;

/// What a batch of messages holds.
pub(super) struct Decoded {
    pub(super) reports: Vec<Reported>,
    /// What is wrong, by the position of its message in the batch.
    pub(super) rejected: BTreeMap<usize, Rejections>,
}

/// One report, ready to be stored.
#[derive(Clone)]
pub(super) struct Reported {
    pub(super) grant: GrantRef,
    pub(super) worker: WorkerId,
    pub(super) duration_ms: u64,
    pub(super) outcome: Outcome,
    pub(super) entry: Entry,
}

/// Where a report stands: its message in the batch, and its position in the message.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    message: usize,
    position: usize,
}

/// Reads messages. An output of more than `most` bytes becomes an error.
pub(super) fn decode<'a>(messages: impl Iterator<Item = (&'a str, &'a [u8])>, most: usize) -> Decoded {
    let mut decoded = Decoded { reports: Vec::new(), rejected: BTreeMap::new() };
    let mut seen = HashSet::new();
    for (message, (subject, payload)) in messages.enumerate() {
        let batch: ReportBatch = match serde_json::from_slice(payload) {
            Ok(batch) => batch,
            Err(error) => {
                decoded.reject(message, None, format!("not a batch of reports: {error}"));
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
                    let (worker, entry) = (batch.worker.clone(), Entry { message, position });
                    decoded.reports.push(Reported { grant, worker, duration_ms, outcome, entry });
                }
                Err(error) => decoded.reject(message, Some(position), format!("not a report: {error}")),
            }
        }
    }
    decoded
}

impl Decoded {
    fn reject(&mut self, message: usize, position: Option<usize>, why: String) {
        self.rejected.entry(message).or_default().add(position, &ApiError::new(Code::InvalidMessage, why));
    }

    /// Rejects a report of a call whose row cannot be read.
    pub(super) fn reject_unreadable(&mut self, entry: Entry, call: &UnreadableCall) {
        let rejections = self.rejected.entry(entry.message).or_default();
        rejections.add(Some(entry.position), &error::unreadable(call));
    }

    /// One dead letter for each message in which something was rejected.
    pub(super) fn dead_letters(&self, batch: &[Delivery]) -> Vec<DeadLetter> {
        let letter = |(message, rejections): (&usize, &Rejections)| {
            let delivery = &batch[*message];
            DeadLetter::of_results(delivery.subject(), delivery.payload.to_vec(), rejections.clone())
        };
        self.rejected.iter().map(letter).collect()
    }
}

fn read_report(raw: &str, most: usize) -> Result<(GrantRef, u64, Outcome), String> {
    let report: Report = serde_json::from_str(raw).map_err(|error| error.to_string())?;
    let (grant, duration_ms) = (report.grant_ref(), report.duration_ms);
    Ok((grant, duration_ms, within_limits(report.outcome()?, most)))
}

/// A worker in another language may not keep the limits: its attempt then ends with an error instead of a result that
/// the database always refuses.
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
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_message_has_at_most_256_reports() {
        let report =
            || json!({"call": Uuid::now_v7(), "attempt": 1, "claim": Uuid::now_v7(), "duration_ms": 1, "output": 1});
        let message = |reports: usize| {
            let reports: Vec<_> = (0..reports).map(|_| report()).collect();
            json!({"worker": "tools-000000000001", "reports": reports}).to_string()
        };
        let (most, more) = (message(256), message(257));
        let subject = "redial.results.tools";
        let decoded = decode([(subject, most.as_bytes()), (subject, more.as_bytes())].into_iter(), limits::MAX_PAYLOAD);
        assert_eq!(decoded.reports.len(), 256);
        assert_eq!(decoded.rejected.into_keys().collect::<Vec<_>>(), [1]);
    }
}
