//! Tools and workers, as they registered themselves.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use redial_proto::{Registration, ToolSpec, WorkerId, subjects::consumer_name};
use redial_records::{LiveConsumer, Time};
use sqlx::PgConnection;

use crate::{
    StoreError,
    columns::{bigint, int},
    connect::Store,
};

/// What a heartbeat says about its worker.
#[derive(Clone, Debug)]
pub struct WorkerHeartbeat<'a> {
    /// The worker.
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

/// What a registration changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    /// Tools that are new, or that are registered differently now.
    pub changed_tools: Vec<String>,
    /// The consumer of the worker, by pool.
    pub consumers: BTreeMap<String, String>,
}

/// What became of a tool that should be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// It is removed.
    Done {
        /// The calls of it that wait in the backlog.
        waiting: u64,
    },
    /// A live worker has it.
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

/// A consumer is given to other workers after its own were not seen for so long, in ms.
const CONSUMER_FREE_AFTER_MS: u64 = 120_000;
/// Workers that were not seen for so long, in ms, are of no interest, whatever outage may have kept them from it.
const SILENT_FOR_MS: u64 = 3_600_000;

impl Store {
    /// Records a worker, which is live for this lease, and its tools; the last registration of a tool counts. Returns what
    /// is new.
    pub async fn register(&self, registration: &Registration, lease_ms: u64) -> Result<Registered, StoreError> {
        let names: Vec<&str> = registration.tools.iter().map(|tool| tool.name.as_str()).collect();
        let specs = registration.tools.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        let specs = specs.map_err(|error| StoreError::BadData(error.to_string()))?;
        let here = registration.tools.iter().map(|tool| (tool.name.as_str(), tool.pool.as_str()));
        let others = registration.other_tools.iter().map(|(name, pool)| (name.as_str(), pool.as_str()));
        let mut pools = BTreeMap::<&str, BTreeSet<&str>>::new();
        for (name, pool) in here.clone().chain(others.clone()) {
            pools.entry(pool).or_default().insert(name);
        }
        let pools: Pools<'_> = pools.into_iter().map(|(pool, tools)| (pool, tools.into_iter().collect())).collect();
        let all: Vec<&str> = here.chain(others).map(|(name, _)| name).collect::<BTreeSet<_>>().into_iter().collect();
        let worker = registration.worker.as_str();
        self.run_again(|| async {
            let mut transaction = self.begin().await?;
            let consumers = if let Some(consumers) = known_consumers(&mut transaction, &pools).await? {
                consumers
            } else {
                // Anew: the lock of the table must not be waited for by two that each hold a row.
                transaction.commit().await?;
                transaction = self.begin().await?;
                chosen_consumers(&mut transaction, &pools).await?
            };
            let (started_at, slots) = (registration.started_at, int(registration.slots));
            sqlx::query_file!(
                "sql/register_worker.sql",
                worker,
                registration.version,
                &all as &[&str],
                started_at,
                slots,
                &consumers.values().cloned().collect::<Vec<String>>(),
                bigint(lease_ms),
            )
            .execute(&mut *transaction)
            .await?;
            let changed_tools = sqlx::query_file_scalar!("sql/register_tools.sql", &names as &[&str], &specs, worker)
                .fetch_all(&mut *transaction)
                .await?;
            transaction.commit().await?;
            Ok(Registered { changed_tools, consumers })
        })
        .await
    }

