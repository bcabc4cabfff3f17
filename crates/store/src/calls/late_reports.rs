//! Stores late reports, for the audit.

use redial_proto::{CallId, Failure, JobRef, WorkerId};
use uuid::Uuid;

use crate::{
    StoreError,
    columns::{clean, int, uint},
    connect::Store,
};

/// A report of an attempt that is no longer its worker's.
#[derive(Clone, Debug)]
pub struct LateReport {
    /// The attempt.
    pub job: JobRef,
    /// Its sender.
    pub worker: WorkerId,
    /// The output that it reports, valid JSON, or the failure.
    pub result: Result<String, Failure>,
}

impl Store {
    /// Keeps late reports, except those whose attempt ended with just that report: they were only sent twice. Returns
    /// the attempts of those that are kept.
    pub async fn insert_late_reports(&self, reports: &[LateReport]) -> Result<Vec<JobRef>, StoreError> {
        let ids: Vec<Uuid> = reports.iter().map(|r| r.job.call.0).collect();
        let attempts: Vec<i32> = reports.iter().map(|r| int(r.job.attempt)).collect();
        let workers: Vec<&str> = reports.iter().map(|r| r.worker.as_str()).collect();
        let failures: Vec<Option<&Failure>> = reports.iter().map(|r| r.result.as_ref().err()).collect();
        let classes: Vec<Option<&str>> = failures.iter().map(|f| f.map(|f| f.class.as_str())).collect();
        let messages: Vec<Option<String>> = failures.iter().map(|f| f.map(|f| clean(&f.for_the_record()))).collect();
        let outputs: Vec<Option<&str>> = reports.iter().map(|r| r.result.as_deref().ok()).collect();
        let rows = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let done = sqlx::query_file!(
                    "sql/insert_late_reports.sql",
                    &ids,
                    &attempts,
                    &workers as &[&str],
                    &classes as &[Option<&str>],
                    &messages as &[Option<String>],
                    &outputs as &[Option<&str>],
                )
                .fetch_all(&mut *db)
                .await?;
                Ok(db.done(done))
            })
            .await?;
        let job = |id, attempt| JobRef { call: CallId(id), attempt: uint(attempt) };
        Ok(rows.into_iter().map(|row| job(row.call_id, row.attempt)).collect())
    }
}
