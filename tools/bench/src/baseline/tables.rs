//! The least that any durable queue on Postgres must do: insert, mark as running, mark as done with its result. Bare
//! tables, one index each, no rules, no retries, no audit beyond the result. In a schema of its own, on the same server
//! with the same durability.

use sqlx::{Executor, PgPool};
use uuid::Uuid;

use crate::database::connect;

pub(crate) const SCHEMA: &str = "redial_baseline";

#[derive(Clone, Debug)]
pub(super) struct Tables(PgPool);

impl Tables {
    /// Connects and creates empty tables, in the place of older ones.
    pub(super) async fn create(url: &str, connections: u32) -> anyhow::Result<Self> {
        let pool = connect(url, connections).await?;
        pool.execute(
            "DROP SCHEMA IF EXISTS redial_baseline CASCADE;
             CREATE SCHEMA redial_baseline;
             CREATE TABLE redial_baseline.calls (id uuid PRIMARY KEY, state text NOT NULL, attempt int NOT NULL DEFAULT 0,
                 arguments json NOT NULL) WITH (fillfactor = 70);
             CREATE TABLE redial_baseline.attempts (call_id uuid, attempt int, output json, PRIMARY KEY (call_id, attempt))",
        )
        .await?;
        Ok(Self(pool))
    }

    pub(super) async fn insert(&self, ids: &[Uuid], arguments: &[String]) -> anyhow::Result<()> {
        sqlx::query(
            "INSERT INTO redial_baseline.calls (id, state, arguments)
             SELECT id, 'ready', arguments::json FROM UNNEST($1::uuid[], $2::text[]) AS i (id, arguments)",
        )
        .bind(ids)
        .bind(arguments)
        .execute(&self.0)
        .await?;
        Ok(())
    }

    /// Marks calls as running and reads their arguments.
    pub(super) async fn claim(&self, ids: &[Uuid]) -> anyhow::Result<Vec<(Uuid, String)>> {
        Ok(sqlx::query_as(
            "UPDATE redial_baseline.calls c SET state = 'running', attempt = attempt + 1
             FROM UNNEST($1::uuid[]) AS i (id) WHERE c.id = ANY (ARRAY[i.id]) AND c.state = 'ready'
             RETURNING c.id, c.arguments::text",
        )
        .bind(ids)
        .fetch_all(&self.0)
        .await?)
    }

    /// Marks calls as done and writes their results.
    pub(super) async fn finish(&self, ids: &[Uuid], outputs: &[String]) -> anyhow::Result<u64> {
        let done = sqlx::query(
            "WITH changed AS (
                 UPDATE redial_baseline.calls c SET state = 'succeeded'
                 FROM UNNEST($1::uuid[], $2::text[]) AS i (id, output) WHERE c.id = ANY (ARRAY[i.id]) AND c.state = 'running'
                 RETURNING c.id, c.attempt, i.output)
             INSERT INTO redial_baseline.attempts SELECT id, attempt, output::json FROM changed",
        )
        .bind(ids)
        .bind(outputs)
        .execute(&self.0)
        .await?;
        Ok(done.rows_affected())
    }

    pub(super) async fn remove(self) -> anyhow::Result<()> {
        self.0.execute("DROP SCHEMA IF EXISTS redial_baseline CASCADE").await?;
        self.0.close().await;
        Ok(())
    }
}
