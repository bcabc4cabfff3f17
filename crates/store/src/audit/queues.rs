//! What waits and runs, by tool.

use redial_api::{QueueItem, QueueList};
use redial_proto::Tenant;

use crate::{StoreError, TenantStore, columns::unsigned};

/// Open calls that are counted: it takes a few tens of milliseconds.
const COUNTED: i64 = 50_000;

impl TenantStore<'_> {
    /// Returns the open calls of the tenant by tool, that with the most waiting calls first; of all tenants, if `all`
    /// says so, which is for operators. Only they are told of workers.
    pub async fn queues(&self, all: bool) -> Result<QueueList, StoreError> {
        let tenant = (!all).then(|| self.tenant().as_str());
        let rows = on_connection!(self.store(), |db| sqlx::query_file!("sql/queues.sql", tenant, COUNTED)
            .fetch_all(db)
            .await)?;
        let (at, is_operators) = (chrono::Utc::now(), *self.tenant() == Tenant::default());
        let is_complete = rows.first().is_none_or(|row| row.all < COUNTED);
        let mut queues = Vec::with_capacity(rows.len());
        for row in rows {
            queues.push(QueueItem {
                tool: row.tool,
                pool: row.pool,
                ready: unsigned(row.ready),
                backlog: unsigned(row.backlog),
                running: unsigned(row.running),
                retry_wait: unsigned(row.retry_wait),
                client_wait: unsigned(row.client_wait),
                oldest_ready_at: row.oldest_ready_at,
                oldest_ready_ms: row.oldest_ready_at.map(|oldest| (at - oldest).num_milliseconds().max(0)),
                served: row.workers > 0,
                workers: is_operators.then(|| unsigned(row.workers)),
                slots: is_operators.then(|| unsigned(row.slots)),
            });
        }
        Ok(QueueList { at, is_complete, queues })
    }
}
