//! Consumers of the job stream: the workers of a pool that have the same tools share one.

use std::collections::{BTreeMap, HashSet};

use redial_proto::{
    WorkerId,
    subjects::{MAX_CONSUMERS, consumer_name},
};
use sqlx::PgConnection;

use crate::{FullPool, columns::bigint};

/// A consumer is given to other workers after its own were not seen for so long, in ms.
const CONSUMER_FREE_AFTER_MS: u64 = 120_000;

/// Consumers that one worker identity may have in a pool that others use, too: more could leave the others without any.
const MAX_OF_ONE: u32 = 4;

pub(super) type Pools<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// Returns the consumers, by pool, of workers with these tools; `None` if one of them does not exist. Until the
/// transaction ends, they are given to nobody else.
pub(super) async fn known_consumers(
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

/// Returns consumers for any tools: free ones are given to them, or new ones are created. One registration at a time.
/// Else returns the pool that has as many as it may have.
pub(super) async fn chosen_consumers(
    db: &mut PgConnection,
    worker: &WorkerId,
    pools: &Pools<'_>,
) -> Result<Result<BTreeMap<String, String>, FullPool>, sqlx::Error> {
    sqlx::query!("LOCK TABLE consumers IN EXCLUSIVE MODE").execute(&mut *db).await?;
    let mut consumers = BTreeMap::new();
    for (pool, tools) in pools {
        match chosen(db, worker, pool, tools).await? {
            Ok(name) => consumers.insert((*pool).to_owned(), name),
            Err(full) => return Ok(Err(full)),
        };
    }
    Ok(Ok(consumers))
}

/// Finds the consumer of the workers of a pool that have these tools; the names are in order.
async fn find(db: &mut PgConnection, pool: &str, tools: &[&str]) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar!("SELECT name FROM consumers WHERE pool = $1 AND tools = $2 FOR SHARE", pool, tools as &[&str])
        .fetch_optional(db)
        .await
}

async fn chosen(
    db: &mut PgConnection,
    worker: &WorkerId,
    pool: &str,
    tools: &[&str],
) -> Result<Result<String, FullPool>, sqlx::Error> {
    if let Some(name) = find(db, pool, tools).await? {
        return Ok(Ok(name));
    }
    let (free_after, identity) = (bigint(CONSUMER_FREE_AFTER_MS), worker.identity());
    let users = sqlx::query_file!("sql/users_of_consumers.sql", pool, free_after, identity.as_str(), worker.as_str());
    let users = users.fetch_one(&mut *db).await?;
    if users.own >= i64::from(MAX_OF_ONE) && users.has_others {
        let identity = Some(identity.to_string());
        return Ok(Err(FullPool { pool: pool.to_owned(), most: MAX_OF_ONE, identity }));
    }
    let free = sqlx::query_file_scalar!("sql/free_consumer.sql", pool, free_after);
    if let Some(name) = free.fetch_optional(&mut *db).await? {
        // Its workers, should they live after all, are unknown then, and their next heartbeat makes them register again.
        sqlx::query_file!("sql/delete_workers_of_consumer.sql", name).execute(&mut *db).await?;
        sqlx::query!("UPDATE consumers SET tools = $2 WHERE name = $1", name, tools as &[&str]).execute(db).await?;
        return Ok(Ok(name));
    }
    let taken = sqlx::query_scalar!("SELECT name FROM consumers WHERE pool = $1", pool).fetch_all(&mut *db).await?;
    let taken: HashSet<String> = taken.into_iter().collect();
    let names = (1..=MAX_CONSUMERS).map(|n| consumer_name(pool, n));
    let Some(name) = names.into_iter().find(|name| !taken.contains(name)) else {
        return Ok(Err(FullPool { pool: pool.to_owned(), most: MAX_CONSUMERS, identity: None }));
    };
    sqlx::query!("INSERT INTO consumers (name, pool, tools) VALUES ($1, $2, $3)", name, pool, tools as &[&str])
        .execute(db)
        .await?;
    Ok(Ok(name))
}
