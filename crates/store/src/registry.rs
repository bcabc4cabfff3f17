//! Tools and workers, as they registered themselves.

mod consumers;
mod pins;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use parking_lot::Mutex;
use redial_proto::{Registration, ToolSpec, WorkerId, tolerant};
use redial_records::{Judgement, LiveConsumer, Time, ToolOnRecord};

pub use self::pins::{AcceptedTool, NotAccepted};
use self::{
    consumers::{Pools, chosen_consumers, known_consumers},
    pins::Judged,
};
use crate::{
    StoreError,
    columns::{bigint, int},
    connect::Store,
};

/// What a heartbeat says about its worker.
#[derive(Clone, Debug)]
pub struct WorkerHeartbeat<'a> {
    pub worker: &'a WorkerId,
    /// Calls it can run at once.
    pub slots: u32,
    /// Calls it runs.
    pub running: u32,
    /// It takes no more jobs.
    pub draining: bool,
    /// How long it counts as live from now on, in ms.
    pub lease_ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    /// Tools that are new, or that are registered differently now.
    pub changed_tools: Vec<String>,
    /// The consumer of the worker, by pool.
    pub consumers: BTreeMap<String, String>,
    /// Tools of the registration that wait for an operator, with the reasons.
    pub waiting: BTreeMap<String, Vec<String>>,
    /// Tools that were accepted though they would have waited for an operator, with the reasons.
    pub unasked: BTreeMap<String, Vec<String>>,
}

/// What became of a tool that should be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    Done {
        /// The calls of it that wait in the backlog.
        waiting: u64,
    },
    Served,
    /// It was not registered.
    Unknown,
}

/// A consumer that has workers which are not draining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingConsumer {
    /// The consumer, with the slots of these workers.
    pub consumer: LiveConsumer,
    /// One of them is live.
    pub is_live: bool,
}

/// Workers that were not seen for so long, in ms, are of no interest, whatever outage may have kept them from it.
const SILENT_FOR_MS: u64 = 3_600_000;

/// Live workers of an identity; another one is not registered. Dispatchers read all of them once a second.
const MAX_WORKERS_OF_IDENTITY: u32 = 2_000;
/// Its workers on record at most: then those that are gone are forgotten before their time.
const MAX_ON_RECORD: u32 = 2 * MAX_WORKERS_OF_IDENTITY;

impl Store {
    /// Records a worker, which is live for this lease, and its tools. `judge` says what becomes of a tool that is on record already;
    /// the worker serves those that are accepted. Returns what is new. Fails if a pool has too many sets of tools.
    pub async fn register(
        &self,
        registration: &Registration,
        lease_ms: u64,
        judge: impl Fn(&ToolOnRecord, &ToolSpec) -> Judgement + Sync,
    ) -> Result<Registered, StoreError> {
        // A tool may be forgotten between the two transactions. They are two because their locks are taken in other orders.
        loop {
            let judged = self.judge_tools(registration, &judge).await?;
            if let Some(consumers) = self.register_worker(registration, &judged, lease_ms).await? {
                let Judged { changed_tools, waiting, unasked, .. } = judged;
                return Ok(Registered { changed_tools, consumers, waiting, unasked });
            }
        }
    }

    /// Fails if the identity of a worker has as many others as it may have. Some at once may pass this together.
    pub async fn check_workers(&self, worker: &WorkerId) -> Result<(), StoreError> {
        let (identity, most) = (worker.identity(), i64::from(MAX_ON_RECORD));
        let others = on_connection!(self, |db| {
            sqlx::query_file!("sql/other_workers.sql", identity.as_str(), worker.as_str(), most).fetch_one(db).await
        })?;
        if others.live >= i64::from(MAX_WORKERS_OF_IDENTITY) {
            return Err(StoreError::TooManyWorkers(MAX_WORKERS_OF_IDENTITY));
        }
        if others.all >= most {
            let now = self.now().await?;
            self.delete_gone_workers_of(Some(identity.as_str()), now, MAX_ON_RECORD).await?;
        }
        Ok(())
    }

    /// Records a worker with the tools that it serves; returns its consumers. `None` if one of the tools was forgotten meanwhile.
    async fn register_worker(
        &self,
        registration: &Registration,
        judged: &Judged,
        lease_ms: u64,
    ) -> Result<Option<BTreeMap<String, String>>, StoreError> {
        let specified = registration.tools.iter().map(|tool| (tool.name.as_str(), tool.pool.as_str()));
        let others = registration.other_tools.iter().map(|(name, pool)| (name.as_str(), pool.as_str()));
        let mut by_pool = BTreeMap::<&str, BTreeSet<&str>>::new();
        for (name, pool) in specified.chain(others).filter(|(name, _)| judged.served.contains(*name)) {
            by_pool.entry(pool).or_default().insert(name);
        }
        let pools: Pools<'_> = by_pool.into_iter().map(|(pool, tools)| (pool, tools.into_iter().collect())).collect();
        let served: Vec<&str> = judged.served.iter().map(String::as_str).collect();
        let waiting: Vec<&str> = judged.all_waiting.iter().map(String::as_str).collect();
        let (worker, identity) = (registration.worker.as_str(), registration.worker.identity());
        let registered = self.run_again(|| async {
            let mut transaction = self.begin().await?;
            let consumers = if let Some(consumers) = known_consumers(&mut transaction, &pools).await? {
                consumers
            } else {
                // In a new transaction: the lock of the table must not be waited for by two that each hold a row.
                transaction.commit().await?;
                transaction = self.begin().await?;
                match chosen_consumers(&mut transaction, &registration.worker, &pools).await? {
                    Ok(consumers) => consumers,
                    Err(full) => return Ok(Err(full)),
                }
            };
            sqlx::query_file!(
                "sql/register_worker.sql",
                worker,
                registration.version,
                &served as &[&str],
                registration.started_at,
                int(registration.slots),
                &consumers.values().cloned().collect::<Vec<String>>(),
                bigint(lease_ms),
                &waiting as &[&str],
                registration.host,
                &consumers.keys().map(|pool| slots_of(registration, pool)).collect::<Vec<i32>>(),
            )
            .execute(&mut *transaction)
            .await?;
            // Last, and until the transaction ends: whoever forgets a tool waits for this, and sees the worker then.
            let pins = sqlx::query_scalar!(
                "SELECT tool FROM tool_identities WHERE identity = $1 AND tool = ANY ($2) ORDER BY tool FOR SHARE",
                identity.as_str(),
                &served as &[&str],
            );
            if pins.fetch_all(&mut *transaction).await?.len() < served.len() {
                return Ok(Ok(None));
            }
            transaction.commit().await?;
            Ok(Ok(Some(consumers)))
        });
        registered.await?.map_err(StoreError::FullPool)
    }

