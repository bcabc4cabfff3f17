//! What waits and runs, by tool.

use crate::{StoreError, TenantStore, Time, columns::unsigned};

/// Open calls that are counted: it takes a few tens of milliseconds.
const COUNTED: i64 = 50_000;

/// The open calls of a tool.
#[derive(Clone, Debug)]
pub struct QueueLine {
    /// The tool; of turns the model's registered name.
    pub tool: String,
    /// The pool whose workers run it.
    pub pool: String,
    /// Calls that wait for a worker.
    pub ready: u64,
    /// Those of them that have no job on the stream yet.
    pub backlog: u64,
    /// Calls that run.
    pub running: u64,
    /// Calls that wait for a retry.
    pub retry_wait: u64,
    /// Calls that wait for a client's answer.
    pub client_wait: u64,
    /// When the one that waits longest was submitted.
    pub oldest_ready_at: Option<Time>,
    /// Live workers that have the tool.
    pub workers: u64,
    /// Calls that they can run at once, those excepted that drain.
    pub slots: u64,
}

/// What waits and runs.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    /// The tool with the most waiting calls first.
    pub tools: Vec<QueueLine>,
    /// False if there are more open calls than are counted: the numbers are lower bounds then.
    pub is_complete: bool,
}

impl TenantStore<'_> {
    /// The open calls of the tenant by tool; of all tenants, if `all` says so, which is for operators.
    pub async fn queues(&self, all: bool) -> Result<Queues, StoreError> {
        let tenant = (!all).then(|| self.tenant().as_str());
        let rows = on_connection!(self.store(), |db| sqlx::query_file!("sql/queues.sql", tenant, COUNTED)
            .fetch_all(db)
            .await)?;
        let is_complete = rows.first().is_none_or(|row| row.all < COUNTED);
        let mut tools = Vec::with_capacity(rows.len());
        for row in rows {
            tools.push(QueueLine {
                tool: row.tool,
                pool: row.pool,
                ready: unsigned(row.ready),
                backlog: unsigned(row.backlog),
                running: unsigned(row.running),
                retry_wait: unsigned(row.retry_wait),
                client_wait: unsigned(row.client_wait),
                oldest_ready_at: row.oldest_ready_at,
                workers: unsigned(row.workers),
                slots: unsigned(row.slots),
            });
        }
        Ok(Queues { tools, is_complete })
    }
}
