//! The backlog: calls that are ready, and whose jobs are not published yet.

use redial_proto::Job;
use redial_records::{Backlog, BacklogPart, OutgoingJob, Time};
use uuid::Uuid;

use crate::{
    StoreError,
    columns::{bigint, column, int, uint},
    connect::Store,
};

/// One statement takes at most so many calls from a backlog.
pub const MAX_FED: u32 = 1_000;

/// No text is behind this one in the order of bytes.
const LAST: &str = "\u{10ffff}";
/// At most so many tenants of a [`Gap`] are found at once.
const MOST_FOUND: i32 = 100;

/// A position in one part of the backlog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub part: BacklogPart,
    /// Nothing before this waits, as far as is known: the time of a submission, or when a retry began to wait. `None`: nothing is
    /// known.
    pub since: Option<Time>,
}

/// Where tenants may wait that are not known of: for a tool, between two tenants in the order of their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub tool: String,
    /// First attempts or retries.
    pub backlog: Backlog,
    /// The tenant before the gap; empty at the beginning.
    pub after: String,
    /// The tenant behind it; `None` at the end.
    pub before: Option<String>,
    /// From where on; `None`: from the beginning.
    pub since: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// From where on to take calls.
    pub from: Position,
    pub consumer: String,
    pub pool: String,
    /// How many at most, up to [`MAX_FED`].
    pub most: u32,
    /// For retries of a tool whose outage has ended.
    pub recovery: Option<Recovery>,
}

/// Retries that waited while their tool was down must not reach their deadline just when they are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// When the tool succeeded again. Calls whose deadline was over before that get no more time.
    pub since: Time,
    /// How long those that waited at that time have at least once they are published, in ms.
    pub least_ms: u64,
}

/// Calls whose jobs are to be published now.
#[derive(Clone, Debug, Default)]
pub struct Fed {
    /// The jobs, in the order in which the calls waited.
    pub jobs: Vec<OutgoingJob>,
    /// The position of the last one; `None` if nothing waited.
    pub until: Option<Time>,
}

