//! Writes the deliveries of events.

use std::collections::HashSet;

use redial_proto::webhook;
use redial_records::NewCall;
use uuid::Uuid;

use crate::{
    StoreError, Time, calls,
    columns::{column, uint},
    connect::Store,
};

/// An event that waits for its delivery.
#[derive(Clone, Debug)]
pub struct PendingEvent {
    pub tenant: String,
    pub webhook: Uuid,
    /// The call or task that ended.
    pub subject: Uuid,
    /// Its type, such as `call.succeeded`.
    pub event: String,
    /// When that ended.
    pub at: Time,
    pub url: String,
    /// Which key the webhook's secrets are derived from.
    pub key: String,
    pub version: u32,
    /// Until then the version before signs, too.
    pub previous_until: Option<Time>,
}

/// How many events are taken, and how many deliveries may be under way.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryLimits {
    /// Events of a webhook.
    pub each: u32,
    /// Open deliveries of a webhook.
    pub of_webhook: u32,
    /// Open deliveries of a tenant. Once it has them, a webhook of it has no more than its part of them, so that those whose
    /// receivers answer go on.
    pub of_tenant: u32,
    /// Events in all.
    pub total: u32,
}

/// An event with its delivery; without one if what it is about is no longer on record.
#[derive(Clone, Debug)]
pub struct WebhookDelivery {
    pub event: PendingEvent,
    pub call: Option<NewCall>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliverOutcome {
    /// The calls with these ids are on record. Others had a delivery by then, or wait for an erasure.
    Written(HashSet<Uuid>),
    /// An erasure began meanwhile, so nothing was written.
    Erasing,
}

impl Store {
    /// Returns the oldest events that wait, one of each tenant in turn, and of each of its webhooks.
    pub async fn pending_events(&self, limits: DeliveryLimits) -> Result<Vec<PendingEvent>, StoreError> {
        let rows = once_on_connection!(self, |db| {
            let rows = sqlx::query_file!(
                "sql/webhooks_pending.sql",
                i64::from(limits.each),
                i64::from(limits.of_webhook),
                i64::from(limits.of_tenant),
                i64::from(limits.of_tenant / webhook::MAX_WEBHOOKS).max(1),
                i64::from(limits.total)
            );
            rows.fetch_all(db).await
        })?;
        let pending = rows.into_iter().map(|row| PendingEvent {
            tenant: row.tenant,
            webhook: row.webhook,
            subject: row.subject,
            event: row.event,
            at: row.at,
            url: row.url,
            key: row.key_id,
            version: uint(row.secret_version),
            previous_until: row.previous_until,
        });
        Ok(pending.collect())
    }

    /// Writes deliveries, and in the same transaction that their events have them. An event that has one already is left
    /// out, so that each gets one however many dispatchers do this.
    ///
    /// `check_after_ms`: how long a job may stay unclaimed before the sweeper checks it.
    pub async fn deliver(
        &self,
        deliveries: &[WebhookDelivery],
        check_after_ms: u64,
    ) -> Result<DeliverOutcome, StoreError> {
        self.clock.check()?;
        let (with, without): (Vec<&WebhookDelivery>, Vec<&WebhookDelivery>) =
            deliveries.iter().partition(|one| one.call.is_some());
        let with: Vec<(&PendingEvent, &NewCall)> =
            with.into_iter().filter_map(|one| Some((&one.event, one.call.as_ref()?))).collect();
        self.run(async {
            let mut transaction = self.begin().await?;
            delete(&mut transaction, &without).await?;
            let taken: HashSet<Uuid> = take(&mut transaction, &with).await?.into_iter().collect();
            let calls: Vec<&NewCall> =
                with.iter().map(|(_, call)| *call).filter(|call| taken.contains(&call.id.0)).collect();
            let written = calls::insert(&mut transaction, &calls, check_after_ms).await?;
            // An erasure takes its boundary after its tombstone is visible, so one that is not visible now has a boundary
            // behind these calls, and finds them.
            let outcome = if is_erasing(&mut transaction, &calls).await? {
                sqlx::raw_sql("ROLLBACK").execute(&mut *transaction).await?;
                sqlx::raw_sql("BEGIN").execute(&mut *transaction).await?;
                DeliverOutcome::Erasing
            } else {
                DeliverOutcome::Written(written)
            };
            transaction.commit().await?;
            Ok(outcome)
        })
        .await
    }
}

/// Drops events of what is no longer on record.
async fn delete(db: &mut sqlx::PgConnection, gone: &[&WebhookDelivery]) -> Result<(), sqlx::Error> {
    if gone.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "DELETE FROM webhook_events e USING UNNEST($1::text[], $2::uuid[], $3::uuid[]) AS i (tenant, webhook, subject)
         WHERE e.tenant = i.tenant AND e.webhook = i.webhook AND e.subject = i.subject AND e.delivery IS NULL",
        &column(gone, |one| one.event.tenant.clone()),
        &column(gone, |one| one.event.webhook),
        &column(gone, |one| one.event.subject),
    )
    .execute(db)
    .await
    .map(|_| ())
}

async fn take(db: &mut sqlx::PgConnection, with: &[(&PendingEvent, &NewCall)]) -> Result<Vec<Uuid>, sqlx::Error> {
    sqlx::query_file_scalar!(
        "sql/webhooks_take.sql",
        &column(with, |(event, _)| event.tenant.clone()),
        &column(with, |(event, _)| event.webhook),
        &column(with, |(event, _)| event.subject),
        &column(with, |(_, call)| call.id.0),
        &column(with, |(_, call)| call.conversation.as_deref()) as &[Option<&str>],
    )
    .fetch_all(db)
    .await
}

async fn is_erasing(db: &mut sqlx::PgConnection, calls: &[&NewCall]) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT FROM UNNEST($1::text[], $2::text[]) AS i (tenant, conversation)
               JOIN tombstones t ON t.tenant = i.tenant AND t.erased_at IS NULL
                   AND (t.conversation IS NULL OR t.conversation = i.conversation)) AS "erasing!""#,
        &column(calls, |call| call.tenant.clone()),
        &column(calls, |call| call.conversation.as_deref()) as &[Option<&str>],
    )
    .fetch_one(db)
    .await
}
