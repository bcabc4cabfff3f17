//! Calls per second: batches, statements, messages.

use redial_proto::limits::MAX_CLAIM;

use super::{
    idle::idle,
    inputs as given,
    numbers::{batch, float},
    table::Table,
    windows::pack,
};

/// What a load costs, per second.
#[derive(Debug)]
pub(super) struct Load {
    /// Jobs in a message.
    pub(super) pack: f64,
    /// Jobs in a claim.
    pub(super) claim: f64,
    /// Claims in a statement; `None`: more arrive than can be granted.
    pub(super) claims: Option<f64>,
    /// Statements that write, heartbeats included.
    pub(super) writes: Option<f64>,
    pub(super) messages: f64,
}

/// Each call is submitted in a request of its own, and workers are not busy.
pub(super) fn load(rate: f64, dispatchers: f64, workers: f64) -> Load {
    let each = rate / dispatchers;
    let alone = given::COMMIT.value;
    // What a further call in a statement takes.
    let further = (given::WRITTEN_TOGETHER.value - given::WRITTEN_ALONE.value) / 199.0 / 1_000.0;
    let at_once = given::CLAIMS_AT_ONCE.value;
    let submitted = batch(each, at_once, (alone, further), given::SUBMISSIONS.value);
    // What one batch of submissions wrote is published together.
    let pack = pack(workers, submitted.unwrap_or(given::SUBMISSIONS.value));
    let of_worker = rate / workers * given::CYCLE.value;
    let claim = pack.max(of_worker).clamp(1.0, float(MAX_CLAIM as u64));
    let reported = of_worker.max(1.0).min(float(MAX_CLAIM as u64));
    let claims = batch(each / claim, at_once, (alone, further * claim), given::CLAIMS.value);
    let reports = batch(each / reported, at_once, (alone, further * reported), given::REPORTS.value);
    // A worker that runs something sends two statements with its heartbeat.
    let beats = idle(dispatchers, workers).beats * 2.0;
    let writes = submitted.zip(claims).zip(reports).map(|((submitted, claims), reports)| {
        rate / submitted + rate / claim / claims + rate / reported / reports + beats
    });
    // Requests and their answers are four each: a submission, a claim. A message on a stream is taken, confirmed, pulled, delivered and
    // acknowledged. A worker is told in two that its reports are on record.
    let messages = rate * 4.0 + rate / claim * 4.0 + rate / pack * 5.0 + rate / reported * (5.0 + 2.0);
    Load { pack, claim, claims, writes, messages: messages + idle(dispatchers, workers).messages }
}

/// Cores of Postgres. What a call costs was measured in batches, so that each further statement is added, with what a claim of one call
/// takes and a commit.
fn cores(rate: f64, writes: f64, dispatchers: f64, workers: f64) -> f64 {
    let idle = idle(dispatchers, workers);
    let statement = given::WRITTEN_ALONE.value / 1_000.0 + given::BEAT.value;
    rate * given::PER_CALL.value + (writes - idle.beats * 2.0) * statement + idle.beats * given::BEAT.value + idle.cores
}

pub(super) fn table() -> Table {
    let title = "(d) under load, each call a request of its own: per second";
    let columns = vec![
        "calls/s",
        "dispatchers",
        "workers",
        "jobs in a message",
        "in a claim",
        "claims in a statement",
        "statements that write",
        "cores",
        "NATS messages",
        "hours to vacuum against wraparound",
        "days to wraparound",
    ];
    let mut table = Table::new(title, columns);
    for rate in [1_000.0, 10_000.0] {
        for dispatchers in [1.0, 10.0, 100.0] {
            for workers in [10.0, 100.0, 1_000.0, 10_000.0] {
                let load = load(rate, dispatchers, workers);
                let hours = |age: f64| load.writes.map(|writes| age / writes / 3_600.0);
                table.add(vec![
                    rate.into(),
                    dispatchers.into(),
                    workers.into(),
                    load.pack.into(),
                    load.claim.into(),
                    load.claims.into(),
                    load.writes.into(),
                    load.writes.map(|writes| cores(rate, writes, dispatchers, workers)).into(),
                    load.messages.into(),
                    hours(given::FREEZE.value).into(),
                    hours(given::WRAPAROUND.value).map(|hours| hours / 24.0).into(),
                ]);
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_dispatchers_make_smaller_batches() {
        let writes = |dispatchers| load(10_000.0, dispatchers, 1_000.0).writes.unwrap();
        assert!(writes(100.0) > 2.0 * writes(1.0), "{} {}", writes(1.0), writes(100.0));
    }
}
