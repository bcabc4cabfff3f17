//! Finds what ended, and writes its events.

use redial_proto::{CallId, DisabledReason, ErrorClass, FieldError, turn, webhook};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{StoreError, Time, columns::bigint, connect::Store};

/// A time in which things ended.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// From then on.
    pub from: Time,
    /// Before.
    pub until: Time,
}

/// How far ends are followed.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// As the caller knows it.
    was: Time,
    /// From now on.
    until: Time,
}

/// What the dispatcher that leads has to know.
#[derive(Clone, Copy, Debug)]
pub struct Lead {
    /// All ends before this have their events; `None` if nothing was followed.
    pub followed_until: Option<Time>,
    /// The database's clock.
    pub now: Time,
    /// Since when the oldest active webhook wants events; `None` if none is active.
    pub first_since: Option<Time>,
}

/// A receiver that does not want any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Whose webhook it is.
    pub tenant: String,
    /// The webhook.
    pub webhook: Uuid,
    /// When the delivery ended that it answered so.
    pub at: Time,
}

impl Store {
    /// Whether there is anything to follow, to deliver or to tidy up.
    pub async fn has_webhook_work(&self) -> Result<bool, StoreError> {
        once_on_connection!(self, |db| sqlx::query_file_scalar!("sql/webhooks_work.sql").fetch_one(db).await)
    }

    /// Takes or keeps the lead for so many ms; `None` if another dispatcher has it.
    pub async fn lead_webhooks(&self, me: Uuid, lease_ms: u64) -> Result<Option<Lead>, StoreError> {
        once_on_connection!(self, |db| {
            let lead = sqlx::query_file_as!(Lead, "sql/webhooks_lead.sql", me, bigint(lease_ms));
            lead.fetch_optional(db).await
        })
    }

    /// Writes how far ends are followed, if it is still as the caller knows it; returns whether it was.
    pub async fn set_webhook_progress(&self, was: Option<Time>, until: Option<Time>) -> Result<bool, StoreError> {
        once_on_connection!(self, |db| set_progress(db, was, until).await)
    }

    /// The start of a span: about the first `limit` ends of it. More that ended in the same microsecond as the last one are
    /// of it.
    pub async fn slice_of_ends(&self, span: Span, limit: u32) -> Result<Span, StoreError> {
        once_on_connection!(self, |db| {
            let until = end_of_slice(&mut *db, span, limit).await?;
            Ok(Span { until, ..span })
        })
    }

    /// Writes the events of the ends of a span, which must be over: no end of it may appear later. The progress moves with
    /// them, from the span's start to its end. If it is elsewhere, another dispatcher has followed further, and perhaps deleted
    /// what it delivered: nothing is written then, and the answer is `false`.
    pub async fn follow_webhooks(&self, span: Span) -> Result<bool, StoreError> {
        self.write_ends(span, Progress { was: span.from, until: span.until }).await
    }

    /// Writes the events of the ends of a span that are visible by now. Others may appear later, so the progress stays. If it
    /// is elsewhere, nothing is written, as in [`Store::follow_webhooks`].
    pub async fn notice_webhooks(&self, span: Span, progress: Time) -> Result<bool, StoreError> {
        self.write_ends(span, Progress { was: progress, until: progress }).await
    }

    async fn write_ends(&self, span: Span, progress: Progress) -> Result<bool, StoreError> {
        self.run(async {
            let mut transaction = self.begin().await?;
            write_events(&mut transaction, span).await?;
            // Locks the row until the commit, so that nobody moves the progress in between.
            let leads = set_progress(&mut transaction, Some(progress.was), Some(progress.until)).await?;
            if leads {
                transaction.commit().await?;
            } else {
                transaction.rollback().await?;
            }
            Ok(leads)
        })
        .await
    }

    /// The end of what webhooks are done with; `None` if there is nothing that they may still need.
    pub async fn webhooks_done_until(&self) -> Result<Option<Time>, StoreError> {
        once_on_connection!(self, |db| sqlx::query_file_scalar!("sql/webhooks_oldest.sql").fetch_one(db).await)
    }