impl Store {
    /// Returns which of these parts of backlogs hold something, and where the first of it waits.
    pub async fn waiting(&self, parts: &[Position]) -> Result<Vec<Position>, StoreError> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let found = on_connection!(self, |db| {
            sqlx::query_file!(
                "sql/waiting.sql",
                &column(parts, |one| one.part.tool.as_str()) as &[&str],
                &column(parts, |one| one.part.backlog.is_retry()),
                &column(parts, |one| one.part.tenant.as_str()) as &[&str],
                &column(parts, |one| one.since) as &[Option<Time>],
            )
            .fetch_all(db)
            .await
        })?;
        let position = |row: (i64, Time)| {
            let part = parts.get(usize::try_from(row.0 - 1).ok()?)?.part.clone();
            Some(Position { part, since: Some(row.1) })
        };
        Ok(found.into_iter().filter_map(|row| position((row.n, row.since))).collect())
    }

    /// Returns whose calls wait, of tenants in these gaps, and where the first of each does.
    pub async fn waiting_tenants(&self, gaps: &[Gap]) -> Result<Vec<Position>, StoreError> {
        if gaps.is_empty() {
            return Ok(Vec::new());
        }
        let found = on_connection!(self, |db| {
            sqlx::query_file!(
                "sql/waiting_tenants.sql",
                &column(gaps, |gap| gap.tool.as_str()) as &[&str],
                &column(gaps, |gap| gap.backlog.is_retry()),
                &column(gaps, |gap| gap.after.as_str()) as &[&str],
                &column(gaps, |gap| gap.before.as_deref().unwrap_or(LAST)) as &[&str],
                MOST_FOUND,
                &column(gaps, |gap| gap.since) as &[Option<Time>],
            )
            .fetch_all(db)
            .await
        });
        let found = found?.into_iter().map(|row| {
            let backlog = if row.retry { Backlog::Retry } else { Backlog::Job };
            Position { part: BacklogPart { tool: row.tool, tenant: row.tenant, backlog }, since: Some(row.since) }
        });
        Ok(found.collect())
    }

    /// Takes calls from the backlog. Their jobs must be published now; if the process dies before that, the sweeper
    /// finds them after `first_check_ms`, or after a wait that doubles with each publication up to `longest_check_ms`.
    pub async fn feed(&self, feed: &Feed, first_check_ms: u64, longest_check_ms: u64) -> Result<Fed, StoreError> {
        // Not tried again: what a lost answer took is found by the sweeper.
        let mut rows = once_on_connection!(self, |db| {
            sqlx::query_file!(
                "sql/feed.sql",
                feed.from.part.tool,
                feed.from.part.backlog.is_retry(),
                feed.from.since,
                i64::from(feed.most.min(MAX_FED)),
                feed.pool,
                feed.consumer,
                bigint(first_check_ms),
                bigint(longest_check_ms),
                feed.recovery.map(|recovery| recovery.since),
                feed.recovery.map_or(0, |recovery| bigint(recovery.least_ms)),
                feed.from.part.tenant,
            )
            .fetch_all(db)
            .await
        })?;
        rows.sort_unstable_by_key(|row| (row.backlog_at, row.id));
        let until = rows.last().map(|row| row.backlog_at);
        let job = |id, attempt, bytes| Job {
            call: redial_proto::CallId(id),
            attempt: uint(attempt) + 1,
            tool: feed.from.part.tool.clone(),
            bytes: uint(bytes),
        };
        let jobs = rows.into_iter().map(|row| OutgoingJob {
            job: job(row.id, row.attempt, row.bytes),
            consumer: feed.consumer.clone(),
            publish_no: uint(row.publish_no),
            traceparent: row.traceparent,
        });
        Ok(Fed { jobs: jobs.collect(), until })
    }

    /// Puts calls back whose jobs could not be published.
    pub async fn requeue(&self, jobs: &[OutgoingJob]) -> Result<u64, StoreError> {
        let mut sorted: Vec<&OutgoingJob> = jobs.iter().collect();
        sorted.sort_unstable_by_key(|job| job.job.call);
        let ids: Vec<Uuid> = column(&sorted, |job| job.job.call.0);
        on_connection!(self, |db| {
            let done = sqlx::query_file!("sql/requeue_jobs.sql", &ids, &column(&sorted, |job| int(job.publish_no)))
                .execute(&mut *db)
                .await?;
            Ok(done.rows_affected())
        })
    }

    /// Puts unclaimed calls back whose jobs were published in this time: those jobs may be lost. Returns how many.
    pub async fn requeue_published(&self, after: Time, until: Time, longest_check_ms: u64) -> Result<u64, StoreError> {
        self.requeue_lost(after, until, None, longest_check_ms).await
    }

    /// Puts unclaimed calls back whose jobs were published to a consumer that has no workers any more.
    pub async fn requeue_consumer(&self, consumer: &str, longest_check_ms: u64) -> Result<u64, StoreError> {
        self.requeue_lost(Time::UNIX_EPOCH, self.now().await?, Some(consumer), longest_check_ms).await
    }

    async fn requeue_lost(
        &self,
        after: Time,
        until: Time,
        consumer: Option<&str>,
        longest_check_ms: u64,
    ) -> Result<u64, StoreError> {
        let mut requeued = 0;
        loop {
            let batch = on_connection!(self, |db| {
                let (soon, most) = (bigint(longest_check_ms), i64::from(MAX_FED));
                let done = sqlx::query_file!("sql/requeue_lost.sql", after, until, consumer, soon, most)
                    .execute(&mut *db)
                    .await?;
                Ok(done.rows_affected())
            })?;
            requeued += batch;
            if batch < u64::from(MAX_FED) {
                return Ok(requeued);
            }
        }
    }

    /// Says that this dispatcher deals with a loss of jobs, if no other one has since `lost_after`: because the job
    /// stream is not the one that was on record, or because messages of it may be lost. Returns since when it does.
    pub async fn adopt_job_stream(&self, created: Time, lost_after: Option<Time>) -> Result<Option<Time>, StoreError> {
        on_connection!(self, |db| {
            sqlx::query_file_scalar!("sql/adopt_job_stream.sql", created, lost_after).fetch_optional(db).await
        })
    }

    /// Says that the loss has been dealt with, unless another dispatcher has begun to deal with a later one. Until then another
    /// dispatcher takes over after 15 s. `since`: what [`Store::adopt_job_stream`] returned.
    pub async fn job_stream_adopted(&self, since: Time) -> Result<(), StoreError> {
        let done = on_connection!(self, |db| {
            sqlx::query!("UPDATE job_stream SET done = true WHERE requeued_at = $1", since).execute(db).await
        });
        done.map(drop)
    }
}
