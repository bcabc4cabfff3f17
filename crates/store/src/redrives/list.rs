//! Reads redrives.

use redial_proto::{RedriveId, RedriveState, RedriveView, User};
use uuid::Uuid;

use super::RawRedrive;
use crate::{StoreError, TenantStore, Time};

impl TenantStore<'_> {
    /// Returns a redrive; `None` if the tenant has none of this id.
    pub async fn redrive(&self, redrive: RedriveId) -> Result<Option<RedriveView>, StoreError> {
        Ok(self.redrives_of(Some(redrive.0), None, None, 1).await?.pop())
    }

    /// Returns redrives, newest first, behind the one that was created at this time under this id.
    pub async fn redrives(
        &self,
        state: Option<RedriveState>,
        before: Option<(Time, RedriveId)>,
        limit: u32,
    ) -> Result<Vec<RedriveView>, StoreError> {
        self.redrives_of(None, state, before, limit).await
    }

    /// Returns the way by which a redrive of this user was asked for, such as `http`; `None` if its action is not on
    /// record any more.
    pub async fn redrive_door(&self, redrive: RedriveId, user: &User) -> Result<Option<String>, StoreError> {
        on_connection!(self.store(), |db| {
            let door = sqlx::query_file_scalar!(
                "sql/redrive_door.sql",
                self.tenant().as_str(),
                user.as_str(),
                redrive.to_string()
            );
            door.fetch_optional(db).await
        })
    }

    async fn redrives_of(
        &self,
        id: Option<Uuid>,
        state: Option<RedriveState>,
        before: Option<(Time, RedriveId)>,
        limit: u32,
    ) -> Result<Vec<RedriveView>, StoreError> {
        let rows = on_connection!(self.store(), |db| {
            let rows = sqlx::query_file_as!(
                RawRedrive,
                "sql/redrives.sql",
                self.tenant().as_str(),
                id,
                before.map(|(at, _)| at),
                before.map(|(_, id)| id.0),
                state.map(RedriveState::as_str),
                i64::from(limit),
            );
            rows.fetch_all(db).await
        })?;
        Ok(rows.into_iter().map(RedriveView::from).collect())
    }
}