    /// The receivers that said in a span that they do not want any more.
    pub async fn gone_receivers(&self, span: Span) -> Result<Vec<Gone>, StoreError> {
        let class = ErrorClass::BusinessRule.as_str();
        let rows = once_on_connection!(self, |db| {
            let rows = sqlx::query_file!("sql/webhooks_failures.sql", span.from, span.until, webhook::TOOL, class);
            rows.fetch_all(db).await
        })?;
        let gone = rows.into_iter().filter_map(|row| {
            let details: Vec<FieldError> = serde_json::from_str(&row.details).ok()?;
            let of = details.into_iter().find(|detail| detail.rule == webhook::GONE)?;
            let webhook = of.sent?.as_str()?.parse().ok()?;
            Some(Gone { tenant: row.tenant, webhook, at: row.at })
        });
        Ok(gone.collect())
    }

    /// Disables a webhook that was active at that time; returns whether that changed anything.
    pub async fn disable_webhook(&self, of: &Gone, reason: DisabledReason) -> Result<bool, StoreError> {
        once_on_connection!(self, |db| {
            let update =
                sqlx::query_file_scalar!("sql/webhooks_disable.sql", of.tenant, of.webhook, reason.as_str(), of.at);
            let disabled = update.fetch_optional(&mut *db).await?;
            Ok(disabled.is_some())
        })
    }

    /// Up to `limit` deliveries that are under way to webhooks that were deleted or disabled, and that nobody has cancelled yet.
    pub async fn abandoned_deliveries(&self, limit: u32) -> Result<Vec<CallId>, StoreError> {
        once_on_connection!(self, |db| {
            let open = sqlx::query_file_scalar!("sql/webhooks_abandoned.sql", i64::from(limit));
            let open = open.fetch_all(&mut *db).await?;
            Ok(open.into_iter().map(CallId).collect())
        })
    }

    /// Marks events whose deliveries are not open and did not raise an end that was found.
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

    /// Deletes up to `limit` events whose deliveries have ended and that no look at the ends can find again.
    pub async fn delete_ended_events(&self, before: Time, limit: u32) -> Result<u64, StoreError> {
        once_on_connection!(self, |db| {
            let delete = sqlx::query!(
                "DELETE FROM webhook_events WHERE (tenant, webhook, subject) IN (
                     SELECT tenant, webhook, subject FROM webhook_events WHERE ended AND at < $1 LIMIT $2)",
                before,
                i64::from(limit)
            );
            let done = delete.execute(&mut *db).await?;
            Ok(done.rows_affected())
        })
    }

    /// Active webhooks for which more than `most` events wait, with the database's time.
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

async fn end_of_slice(db: &mut PgConnection, span: Span, limit: u32) -> Result<Time, sqlx::Error> {
    let limit = i64::from(limit);
    let last = sqlx::query_scalar!(
        r#"SELECT min(at) FROM (
               (SELECT finished_at AS at FROM calls WHERE finished_at >= $1 AND finished_at < $2
                ORDER BY finished_at OFFSET $3 LIMIT 1)
               UNION ALL
               (SELECT t.finished_at FROM (SELECT DISTINCT tenant FROM webhooks WHERE state = 'active') w
                JOIN tasks t ON t.tenant = w.tenant
                WHERE t.finished_at >= $1 AND t.finished_at < $2
                ORDER BY t.finished_at OFFSET $3 LIMIT 1)) ends"#,
        span.from,
        span.until,
        limit
    );
    let last = last.fetch_one(db).await?;
    Ok(last.map_or(span.until, |last| (last + chrono::TimeDelta::microseconds(1)).min(span.until)))
}

async fn write_events(db: &mut PgConnection, span: Span) -> Result<(), sqlx::Error> {
    let models = turn::tool_name("");
    sqlx::query_file!("sql/webhooks_follow.sql", span.from, span.until, webhook::TOOL, models)
        .execute(&mut *db)
        .await?;
    sqlx::query_file!("sql/webhooks_end.sql", span.from, span.until, webhook::TOOL).execute(db).await.map(|_| ())
}

/// Returns whether the progress was so.
async fn set_progress(db: &mut PgConnection, was: Option<Time>, until: Option<Time>) -> Result<bool, sqlx::Error> {
    sqlx::query!(
        "UPDATE webhook_progress SET followed_until = $2 WHERE followed_until IS NOT DISTINCT FROM $1",
        was,
        until
    )
    .execute(db)
    .await
    .map(|done| done.rows_affected() > 0)
}
