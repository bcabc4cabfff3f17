//! Queries of the history: lists of calls, one call with its attempts, tools, workers, dead letters.

use redial_api::WorkerItem;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::{
    Store, StoreError,
    columns::{bigint, uint},
};

mod ended;
mod ended_since;
mod history;
mod ids;
mod inside;
pub mod json_search;
mod look;
mod look_at_tasks;
mod of_tenant;
mod progress;
mod queues;
mod record;
mod records;
mod search;
mod searched_for;
mod task_attempts;
mod tasks;

pub use ended_since::EndedPosition;
pub use history::{Found, FoundCall};
pub use ids::Named;
pub use inside::Inside;
pub use look::{Limits, Searched};
pub use look_at_tasks::{SearchedTasks, TaskSearch};
pub use of_tenant::Conversations;
pub use progress::Progress;
pub use records::{AttemptRecord, CallAudit, DeadLetterRecord, Filter, PendingTool, TaskFilter, ToolRecord};
pub use search::{Payload, Texts};
pub use searched_for::Search;

impl Store {
    /// Lists the registry, by name. `longest_check_ms`: a call that is checked later than this has no job on the
    /// stream.
    pub async fn tool_records(&self, longest_check_ms: u64) -> Result<Vec<ToolRecord>, StoreError> {
        let rows = on_connection!(self, |db| {
            sqlx::query_file!("sql/tool_records.sql", bigint(longest_check_ms)).fetch_all(db).await
        })?;
        rows.into_iter()
            .map(|row| {
                Ok(ToolRecord {
                    name: row.name,
                    spec: raw(row.spec)?,
                    registered_by: row.registered_by,
                    registered_at: row.registered_at,
                    workers: row.workers,
                    last_seen_at: row.last_seen_at,
                    waiting: row.waiting,
                    waiting_retries: row.waiting_retries,
                    failing_since: row.failing_since,
                    recovering_since: row.recovering_since,
                    retries_per_second: row
                        .per_second
                        .filter(|_| row.failing_since.is_some() || row.recovering_since.is_some()),
                })
            })
            .collect()
    }

    /// Lists what waits until an operator accepts it, by tool and identity.
    pub async fn pending_tools(&self) -> Result<Vec<PendingTool>, StoreError> {
        let rows = on_connection!(self, |db| {
            let (any, all) = (None::<&str>, i64::MAX);
            sqlx::query_file!("sql/pending_tools.sql", any, any, all).fetch_all(db).await
        })?;
        rows.into_iter()
            .map(|row| {
                Ok(PendingTool {
                    tool: row.tool,
                    identity: row.identity,
                    worker: row.worker,
                    since: row.since,
                    reasons: row.reasons,
                    spec: raw(row.spec)?,
                    fingerprint: row.fingerprint,
                })
            })
            .collect()
    }

    /// Lists workers, the latest first; only live ones unless `all`.
    pub async fn worker_records(&self, all: bool) -> Result<Vec<WorkerItem>, StoreError> {
        on_connection!(self, |db| {
            sqlx::query_as!(
                WorkerItem,
                r#"SELECT id AS worker, host, version, tools, waiting, started_at, slots, running, draining, last_seen_at,
                          live_until > clock_timestamp() AS "alive!"
                   FROM workers
                   WHERE $1 OR live_until > clock_timestamp()
                   ORDER BY last_seen_at DESC LIMIT 1000"#,
                all,
            )
            .fetch_all(db)
            .await
        })
    }

    /// Lists dead letters, the latest first, perhaps of one tenant only.
    pub async fn dead_letter_records(
        &self,
        tenant: Option<&str>,
        limit: u32,
    ) -> Result<Vec<DeadLetterRecord>, StoreError> {
        let rows = on_connection!(self, |db| {
            sqlx::query!(
                    r#"SELECT id, source, received_at, tenant, identity, code, message, error_count, errors::text AS "errors!", payload
                     FROM dead_letters WHERE $1::text IS NULL OR tenant = $1 ORDER BY id DESC LIMIT $2"#,
                    tenant,
                    i64::from(limit),
                )
                .fetch_all(db)
                .await
        })?;
        let record = |payload: &[u8]| String::from_utf8_lossy(payload).into_owned();
        Ok(rows
            .into_iter()
            .map(|row| DeadLetterRecord {
                id: row.id,
                source: row.source,
                received_at: row.received_at,
                tenant: row.tenant,
                identity: row.identity,
                errors: listed(&row.errors),
                code: row.code,
                message: row.message,
                error_count: uint(row.error_count),
                payload: record(&row.payload),
            })
            .collect())
    }
}

fn listed<T: DeserializeOwned>(errors: &str) -> Vec<T> {
    serde_json::from_str(errors).unwrap_or_default()
}

fn raw(json: String) -> Result<Box<RawValue>, StoreError> {
    RawValue::from_string(json).map_err(|error| StoreError::BadData(error.to_string()))
}
