//! The health of tools, and the retries that it allows.

use redial_records::{Time, ToolHealth};

use crate::{
    StoreError,
    columns::column,
    connect::{Store, Transaction},
};

/// The health of tools, locked until the commit; dropping this instead leaves it as it was.
#[derive(Debug)]
pub struct LockedHealth {
    transaction: Transaction,
    health: Vec<ToolHealth>,
    now: Time,
}

impl Store {
    /// Locks the health of tools, as far as something is on record. Whoever calls this must not wait for anything until
    /// the commit.
    pub async fn lock_health(&self, tools: &[&str]) -> Result<LockedHealth, StoreError> {
        let mut sorted = tools.to_vec();
        sorted.sort_unstable();
        self.run(async {
            let mut transaction = self.begin().await?;
            let health = sqlx::query_file_as!(ToolHealth, "sql/lock_tool_health.sql", &sorted as &[&str])
                .fetch_all(&mut *transaction)
                .await?;
            let now = sqlx::query_scalar!(r#"SELECT clock_timestamp() AS "now!""#).fetch_one(&mut *transaction).await?;
            Ok(LockedHealth { transaction, health, now })
        })
        .await
    }
}

impl Store {
    /// Returns the health of the tools that fail or recover.
    pub async fn unwell_tools(&self) -> Result<Vec<ToolHealth>, StoreError> {
        on_connection!(self, |db| sqlx::query_file_as!(ToolHealth, "sql/unwell_tools.sql").fetch_all(db).await)
    }
}

impl LockedHealth {
    /// Returns what is on record; nothing of tools that have not been seen.
    pub fn health(&self) -> &[ToolHealth] {
        &self.health
    }

    pub const fn now(&self) -> Time {
        self.now
    }

    pub async fn commit(mut self, store: &Store, health: &[ToolHealth]) -> Result<(), StoreError> {
        let mut sorted: Vec<&ToolHealth> = health.iter().collect();
        sorted.sort_unstable_by(|a, b| a.tool.cmp(&b.tool));
        store
            .run_since(self.transaction.began(), async move {
                sqlx::query_file!(
                    "sql/write_tool_health.sql",
                    &column(&sorted, |one| one.tool.as_str()) as &[&str],
                    &column(&sorted, |one| one.tokens),
                    &column(&sorted, |one| one.per_second),
                    &column(&sorted, |one| one.usual_rate),
                    &column(&sorted, |one| one.successes),
                    &column(&sorted, |one| one.failures),
                    &column(&sorted, |one| one.failing_since) as &[Option<Time>],
                    &column(&sorted, |one| one.recovering_since) as &[Option<Time>],
                    &column(&sorted, |one| one.stepped_at),
                    &column(&sorted, |one| one.learned),
                    &column(&sorted, |one| one.learned_since),
                    &column(&sorted, |one| one.updated_at),
                )
                .execute(&mut *self.transaction)
                .await?;
                self.transaction.commit().await
            })
            .await
    }
}
