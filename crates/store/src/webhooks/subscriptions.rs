//! What users do with webhooks. Every statement names the tenant.

use redial_proto::{DisabledReason, WebhookEvent, WebhookState, WebhookView, webhook};
use uuid::Uuid;

use crate::{
    StoreError, TenantStore, Time,
    columns::{int, uint, unsigned},
};

#[derive(Clone, Debug)]
pub struct NewWebhook<'a> {
    pub id: Uuid,
    /// Who creates it.
    pub user: &'a str,
    /// Fingerprint of what was asked for.
    pub content: Uuid,
    /// Where events are posted.
    pub url: &'a str,
    pub events: &'a [WebhookEvent],
    /// Only calls of these tools, if there are any.
    pub tools: &'a [String],
    /// Only tasks of these agents, if there are any.
    pub agents: &'a [String],
    /// Which key its secrets are derived from.
    pub key: &'a str,
}

/// A webhook, and what users do not see of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookOnRecord {
    pub view: WebhookView,
    /// Which key its secrets are derived from.
    pub key: String,
    /// Fingerprint of what was asked for when it was created.
    content: Uuid,
}

#[derive(Clone, Debug)]
pub enum WebhookCreated {
    /// It is on record, now or since the same request came before; `true` if now.
    Created(Box<WebhookOnRecord>, bool),
    /// Another one has its id.
    Conflict,
    /// The tenant has too many.
    TooMany,
}

/// What changes in a webhook; `None` stays.
#[derive(Clone, Debug, Default)]
pub struct WebhookChange {
    /// Where events are posted.
    pub url: Option<String>,
    pub events: Option<Vec<WebhookEvent>>,
    pub tools: Option<Vec<String>>,
    pub agents: Option<Vec<String>>,
    /// Whether events are delivered.
    pub state: Option<WebhookState>,
}

#[derive(Clone, Debug)]
pub enum Rotated {
    /// It has the next version now.
    Now(WebhookOnRecord),
    /// It has another version than the one that was to be replaced.
    Other(WebhookOnRecord),
    /// The tenant has no such webhook.
    NotFound,
}

struct Row {
    id: Uuid,
    url: String,
    events: Vec<String>,
    tools: Vec<String>,
    agents: Vec<String>,
    state: String,
    reason: Option<String>,
    key_id: String,
    secret_version: i32,
    previous_until: Option<Time>,
    created_at: Time,
    created_by: String,
    changed_at: Time,
    content: Uuid,
}

/// Shows a webhook without events and reasons of a newer version, which this one cannot name.
impl From<Row> for WebhookView {
    fn from(row: Row) -> Self {
        Self {
            webhook: row.id,
            events: row.events.iter().filter_map(|event| event.parse().ok()).collect(),
            state: WebhookState::shown(&row.state),
            reason: row.reason.and_then(|reason| reason.parse().ok()),
            url: row.url,
            tools: row.tools,
            agents: row.agents,
            secret_version: uint(row.secret_version),
            previous_until: row.previous_until,
            created_at: row.created_at,
            created_by: row.created_by,
            changed_at: row.changed_at,
        }
    }
}

impl From<Row> for WebhookOnRecord {
    fn from(row: Row) -> Self {
        let (key, content) = (row.key_id.clone(), row.content);
        Self { view: row.into(), key, content }
    }
}

fn names(events: &[WebhookEvent]) -> Vec<String> {
    events.iter().map(ToString::to_string).collect()
}

