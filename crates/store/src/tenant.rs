//! What a user may see and change: everything here is within one tenant.
//!
//! A verb of a user gets the dispatcher's `Asked`, which reaches the store through a [`TenantStore`], so a query that forgets the
//! tenant does not compile. The exceptions are erasures and tokens, whose statements name the tenant themselves (those of tokens not if
//! an operator asks), and tools, which belong to no tenant.

use std::collections::HashMap;

use redial_api::TokenItem;
use redial_proto::{CallId, TaskId, TaskReport, TaskState, Tenant};
use redial_records::{CallContent, CallRecord};
use uuid::Uuid;

use crate::{Store, StoreError, TokenFilter, columns::column};

/// The store as one tenant sees it: what belongs to another one does not exist.
#[derive(Clone, Copy)]
pub struct TenantStore<'a> {
    store: &'a Store,
    tenant: &'a Tenant,
}

impl Store {
    pub const fn of<'a>(&'a self, tenant: &'a Tenant) -> TenantStore<'a> {
        TenantStore { store: self, tenant }
    }
}

impl<'a> TenantStore<'a> {
    pub(crate) const fn store(&self) -> &'a Store {
        self.store
    }

    pub(crate) const fn tenant(&self) -> &'a Tenant {
        self.tenant
    }
}

impl TenantStore<'_> {
    /// Returns those of these calls that are of the tenant, as decisions need them.
    pub async fn load(&self, calls: &[CallId]) -> Result<Vec<CallRecord>, StoreError> {
        self.store.load(&self.own(calls).await?).await
    }

    pub async fn has_call(&self, call: CallId) -> Result<bool, StoreError> {
        Ok(!self.own(&[call]).await?.is_empty())
    }

    /// Returns what those of these calls that are of the tenant were asked to do.
    pub async fn contents(&self, calls: &[CallId]) -> Result<HashMap<CallId, CallContent>, StoreError> {
        let mut contents = self.store.contents(calls).await?;
        contents.retain(|_, content| content.tenant == self.tenant.as_str());
        Ok(contents)
    }

    /// See [`Store::groups_in_order`]; says nothing of calls but which of them are together.
    pub async fn groups_in_order(&self, calls: &[CallId]) -> Result<Vec<Vec<CallId>>, StoreError> {
        self.store.groups_in_order(calls).await
    }

    /// Returns those of these calls of the tenant that are being erased.
    pub async fn being_erased(&self, calls: &[CallId]) -> Result<Vec<CallId>, StoreError> {
        self.store.being_erased(calls).await
    }

    /// Returns those of these calls that are of the tenant.
    pub(crate) async fn own(&self, calls: &[CallId]) -> Result<Vec<CallId>, StoreError> {
        let ids: Vec<Uuid> = column(calls, |call| call.0);
        on_connection!(self.store, |db| {
            let own = sqlx::query_scalar!(
                "SELECT id FROM calls WHERE id = ANY ($1) AND tenant = $2",
                &ids,
                self.tenant.as_str()
            );
            let own = own.fetch_all(&mut *db).await?;
            Ok(own.into_iter().map(CallId).collect())
        })
    }

    /// Puts a cancel into the inbox of a task, unless it has ended. Returns its state, and whether it is asked to stop for the
    /// first time; `None` if the tenant has no such task.
    pub async fn cancel_task(&self, task: TaskId) -> Result<Option<(TaskState, bool)>, StoreError> {
        let found = on_connection!(self.store, |db| {
            let found = sqlx::query_file!("sql/cancel_task.sql", task.0, self.tenant.as_str());
            found.fetch_optional(db).await
        })?;
        Ok(found.map(|found| (TaskState::shown(&found.state), found.is_new)))
    }

    /// Returns a task, its steps after step `after`, and the messages that those wrote: as many steps as fit into
    /// `max_bytes` of JSON, and at least one if there is one. Should that one be too long, its texts are cut. `None` if
    /// the tenant has no such task.
    pub async fn task_report(
        &self,
        task: TaskId,
        after: u32,
        max_bytes: usize,
    ) -> Result<Option<TaskReport>, StoreError> {
        self.store.task_report(self.tenant, task, after, max_bytes).await
    }

    /// Returns the number of the last step of a task; 0 if there is none, or no such task of the tenant.
    pub async fn last_step(&self, task: TaskId) -> Result<u32, StoreError> {
        on_connection!(self.store, |db| {
            let last = sqlx::query_scalar!(
                "SELECT last_step FROM tasks WHERE id = $1 AND tenant = $2",
                task.0,
                self.tenant.as_str()
            );
            let last = last.fetch_optional(&mut *db).await?;
            Ok(last.map_or(0, |last| u32::try_from(last).unwrap_or(0)))
        })
    }

    /// Returns a report in pages of about `about` bytes, for who can take a step of any length: nothing is cut.
    pub async fn task_page(&self, task: TaskId, after: u32, about: usize) -> Result<Option<TaskReport>, StoreError> {
        self.store.task_page(self.tenant, task, after, about).await
    }

    /// Lists tokens of the tenant, newest first.
    pub async fn tokens(&self, filter: &TokenFilter, limit: u32) -> Result<Vec<TokenItem>, StoreError> {
        let filter = TokenFilter { tenant: Some(self.tenant.to_string()), ..filter.clone() };
        let tokens = self.store.tokens(&filter, limit).await?;
        Ok(tokens.into_iter().map(|token| TokenItem { tenant: None, ..token }).collect())
    }
}
