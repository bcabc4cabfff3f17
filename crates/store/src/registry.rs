//! Tools and workers, as they registered themselves.

use redial_proto::{Registration, ToolSpec, WorkerId};

use crate::{StoreError, columns::int, connect::Store};

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
            let (started_at, slots) = (registration.started_at, int(registration.slots));
            sqlx::query_file!(
                "sql/register_worker.sql",
                worker,
                registration.version,
                &names as &[&str],
                started_at,
                slots
            )
            .execute(&mut *db)
            .await?;
            let changed = sqlx::query_file_scalar!("sql/register_tools.sql", &names as &[&str], &specs, worker)
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
            let (slots, running) = (int(heartbeat.slots), int(heartbeat.running));
            let worker = heartbeat.worker.as_str();
            let done = sqlx::query_file!("sql/heartbeat.sql", worker, slots, running, heartbeat.draining)
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
