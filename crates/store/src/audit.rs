//! Queries of the history: lists of calls, one call with its attempts, tools, workers, dead letters.

use redial_proto::{CallState, ErrorClass};
use serde_json::value::RawValue;

use crate::{Store, StoreError, retention::first_id_after};

mod ended;
mod record;
mod records;
mod tasks;

pub use records::{
    AttemptRecord, CallAudit, CallLine, DeadLetterRecord, Filter, LateRecord, TaskFilter, ToolRecord, WorkerRecord,
};

impl Store {
    /// The newest calls that a filter lets through.
    ///
    /// Every filter has its index: `class` is set on all that ended without success, `wake_at` on all that has not
    /// ended, and ids sort by time.
    pub async fn history(&self, filter: &Filter, limit: u32) -> Result<Vec<CallLine>, StoreError> {
        // The bound of ids is generous by ten minutes on either side; submitted_at decides.
        let since_id = filter.since.map(|since| first_id_after(since - chrono::TimeDelta::minutes(20)));
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let done = sqlx::query_file_as!(
                CallLine,
                "sql/history.sql",
                filter.tool.as_deref(),
                filter.state.map(CallState::as_str),
                filter.class.map(ErrorClass::as_str),
                filter.since,
                since_id,
                filter.conversation.as_deref(),
                filter.key.as_deref(),
                filter.before.map(|before| before.0),
                i64::from(limit),
                filter.tenant.as_deref().unwrap_or("default"),
                filter.task.map(|task| task.0),
            )
            .fetch_all(&mut *db)
            .await?;
            Ok(db.done(done))
        })
        .await
    }

    /// The registry, by name.
    pub async fn tool_records(&self) -> Result<Vec<ToolRecord>, StoreError> {
        let rows = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let done = sqlx::query!(
                    r#"SELECT t.name, t.spec::text AS "spec!", t.registered_by, t.registered_at,
                              (SELECT count(*) FROM workers w WHERE t.name = ANY (w.tools)
                                   AND w.last_seen_at > clock_timestamp() - interval '1 min') AS "workers!"
                       FROM tools t ORDER BY t.name"#
                )
                .fetch_all(&mut *db)
                .await?;
                Ok(db.done(done))
            })
            .await?;
        rows.into_iter()
            .map(|row| {
                Ok(ToolRecord {
                    name: row.name,
                    spec: raw(row.spec)?,
                    registered_by: row.registered_by,
                    registered_at: row.registered_at,
                    workers: row.workers,
                })
            })
            .collect()
    }

    /// Workers, the latest first; only those seen within half a minute unless `all`.
    pub async fn worker_records(&self, all: bool) -> Result<Vec<WorkerRecord>, StoreError> {
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let done = sqlx::query_as!(
                WorkerRecord,
                r#"SELECT id, version, tools, started_at, slots, running, draining, last_seen_at,
                          last_seen_at > clock_timestamp() - interval '30 s' AS "alive!"
                   FROM workers
                   WHERE $1 OR last_seen_at > clock_timestamp() - interval '30 s'
                   ORDER BY last_seen_at DESC LIMIT 1000"#,
                all,
            )
            .fetch_all(&mut *db)
            .await?;
            Ok(db.done(done))
        })
        .await
    }

    /// Dead letters, the latest first.
    pub async fn dead_letter_records(&self, limit: u32) -> Result<Vec<DeadLetterRecord>, StoreError> {
        let rows = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let done = sqlx::query!(
                    "SELECT id, source, received_at, code, message, payload
                     FROM dead_letters ORDER BY id DESC LIMIT $1",
                    i64::from(limit),
                )
                .fetch_all(&mut *db)
                .await?;
                Ok(db.done(done))
            })
            .await?;
        let record = |payload: &[u8]| String::from_utf8_lossy(payload).into_owned();
        Ok(rows
            .into_iter()
            .map(|row| DeadLetterRecord {
                id: row.id,
                source: row.source,
                received_at: row.received_at,
                code: row.code,
                message: row.message,
                payload: record(&row.payload),
            })
            .collect())
    }
}

fn raw(json: String) -> Result<Box<RawValue>, StoreError> {
    RawValue::from_string(json).map_err(|error| StoreError::BadData(error.to_string()))
}
