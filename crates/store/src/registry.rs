//! Tools and workers, as they registered themselves.

use redial_proto::{Registration, ToolSpec, WorkerId};

use crate::{Store, StoreError, int};

/// What a heartbeat says of its worker.
#[derive(Clone, Debug)]
pub struct WorkerHeartbeat<'a> {
    /// Who.
    pub worker: &'a WorkerId,
    /// Calls it can run at once.
    pub slots: u32,
    /// Calls it runs.
    pub running: u32,
    /// It takes no more jobs.
    pub draining: bool,
}

impl Store {
    /// Records a worker and its tools; the last registration of a tool counts. Returns the names of tools that are
    /// new or changed.
    pub async fn register(&self, registration: &Registration) -> Result<Vec<String>, StoreError> {
        let names: Vec<&str> = registration.tools.iter().map(|tool| tool.name.as_str()).collect();
        let specs = registration.tools.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        let specs = specs.map_err(|error| StoreError::BadData(error.to_string()))?;
        let worker = registration.worker.as_str();
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            sqlx::query!(
                "INSERT INTO workers (id, version, tools, started_at, slots) VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (id) DO UPDATE SET tools = EXCLUDED.tools, slots = EXCLUDED.slots,
                                                last_seen_at = clock_timestamp()",
                worker,
                registration.version,
                &names as &[&str],
                registration.started_at,
                int(registration.slots),
            )
            .execute(&mut *db)
            .await?;
            let changed = sqlx::query_scalar!(
                "INSERT INTO tools AS t (name, spec, registered_by)
                 SELECT name, spec::json, $3 FROM UNNEST($1::text[], $2::text[]) AS i (name, spec) ORDER BY name
                 ON CONFLICT (name) DO UPDATE SET spec = EXCLUDED.spec, registered_by = EXCLUDED.registered_by,
                                                  registered_at = clock_timestamp()
                 WHERE t.spec::text <> EXCLUDED.spec::text
                 RETURNING name",
                &names as &[&str],
                &specs,
                worker,
            )
            .fetch_all(&mut *db)
            .await?;
            Ok(db.done(changed))
        })
        .await
    }

    /// Records a heartbeat. False if the worker is not known.
    pub async fn heartbeat(&self, heartbeat: &WorkerHeartbeat<'_>) -> Result<bool, StoreError> {
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let done = sqlx::query!(
                "UPDATE workers SET slots = $2, running = $3, draining = $4, last_seen_at = clock_timestamp()
                 WHERE id = $1",
                heartbeat.worker.as_str(),
                int(heartbeat.slots),
                int(heartbeat.running),
                heartbeat.draining,
            )
            .execute(&mut *db)
            .await?;
            Ok(db.done(done.rows_affected() == 1))
        })
        .await
    }

    /// Every tool on record, by name. A spec that this version cannot read is left out, loudly.
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
                Err(error) => tracing::error!(tool = row.name, %error, "the registry holds an unreadable tool"),
            }
        }
        Ok(tools)
    }
}
