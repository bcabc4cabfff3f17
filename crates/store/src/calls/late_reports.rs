//! Stores late reports, for the audit.

use std::collections::HashSet;

use redial_proto::{CallId, Failure, JobRef, WorkerId, limits};
use uuid::Uuid;

use crate::{
    StoreError,
    columns::{clean, column, int, uint},
    connect::{Store, Transaction},
    on_record::{OnRecord, lock_on_record},
};

/// Bytes of outputs in one statement. A larger output gets its own.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Late reports that a call has at most with one of an attempt that its sender never had.
const FOREIGN: i64 = 10;

/// A report of an attempt that is no longer its worker's.
#[derive(Clone, Debug)]
pub struct LateReport {
    pub job: JobRef,
    pub worker: WorkerId,
    /// The output that it reports, valid JSON, or the failure.
    pub result: Result<String, Failure>,
}

impl Store {
    /// Keeps late reports of calls that are on record, except those whose attempt ended with just that report: they were only sent
    /// twice. Of one call and attempt the first report of a worker is kept; of attempts that the worker never had a few.
    /// Returns the attempts of those that are kept. Safe to repeat.
    pub async fn insert_late_reports(&self, reports: &[LateReport]) -> Result<Vec<JobRef>, StoreError> {
        let mut seen = HashSet::new();
        let mut rest: Vec<&LateReport> = reports.iter().filter(|r| seen.insert((r.job, &r.worker))).collect();
        let mut kept = Vec::new();
        while !rest.is_empty() {
            let next: Vec<&LateReport> = rest.drain(..fitting(&rest)).collect();
            let keep = || async {
                let mut transaction = self.begin().await?;
                let kept = insert(&mut transaction, &next).await?;
                transaction.commit().await?;
                Ok(kept)
            };
            kept.extend(self.run_again(keep).await?);
        }
        Ok(kept)
    }
}

/// Counts the reports that fit one statement; at least one.
fn fitting(reports: &[&LateReport]) -> usize {
    let size = |report: &&LateReport| report.result.as_ref().map_or(limits::MAX_ERROR_MESSAGE, String::len);
    limits::fitting(reports.iter().map(size), limits::MAX_BATCH, MAX_BYTES)
}

async fn insert(transaction: &mut Transaction, reports: &[&LateReport]) -> Result<Vec<JobRef>, sqlx::Error> {
    let on_record = lock_on_record(transaction, reports.iter().map(|report| report.job.call.0)).await?;
    let known: Vec<(&LateReport, &OnRecord)> =
        reports.iter().filter_map(|report| Some((*report, on_record.get(&report.job.call.0)?))).collect();
    if known.is_empty() {
        return Ok(Vec::new());
    }
    let is_held = |report: &LateReport, call: &OnRecord| {
        call.attempt == int(report.job.attempt) && call.worker.as_deref() == Some(report.worker.as_str())
    };
    let failures: Vec<Option<&Failure>> = column(&known, |(report, _)| report.result.as_ref().err());
    let rows = sqlx::query_file!(
        "sql/insert_late_reports.sql",
        &column(&known, |(report, _)| report.job.call.0),
        &column(&known, |(report, _)| int(report.job.attempt)),
        &column(&known, |(report, _)| report.worker.as_str()) as &[&str],
        &column(&failures, |failure| failure.map(|failure| failure.class.as_str())) as &[Option<&str>],
        &column(&failures, |failure| failure.map(|failure| clean(&failure.for_the_record()))) as &[Option<String>],
        &column(&known, |(report, _)| report.result.as_deref().ok()) as &[Option<&str>],
        &column(&known, |(report, call)| is_held(report, call)),
        FOREIGN,
    );
    let rows = rows.fetch_all(&mut **transaction).await?;
    let job = |id: Uuid, attempt| JobRef { call: CallId(id), attempt: uint(attempt) };
    Ok(rows.into_iter().map(|row| job(row.call_id, row.attempt)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_bounded_by_reports_and_bytes() {
        let report = |bytes: usize| LateReport {
            job: JobRef { call: CallId::generate(), attempt: 1 },
            worker: "w-1".parse().unwrap(),
            result: Ok("1".repeat(bytes)),
        };
        let fits = |reports: &[LateReport]| fitting(&reports.iter().collect::<Vec<_>>());
        assert_eq!(fits(&vec![report(1); 3_000]), 1_000);
        assert_eq!(fits(&vec![report(500_000); 100]), 8);
        assert_eq!(fits(&[report(16 * 1024 * 1024), report(1)]), 1, "a huge one goes alone");
    }
}