    /// Lists the consumers with workers that are not draining.
    pub async fn working_consumers(&self) -> Result<Vec<WorkingConsumer>, StoreError> {
        let rows = on_connection!(self, |db| {
            sqlx::query_file!("sql/working_consumers.sql", bigint(SILENT_FOR_MS)).fetch_all(db).await
        })?;
        let consumer = rows.into_iter().map(|row| WorkingConsumer {
            consumer: LiveConsumer {
                name: row.name,
                pool: row.pool,
                tools: row.tools.into_iter().collect(),
                slots: u32::try_from(row.slots).unwrap_or(u32::MAX),
                workers: u32::try_from(row.workers).unwrap_or(u32::MAX),
            },
            is_live: row.is_live,
        });
        Ok(consumer.collect())
    }

    /// Returns when a worker that has the tool was last seen, by tool.
    pub async fn tools_last_seen(&self) -> Result<HashMap<String, Time>, StoreError> {
        on_connection!(self, |db| {
            let rows = sqlx::query_file!("sql/tools_last_seen.sql").fetch_all(&mut *db).await?;
            Ok(rows.into_iter().map(|row| (row.name, row.seen_at)).collect())
        })
    }

    /// Removes a tool from the registry, unless a live worker has it.
    pub async fn forget_tool(&self, name: &str) -> Result<Forgotten, StoreError> {
        // What was removed by a commit whose reply was lost is not there when this is tried again.
        let removed = Mutex::new(None);
        let removed = || removed.lock();
        self.run_again(|| async {
            let mut transaction = self.begin().await?;
            // A registration of the tool ends before this or begins after it.
            let locked = sqlx::query_scalar!("SELECT name FROM tools WHERE name = $1 FOR UPDATE", name);
            if locked.fetch_optional(&mut *transaction).await?.is_none() {
                return Ok(removed().unwrap_or(Forgotten::Unknown));
            }
            let pins = sqlx::query_scalar!("SELECT identity FROM tool_identities WHERE tool = $1 FOR UPDATE", name);
            pins.fetch_all(&mut *transaction).await?;
            let served = sqlx::query_scalar!(
                r#"SELECT EXISTS (
                       SELECT FROM workers
                       WHERE $1 = ANY (tools) AND NOT draining AND live_until > clock_timestamp()) AS "served!""#,
                name,
            );
            if served.fetch_one(&mut *transaction).await? {
                return Ok(Forgotten::Served);
            }
            let waiting = sqlx::query_file_scalar!("sql/forget_tool.sql", name).fetch_one(&mut *transaction).await?;
            let done = Forgotten::Done { waiting: u64::try_from(waiting).unwrap_or(0) };
            *removed() = Some(done);
            transaction.commit().await?;
            Ok(done)
        })
        .await
    }

    /// Records a heartbeat, and returns when. `None` if the worker has to register again: it is not known, or it waits for a tool of
    /// which no change is pending any more.
    pub async fn heartbeat(&self, heartbeat: &WorkerHeartbeat<'_>) -> Result<Option<Time>, StoreError> {
        on_connection!(self, |db| {
            let (slots, running, lease_ms) = (int(heartbeat.slots), int(heartbeat.running), bigint(heartbeat.lease_ms));
            let (worker, identity) = (heartbeat.worker.as_str(), heartbeat.worker.identity());
            let recorded = sqlx::query_file!(
                "sql/heartbeat.sql",
                worker,
                slots,
                running,
                heartbeat.draining,
                lease_ms,
                identity.as_str(),
            );
            let recorded = recorded.fetch_optional(&mut *db).await?;
            Ok(recorded.filter(|row| row.is_current).map(|row| row.at))
        })
    }

    /// Lists every tool on record, by name. A spec that this version cannot read is left out and logged.
    pub async fn tools(&self) -> Result<Vec<ToolSpec>, StoreError> {
        let rows = on_connection!(self, |db| {
            sqlx::query!(r#"SELECT name, spec::text AS "spec!" FROM tools ORDER BY name"#).fetch_all(db).await
        })?;
        let mut tools = Vec::with_capacity(rows.len());
        for row in rows {
            match tolerant::from_str(&row.spec) {
                Ok(spec) => tools.push(spec),
                Err(error) => tracing::error!(tool = row.name, %error, "Skipped an unreadable tool of the registry"),
            }
        }
        Ok(tools)
    }
}

fn slots_of(registration: &Registration, pool: &str) -> i32 {
    int(registration.pools.get(pool).copied().unwrap_or(registration.slots))
}