    /// The consumers with workers that are not draining.
    pub async fn working_consumers(&self) -> Result<Vec<WorkingConsumer>, StoreError> {
        let rows = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let rows =
                    sqlx::query_file!("sql/working_consumers.sql", bigint(SILENT_FOR_MS)).fetch_all(&mut *db).await?;
                Ok(db.done(rows))
            })
            .await?;
        let consumer = rows.into_iter().map(|row| WorkingConsumer {
            consumer: LiveConsumer {
                name: row.name,
                pool: row.pool,
                tools: row.tools.into_iter().collect(),
                slots: u32::try_from(row.slots).unwrap_or(u32::MAX),
            },
            is_live: row.is_live,
        });
        Ok(consumer.collect())
    }

    /// When a worker that has the tool was last seen, by tool.
    pub async fn tools_last_seen(&self) -> Result<HashMap<String, Time>, StoreError> {
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let rows = sqlx::query_file!("sql/tools_last_seen.sql").fetch_all(&mut *db).await?;
            Ok(db.done(rows.into_iter().map(|row| (row.name, row.seen_at)).collect()))
        })
        .await
    }

    /// Removes a tool from the registry, unless a live worker has it.
    pub async fn forget_tool(&self, name: &str) -> Result<Forgotten, StoreError> {
        self.run_again(|| async {
            let mut transaction = self.begin().await?;
            // A registration of the tool ends before this or begins after it.
            let locked = sqlx::query_scalar!("SELECT name FROM tools WHERE name = $1 FOR UPDATE", name);
            if locked.fetch_optional(&mut *transaction).await?.is_none() {
                return Ok(Forgotten::Unknown);
            }
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
            transaction.commit().await?;
            Ok(Forgotten::Done { waiting: u64::try_from(waiting).unwrap_or(0) })
        })
        .await
    }

    /// Records a heartbeat. False if the worker is not known.
    pub async fn heartbeat(&self, heartbeat: &WorkerHeartbeat<'_>) -> Result<bool, StoreError> {
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let (slots, running, lease_ms) = (int(heartbeat.slots), int(heartbeat.running), bigint(heartbeat.lease_ms));
            let worker = heartbeat.worker.as_str();
            let done = sqlx::query_file!("sql/heartbeat.sql", worker, slots, running, heartbeat.draining, lease_ms)
                .execute(&mut *db)
                .await?;
            Ok(db.done(done.rows_affected() == 1))
        })
        .await
    }

    /// Every tool on record, by name. A spec that this version cannot read is left out and logged.
    pub async fn tools(&self) -> Result<Vec<ToolSpec>, StoreError> {
        let rows = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let done = sqlx::query!(r#"SELECT name, spec::text AS "spec!" FROM tools ORDER BY name"#)
                    .fetch_all(&mut *db)
                    .await?;
                Ok(db.done(done))
            })
            .await?;
        let mut tools = Vec::with_capacity(rows.len());
        for row in rows {
            match serde_json::from_str(&row.spec) {
                Ok(spec) => tools.push(spec),
                Err(error) => tracing::error!(tool = row.name, %error, "Skipped an unreadable tool of the registry"),
            }
        }
        Ok(tools)
    }
}

/// The tools of a worker, by pool.
type Pools<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// The consumers, by pool, of workers with these tools; `None` if one of them does not exist. Until the transaction ends, they are
/// given to nobody else.
async fn known_consumers(
    db: &mut PgConnection,
    pools: &Pools<'_>,
) -> Result<Option<BTreeMap<String, String>>, sqlx::Error> {
    let mut consumers = BTreeMap::new();
    for (pool, tools) in pools {
        let Some(name) = find(db, pool, tools).await? else { return Ok(None) };
        consumers.insert((*pool).to_owned(), name);
    }
    Ok(Some(consumers))
}

/// The same for any tools: free consumers are given to them, or new ones are created. One registration at a time.
async fn chosen_consumers(db: &mut PgConnection, pools: &Pools<'_>) -> Result<BTreeMap<String, String>, sqlx::Error> {
    sqlx::query!("LOCK TABLE consumers IN EXCLUSIVE MODE").execute(&mut *db).await?;
    let mut consumers = BTreeMap::new();
    for (pool, tools) in pools {
        consumers.insert((*pool).to_owned(), chosen(db, pool, tools).await?);
    }
    Ok(consumers)
}

/// The consumer of the workers of a pool that have these tools; the names are in order.
async fn find(db: &mut PgConnection, pool: &str, tools: &[&str]) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar!("SELECT name FROM consumers WHERE pool = $1 AND tools = $2 FOR SHARE", pool, tools as &[&str])
        .fetch_optional(db)
        .await
}

async fn chosen(db: &mut PgConnection, pool: &str, tools: &[&str]) -> Result<String, sqlx::Error> {
    if let Some(name) = find(db, pool, tools).await? {
        return Ok(name);
    }
    let free = sqlx::query_file_scalar!("sql/free_consumer.sql", pool, bigint(CONSUMER_FREE_AFTER_MS));
    if let Some(name) = free.fetch_optional(&mut *db).await? {
        // Its workers, should they live after all, are unknown then, and their next heartbeat makes them register again.
        sqlx::query_file!("sql/delete_workers_of_consumer.sql", name).execute(&mut *db).await?;
        sqlx::query!("UPDATE consumers SET tools = $2 WHERE name = $1", name, tools as &[&str]).execute(db).await?;
        return Ok(name);
    }
    let taken = sqlx::query_scalar!("SELECT name FROM consumers WHERE pool = $1", pool).fetch_all(&mut *db).await?;
    let taken: HashSet<String> = taken.into_iter().collect();
    let Some(name) = (1..=u32::MAX).map(|n| consumer_name(pool, n)).find(|name| !taken.contains(name)) else {
        return Err(sqlx::Error::InvalidArgument(format!("pool {pool:?} has too many consumers")));
    };
    sqlx::query!("INSERT INTO consumers (name, pool, tools) VALUES ($1, $2, $3)", name, pool, tools as &[&str])
        .execute(db)
        .await?;
    Ok(name)
}
