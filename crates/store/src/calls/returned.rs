//! Jobs that workers gave back.

use std::collections::HashSet;

use redial_proto::{CallId, JobRef};
use uuid::Uuid;

use crate::{
    StoreError,
    columns::{int, uint},
    connect::Store,
};

/// A job of a pack for which a worker had no free slot.
#[derive(Clone, Copy, Debug)]
pub struct ReturnedJob<'a> {
    pub job: JobRef,
    /// As the worker says.
    pub tool: &'a str,
    /// The consumer that brought it, as the worker says.
    pub consumer: &'a str,
    /// It may be published again however short ago that was done before.
    pub at_once: bool,
}

impl Store {
    /// Returns which of these jobs are to be published again: those of calls that are ready, and were published where
    /// the worker says. A job that may not be at once was last published a second ago or earlier.
    pub async fn returned_jobs(&self, returned: &[ReturnedJob<'_>]) -> Result<HashSet<JobRef>, StoreError> {
        let mut sorted = returned.to_vec();
        // As in a claim.
        sorted.sort_unstable_by_key(|back| back.job.call);
        let ids: Vec<Uuid> = sorted.iter().map(|back| back.job.call.0).collect();
        let attempts: Vec<i32> = sorted.iter().map(|back| int(back.job.attempt)).collect();
        let tools: Vec<&str> = sorted.iter().map(|back| back.tool).collect();
        let consumers: Vec<&str> = sorted.iter().map(|back| back.consumer).collect();
        let at_once: Vec<bool> = sorted.iter().map(|back| back.at_once).collect();
        let rows = on_connection!(self, |db| {
            sqlx::query_file!(
                "sql/returned_jobs.sql",
                &ids,
                &attempts,
                &tools as &[&str],
                &consumers as &[&str],
                &at_once,
            )
            .fetch_all(db)
            .await
        })?;
        Ok(rows.into_iter().map(|row| JobRef { call: CallId(row.id), attempt: uint(row.attempt) }).collect())
    }
}
