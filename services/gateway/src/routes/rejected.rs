//! `/v1/rejected`: submissions without a reply that could not be accepted.

use axum::extract::Path;
use chrono::{DateTime, Utc};
use redial_proto::{Code, UserRole};
use redial_store::audit::DeadLetterRecord;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    endpoint::Endpoint,
    extract::Query,
    gateway::Api,
    page::{LongPageQuery, Page, by_bytes},
    problem::{JsonResult, Problem},
};

const TAG: &str = "rejected";
const READ: &[UserRole] = &[UserRole::Read];
/// Bytes of a message in a list.
const SHOWN: u32 = 4_096;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/v1/rejected", list)
            .about(TAG, "list_rejected", "Submissions of the intake stream that were rejected, newest first")
            .description(
                "Whoever puts a submission on the NATS stream `INTAKE` gets no reply: this is where rejections are.",
            )
            .roles(READ)
            .query::<LongPageQuery>()
            .answer::<RejectedList>(200, "Rejected messages."),
        Endpoint::get("/v1/rejected/{id}", get)
            .about(TAG, "get_rejected", "A rejected message, whole")
            .roles(READ)
            .answer::<RejectedItem>(200, "The message."),
    ]
}

/// A part of the rejected messages.
#[derive(Serialize, JsonSchema)]
struct RejectedList {
    /// Newest first.
    rejected: Vec<RejectedItem>,
    /// For the next page; empty at the end.
    next_page_token: String,
}

/// A message that was rejected, as a whole or in part.
#[derive(Serialize, JsonSchema)]
struct RejectedItem {
    /// Its number.
    id: i64,
    /// When it arrived.
    received_at: DateTime<Utc>,
    /// The code of the first error.
    code: String,
    /// The same in words.
    message: String,
    /// How many entries of it were rejected; 1 if it could not be read at all.
    error_count: u32,
    /// The first of these errors.
    errors: Vec<RejectedEntry>,
    /// The message as far as it is text: in a list its first 4,096 bytes.
    payload: String,
    /// Bytes of the message.
    payload_bytes: u32,
}

/// An entry of a message that was rejected.
#[derive(Serialize, JsonSchema)]
struct RejectedEntry {
    /// Its position in the message, from 0; absent if the message is no batch.
    position: Option<u32>,
    /// The code.
    code: String,
    /// The same in words.
    message: String,
}

async fn list(Api { gateway, who }: Api, Query(query): Query<LongPageQuery>) -> JsonResult<RejectedList> {
    let page = Page::<i64>::of(&gateway, &who, "rejected", &query).await?;
    let store = gateway.store.of(&who.tenant);
    let read = |before, limit| async move {
        let found = store.rejected(before, limit, SHOWN).await?;
        Ok(found.into_iter().map(|(record, bytes)| item(record, bytes)).collect())
    };
    let (rejected, next) = by_bytes(&page, |item: &RejectedItem| item.id, read).await?;
    Ok(axum::Json(RejectedList { rejected, next_page_token: page.next(next.as_ref()) }))
}

async fn get(Api { gateway, who }: Api, Path(id): Path<String>) -> JsonResult<RejectedItem> {
    let wrong = |_| Problem::invalid("the id in the path is no number; allowed: the id of an entry of /v1/rejected");
    let id: i64 = id.parse().map_err(wrong)?;
    let found = gateway.store.of(&who.tenant).rejected_one(id).await?;
    let missing = || Problem::new(Code::NotFound, format!("no rejected message {id} is on record"));
    let (record, bytes) = found.ok_or_else(missing)?;
    Ok(axum::Json(item(record, bytes)))
}

fn item(record: DeadLetterRecord, payload_bytes: u32) -> RejectedItem {
    let entry = |error: redial_store::Rejection| RejectedEntry {
        position: error.position,
        code: error.code,
        message: error.message,
    };
    RejectedItem {
        id: record.id,
        received_at: record.received_at,
        code: record.code,
        message: record.message,
        error_count: record.error_count,
        errors: record.errors.into_iter().map(entry).collect(),
        payload: record.payload,
        payload_bytes,
    }
}
