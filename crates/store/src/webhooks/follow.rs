//! Takes what ended from the queue, and writes its events.

use redial_proto::{CallId, DisabledReason, ErrorClass, FieldError, turn, webhook};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{StoreError, Time, columns::bigint, connect::Store, pass::Pass};

/// What one step of following ends did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    pub ends: usize,
    /// The receivers whose webhooks were disabled.
    pub disabled: Vec<Gone>,
}

/// A receiver that does not want any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    pub tenant: String,
    pub webhook: Uuid,
    /// When the delivery ended that it answered so.
    pub at: Time,
}

impl Store {
    /// True if there is anything to follow, to deliver or to tidy up.
    pub async fn has_webhook_work(&self) -> Result<bool, StoreError> {
        once_on_connection!(self, |db| sqlx::query_file_scalar!("sql/webhooks_work.sql").fetch_one(db).await)
    }

    /// Takes or keeps the lead for so many ms; `None` if another dispatcher has it. Otherwise returns whether any
    /// webhook is active.
    pub async fn lead_webhooks(&self, me: Uuid, lease_ms: u64) -> Result<Option<bool>, StoreError> {
        once_on_connection!(self, |db| {
            sqlx::query_file_scalar!("sql/webhooks_lead.sql", me, bigint(lease_ms)).fetch_optional(db).await
        })
    }

    /// Takes the next ends of a pass over the queue, `limit` at most, and in the same transaction writes their events, deletes those of deliveries that ended,
    /// and disables the webhooks whose receivers said that they do not want any more.
    pub async fn follow_webhooks(&self, pass: &mut Pass, limit: u32) -> Result<Followed, StoreError> {
        self.run(async {
            let mut db = self.begin().await?;
            let ends = sqlx::query_file!("sql/webhooks_take_ends.sql", i64::from(limit), pass.place())
                .fetch_all(&mut *db)
                .await?;
            let of = |tasks: bool| -> Vec<Uuid> {
                ends.iter().filter(|end| end.is_task == tasks).map(|end| end.id).collect()
            };
            let (calls, tasks, mut disabled) = (of(false), of(true), Vec::new());
            if !ends.is_empty() {
                let models = turn::tool_name("");
                sqlx::query_file!("sql/webhooks_follow.sql", &calls, &tasks, webhook::TOOL, models)
                    .execute(&mut *db)
                    .await?;
                for gone in end_deliveries(&mut db, &calls).await? {
                    if disable(&mut db, &gone, DisabledReason::Gone).await? {
                        disabled.push(gone);
                    }
                }
            }
            db.commit().await?;
            pass.went_to(ends.last().map(|last| last.place.clone()));
            Ok(Followed { ends: ends.len(), disabled })
        })
        .await
    }

    /// Returns when the first end was that webhooks may still need; `None` if there is none.
    pub async fn untold_since(&self) -> Result<Option<Time>, StoreError> {
        once_on_connection!(self, |db| sqlx::query_file_scalar!("sql/webhooks_untold.sql").fetch_one(db).await)
    }

    /// Disables a webhook that was active at that time; returns whether that changed anything.
    pub async fn disable_webhook(&self, of: &Gone, reason: DisabledReason) -> Result<bool, StoreError> {
        once_on_connection!(self, |db| disable(db, of, reason).await)
    }

    /// Returns up to `limit` deliveries that are under way to webhooks that were deleted or disabled, and that nobody
    /// has cancelled yet.
    pub async fn abandoned_deliveries(&self, limit: u32) -> Result<Vec<CallId>, StoreError> {
        once_on_connection!(self, |db| {
            let open = sqlx::query_file_scalar!("sql/webhooks_abandoned.sql", i64::from(limit));
            let open = open.fetch_all(&mut *db).await?;
            Ok(open.into_iter().map(CallId).collect())
        })
    }

    /// Deletes events whose deliveries are not open and did not raise an end that was followed.
    pub async fn settle_events(&self) -> Result<(), StoreError> {
        self.run(async {
            let mut db = self.checkout().await?;
            sqlx::query_file!("sql/webhooks_settle.sql").execute(&mut *db).await?;
            db.done(());
            Ok(())
        })
        .await
    }

    /// Deletes events that wait for a webhook that is not active: it was disabled or deleted while they were written, so nothing
    /// would deliver or delete them.
    pub async fn delete_orphaned_events(&self) -> Result<(), StoreError> {
        self.run(async {
            let mut db = self.checkout().await?;
            sqlx::query_file!("sql/webhooks_orphans.sql").execute(&mut *db).await?;
            db.done(());
            Ok(())
        })
        .await
    }

    /// Returns active webhooks for which more than `most` events wait, with the database's time.
    pub async fn overfull_webhooks(&self, most: u32) -> Result<Vec<Gone>, StoreError> {
        once_on_connection!(self, |db| {
            let rows = sqlx::query_as!(
                Gone,
                r#"SELECT tenant, webhook, clock_timestamp() AS "at!" FROM webhook_events WHERE delivery IS NULL
                   GROUP BY tenant, webhook HAVING count(*) > $1"#,
                i64::from(most)
            );
            rows.fetch_all(db).await
        })
    }
}

/// Deletes the events of the deliveries among calls that have ended; returns the receivers that said that they do not want any more.
async fn end_deliveries(db: &mut PgConnection, calls: &[Uuid]) -> Result<Vec<Gone>, sqlx::Error> {
    let failures = sqlx::query_file!("sql/webhooks_end.sql", calls, webhook::TOOL, ErrorClass::BusinessRule.as_str());
    let gone = failures.fetch_all(db).await?.into_iter().filter_map(|row| {
        let details: Vec<FieldError> = serde_json::from_str(&row.details).ok()?;
        let of = details.into_iter().find(|detail| detail.rule == webhook::GONE)?;
        let webhook = of.sent?.as_str()?.parse().ok()?;
        Some(Gone { tenant: row.tenant, webhook, at: row.at })
    });
    Ok(gone.collect())
}

async fn disable(db: &mut PgConnection, of: &Gone, reason: DisabledReason) -> Result<bool, sqlx::Error> {
    let update = sqlx::query_file_scalar!("sql/webhooks_disable.sql", of.tenant, of.webhook, reason.as_str(), of.at);
    Ok(update.fetch_optional(db).await?.is_some())
}