impl TenantStore<'_> {
    /// Lists the tenant's webhooks, in the order of their ids.
    pub async fn webhooks(&self) -> Result<Vec<WebhookView>, StoreError> {
        Ok(self.read_webhooks(None).await?.into_iter().map(|webhook| webhook.view).collect())
    }

    pub async fn webhook(&self, id: Uuid) -> Result<Option<WebhookOnRecord>, StoreError> {
        Ok(self.read_webhooks(Some(id)).await?.pop())
    }

    async fn read_webhooks(&self, id: Option<Uuid>) -> Result<Vec<WebhookOnRecord>, StoreError> {
        let most = i64::from(webhook::MAX_WEBHOOKS) * 2;
        let store = self.store();
        let rows = on_connection!(store, |db| {
            let rows = sqlx::query_file_as!(Row, "sql/webhooks_read.sql", self.tenant().as_str(), id, most);
            rows.fetch_all(db).await
        })?;
        Ok(rows.into_iter().map(WebhookOnRecord::from).collect())
    }

    /// Writes a webhook. Safe to repeat.
    pub async fn create_webhook(&self, new: &NewWebhook<'_>) -> Result<WebhookCreated, StoreError> {
        let store = self.store();
        let written = store
            .run_again(|| async {
                let mut transaction = store.begin().await?;
                let tenant = self.tenant().as_str();
                // One after the other, so that each counts all that are there.
                sqlx::query!("SELECT pg_advisory_xact_lock(hashtextextended('webhooks ' || $1, 0))", tenant)
                    .execute(&mut *transaction)
                    .await?;
                let insert = sqlx::query_file!(
                    "sql/webhooks_create.sql",
                    tenant,
                    new.id,
                    new.user,
                    new.content,
                    new.url,
                    &names(new.events),
                    new.tools,
                    new.agents,
                    new.key,
                    i64::from(webhook::MAX_WEBHOOKS)
                );
                let done = insert.execute(&mut *transaction).await?;
                transaction.commit().await?;
                Ok(done.rows_affected())
            })
            .await?;
        match self.read_webhooks(Some(new.id)).await?.pop() {
            Some(webhook) if webhook.content == new.content => {
                Ok(WebhookCreated::Created(Box::new(webhook), written > 0))
            }
            Some(_) => Ok(WebhookCreated::Conflict),
            None => Ok(WebhookCreated::TooMany),
        }
    }

    /// Changes a webhook; `None` if the tenant has no such webhook.
    pub async fn update_webhook(&self, id: Uuid, change: &WebhookChange) -> Result<Option<WebhookView>, StoreError> {
        let events = change.events.as_deref().map(names);
        let store = self.store();
        let row = on_connection!(store, |db| {
            let update = sqlx::query_file_as!(
                Row,
                "sql/webhooks_update.sql",
                self.tenant().as_str(),
                id,
                change.url.as_deref(),
                events.as_deref(),
                change.tools.as_deref(),
                change.agents.as_deref(),
                change.state.map(WebhookState::as_str),
                DisabledReason::User.as_str()
            );
            update.fetch_optional(db).await
        })?;
        Ok(row.map(WebhookView::from))
    }

    /// Gives a webhook its next secret, derived from the key of this id, if `version` is its current one.
    pub async fn rotate_webhook(&self, id: Uuid, version: u32, key: &str) -> Result<Rotated, StoreError> {
        let store = self.store();
        let row = once_on_connection!(store, |db| {
            let overlap = webhook::OVERLAP_SECONDS;
            let update = sqlx::query_file_as!(
                Row,
                "sql/webhooks_rotate.sql",
                self.tenant().as_str(),
                id,
                int(version),
                overlap,
                key
            );
            update.fetch_optional(db).await
        })?;
        match row {
            Some(row) => Ok(Rotated::Now(row.into())),
            None => Ok(self.webhook(id).await?.map_or(Rotated::NotFound, Rotated::Other)),
        }
    }

    /// Deletes a webhook and what waits for it; returns how many deliveries of it are under way, which the leader cancels. `None`
    /// if the tenant has no such webhook.
    pub async fn delete_webhook(&self, id: Uuid) -> Result<Option<u64>, StoreError> {
        let store = self.store();
        let open = once_on_connection!(store, |db| {
            let delete = sqlx::query_file_scalar!("sql/webhooks_delete.sql", self.tenant().as_str(), id);
            delete.fetch_optional(db).await
        })?;
        Ok(open.map(unsigned))
    }
}
