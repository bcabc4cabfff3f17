//! Extends leases.

use redial_proto::{CallId, JobRef, WorkerId};
use redial_records::Time;
use uuid::Uuid;

use crate::{
    StoreError,
    columns::{bigint, int, uint},
    connect::Store,
};

impl Store {
    /// Extends the leases of the attempts that this worker still holds, and returns those; the flag says that the
    /// call's user wants it stopped. `after`: with these the worker has named all that it holds, in a heartbeat that it wrote
    /// after this time; `None` if that is not known.
    pub async fn renew(
        &self,
        worker: &WorkerId,
        running: &[JobRef],
        after: Option<Time>,
        lease_ms: u64,
    ) -> Result<Vec<(JobRef, bool)>, StoreError> {
        let mut sorted = running.to_vec();
        sorted.sort_unstable_by_key(|job| job.call);
        let ids: Vec<Uuid> = sorted.iter().map(|job| job.call.0).collect();
        let attempts: Vec<i32> = sorted.iter().map(|job| int(job.attempt)).collect();
        let rows = on_connection!(self, |db| {
            let renewed = sqlx::query_file!("sql/renew.sql", &ids, &attempts, worker.as_str(), bigint(lease_ms), after);
            renewed.fetch_all(db).await
        })?;
        let held = |id, attempt| JobRef { call: CallId(id), attempt: uint(attempt) };
        Ok(rows.into_iter().map(|row| (held(row.id, row.attempt), row.cancel_requested)).collect())
    }
}
