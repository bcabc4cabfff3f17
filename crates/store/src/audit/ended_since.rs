//! What ended since a time.

use uuid::Uuid;

use crate::{StoreError, TenantStore, Time};

/// A call or a task that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedLine {
    /// Its id.
    pub id: Uuid,
    /// True for a task.
    pub is_task: bool,
    /// The tool of a call, the agent of a task; absent for a task that brought its agent.
    pub name: Option<String>,
    /// How it ended.
    pub state: String,
    /// The error class of a call, the code of a task.
    pub class: Option<String>,
    /// Attempts of a call.
    pub attempts: Option<i32>,
    /// The task that asked for a call.
    pub task: Option<Uuid>,
    /// When.
    pub at: Time,
}

/// A position in the order of ends: a time, and the last id of those that ended then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndedPosition {
    /// The time.
    pub at: Time,
    /// The id; nil: before all that ended then.
    pub id: Uuid,
}

impl EndedLine {
    /// Where it is in the order of ends.
    pub const fn position(&self) -> EndedPosition {
        EndedPosition { at: self.at, id: self.id }
    }
}

impl EndedPosition {
    /// Before all that ended at this time.
    pub const fn before(at: Time) -> Self {
        Self { at, id: Uuid::nil() }
    }
}

impl TenantStore<'_> {
    /// Calls and tasks of the tenant that ended after a position, in the order of their ends: `limit` at most. What is
    /// committed later may have ended before what is returned: see [`crate::stats::Fence`].
    pub async fn ended_since(&self, after: EndedPosition, limit: u32) -> Result<Vec<EndedLine>, StoreError> {
        let tenant = self.tenant().as_str();
        on_connection!(self.store(), |db| {
            let ended =
                sqlx::query_file_as!(EndedLine, "sql/ended_since.sql", tenant, after.at, after.id, i64::from(limit));
            ended.fetch_all(db).await
        })
    }
}
