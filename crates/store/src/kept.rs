//! What could not be taken, kept for people.

use redial_proto::{CallId, Code, ErrorClass, JobRef, WorkerId};
use uuid::Uuid;

use crate::{Store, StoreError, clean, int};

/// A report of an attempt that is no longer its worker's.
#[derive(Clone, Debug)]
pub struct LateReport {
    /// The attempt.
    pub job: JobRef,
    /// Who sent it.
    pub worker: WorkerId,
    /// Why the attempt failed, by its worker.
    pub failure: Option<(ErrorClass, String)>,
    /// Its result, by its worker; valid JSON.
    pub output: Option<String>,
}

/// A message that is no submission or no report.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// `intake` or `results`.
    pub source: &'static str,
    /// Why.
    pub code: Code,
    /// The same in words.
    pub message: String,
    /// The message as it came.
    pub payload: Vec<u8>,
}

impl Store {
    /// Keeps late reports, except those whose attempt ended with just that report: they were only sent twice.
    /// Returns the attempts that really came late.
    pub async fn keep_late(&self, reports: &[LateReport]) -> Result<Vec<JobRef>, StoreError> {
        let ids: Vec<Uuid> = reports.iter().map(|r| r.job.call.0).collect();
        let attempts: Vec<i32> = reports.iter().map(|r| int(r.job.attempt)).collect();
        let workers: Vec<&str> = reports.iter().map(|r| r.worker.as_str()).collect();
        let classes: Vec<Option<&str>> = reports.iter().map(|r| r.failure.as_ref().map(|f| f.0.as_str())).collect();
        let messages: Vec<Option<String>> = reports.iter().map(|r| r.failure.as_ref().map(|f| clean(&f.1))).collect();
        let outputs: Vec<Option<&str>> = reports.iter().map(|r| r.output.as_deref()).collect();
        let rows = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let done = sqlx::query!(
                    r#"INSERT INTO late_reports (call_id, attempt, worker, class, message, output)
                       SELECT i.id, i.attempt, i.worker, i.class, i.message, i.output::json
                       FROM UNNEST($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[])
                           AS i (id, attempt, worker, class, message, output)
                       WHERE NOT EXISTS (
                           SELECT FROM attempts a
                           WHERE a.call_id = i.id AND a.attempt = i.attempt AND a.worker = i.worker
                               AND a.class IS NOT DISTINCT FROM i.class)
                       AND NOT EXISTS (
                           SELECT FROM late_reports l
                           WHERE l.call_id = i.id AND l.attempt = i.attempt AND l.worker = i.worker)
                       RETURNING call_id, attempt"#,
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
        let job = |id, attempt| JobRef { call: CallId(id), attempt: crate::uint(attempt) };
        Ok(rows.into_iter().map(|row| job(row.call_id, row.attempt)).collect())
    }

    /// Keeps messages that could not be taken.
    pub async fn keep_dead_letters(&self, messages: &[DeadLetter]) -> Result<(), StoreError> {
        let sources: Vec<&str> = messages.iter().map(|m| m.source).collect();
        let codes: Vec<&str> = messages.iter().map(|m| m.code.as_str()).collect();
        let texts: Vec<String> = messages.iter().map(|m| clean(&m.message)).collect();
        let payloads: Vec<&[u8]> = messages.iter().map(|m| m.payload.as_slice()).collect();
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let done = sqlx::query!(
                "INSERT INTO dead_letters (source, code, message, payload)
                 SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bytea[])",
                &sources as &[&str],
                &codes as &[&str],
                &texts,
                &payloads as &[&[u8]],
            )
            .execute(&mut *db)
            .await?;
            Ok(db.done(done))
        })
        .await
        .map(|_| ())
    }
}
