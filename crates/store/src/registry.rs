//! Tools and workers, as they announced themselves.

use redial_proto::{Announcement, ToolSpec, WorkerId};

use crate::{Store, StoreError, int};

/// What a heartbeat says of its worker.
#[derive(Clone, Debug)]
pub struct WorkerBeat<'a> {
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
    /// Records a worker and its tools; the last announcement of a tool counts. Returns the names of tools that are
    /// new or changed.
    pub async fn announce(&self, announcement: &Announcement) -> Result<Vec<String>, StoreError> {
        let names: Vec<&str> = announcement.tools.iter().map(|tool| tool.name.as_str()).collect();
        let specs = announcement.tools.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        let specs = specs.map_err(|error| StoreError::BadData(error.to_string()))?;
        let worker = announcement.worker.as_str();
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            sqlx::query!(
                "INSERT INTO workers (id, version, tools, started_at, slots) VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (id) DO UPDATE SET tools = EXCLUDED.tools, slots = EXCLUDED.slots,
                                                last_seen_at = clock_timestamp()",
                worker,
                announcement.version,
                &names as &[&str],
                announcement.started_at,
                int(announcement.slots),
            )
            .execute(&mut *db)
            .await?;
            let changed = sqlx::query_scalar!(
                "INSERT INTO tools AS t (name, spec, announced_by)
                 SELECT name, spec::json, $3 FROM UNNEST($1::text[], $2::text[]) AS i (name, spec) ORDER BY name
                 ON CONFLICT (name) DO UPDATE SET spec = EXCLUDED.spec, announced_by = EXCLUDED.announced_by,
                                                  announced_at = clock_timestamp()
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
    pub async fn beat(&self, beat: &WorkerBeat<'_>) -> Result<bool, StoreError> {
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let done = sqlx::query!(
                "UPDATE workers SET slots = $2, running = $3, draining = $4, last_seen_at = clock_timestamp()
                 WHERE id = $1",
                beat.worker.as_str(),
                int(beat.slots),
                int(beat.running),
                beat.draining,
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
