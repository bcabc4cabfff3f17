//! The least that any durable queue on Postgres must do, for the benchmark to measure against: insert, mark as
//! running, mark as done with its result. Bare tables, one index each, no rules, no retries, no audit beyond the
//! result. In a schema of its own, on the same server with the same durability.

use sqlx::{Executor, PgPool, postgres::PgPoolOptions};
use uuid::Uuid;

use crate::StoreError;

/// Where the floor's tables are.
pub const SCHEMA: &str = "redial_floor";

/// The floor's tables. Dropped and made anew by [`Floor::create`].
#[derive(Clone, Debug)]
pub struct Floor(PgPool);

impl Floor {
    /// Connects and makes empty tables.
    pub async fn create(url: &str) -> Result<Self, StoreError> {
        let pool = PgPoolOptions::new()
            .max_connections(16)
            .after_connect(|connection, _| {
                // The same planner settings as a dispatcher's.
                Box::pin(async move {
                    connection
                        .execute("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off")
                        .await
                        .map(|_| ())
                })
            })
            .connect(url)
            .await?;
        pool.execute(
            "DROP SCHEMA IF EXISTS redial_floor CASCADE;
             CREATE SCHEMA redial_floor;
             CREATE TABLE redial_floor.calls (id uuid PRIMARY KEY, state text NOT NULL, attempt int NOT NULL DEFAULT 0,
                 arguments json NOT NULL) WITH (fillfactor = 70);
             CREATE TABLE redial_floor.attempts (call_id uuid, attempt int, output json, PRIMARY KEY (call_id, attempt))",
        )
        .await?;
        Ok(Self(pool))
    }

    /// Inserts calls.
    pub async fn insert(&self, ids: &[Uuid], arguments: &[String]) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO redial_floor.calls (id, state, arguments)
             SELECT id, 'ready', arguments::json FROM UNNEST($1::uuid[], $2::text[]) AS i (id, arguments)",
        )
        .bind(ids)
        .bind(arguments)
        .execute(&self.0)
        .await?;
        Ok(())
    }

    /// Marks calls as running and reads their arguments.
    pub async fn claim(&self, ids: &[Uuid]) -> Result<Vec<(Uuid, String)>, StoreError> {
        Ok(sqlx::query_as(
            "UPDATE redial_floor.calls c SET state = 'running', attempt = attempt + 1
             FROM UNNEST($1::uuid[]) AS i (id) WHERE c.id = ANY (ARRAY[i.id]) AND c.state = 'ready'
             RETURNING c.id, c.arguments::text",
        )
        .bind(ids)
        .fetch_all(&self.0)
        .await?)
    }

    /// Marks calls as done and writes their results.
    pub async fn finish(&self, ids: &[Uuid], outputs: &[String]) -> Result<u64, StoreError> {
        let done = sqlx::query(
            "WITH changed AS (
                 UPDATE redial_floor.calls c SET state = 'succeeded'
                 FROM UNNEST($1::uuid[], $2::text[]) AS i (id, output) WHERE c.id = ANY (ARRAY[i.id]) AND c.state = 'running'
                 RETURNING c.id, c.attempt, i.output)
             INSERT INTO redial_floor.attempts SELECT id, attempt, output::json FROM changed",
        )
        .bind(ids)
        .bind(outputs)
        .execute(&self.0)
        .await?;
        Ok(done.rows_affected())
    }

    /// Removes the tables.
    pub async fn remove(self) -> Result<(), StoreError> {
        self.0.execute("DROP SCHEMA redial_floor CASCADE").await?;
        self.0.close().await;
        Ok(())
    }
}
