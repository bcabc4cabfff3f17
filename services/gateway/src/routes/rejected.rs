//! `/v1/rejected`: submissions without a reply that could not be accepted.

use axum::extract::Path;
use redial_api::{RejectedItem, RejectedList};
use redial_proto::{Code, UserRole};

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

async fn list(Api { gateway, who }: Api, Query(query): Query<LongPageQuery>) -> JsonResult<RejectedList> {
    let page = Page::<i64>::of(&gateway, &who, "rejected", &query).await?;
    let store = gateway.store.of(&who.tenant);
    let read = |before, limit| async move { Ok(store.rejected(before, limit, SHOWN).await?) };
    let (rejected, next) = by_bytes(&page, |item: &RejectedItem| item.id, read).await?;
    Ok(axum::Json(RejectedList { rejected, next_page_token: page.next(next.as_ref()) }))
}

async fn get(Api { gateway, who }: Api, Path(id): Path<String>) -> JsonResult<RejectedItem> {
    let wrong = |_| Problem::invalid("the id in the path is no number; allowed: the id of an entry of /v1/rejected");
    let id: i64 = id.parse().map_err(wrong)?;
    let found = gateway.store.of(&who.tenant).rejected_one(id).await?;
    let missing = || Problem::new(Code::NotFound, format!("no rejected message {id} is on record"));
    found.map(axum::Json).ok_or_else(missing)
}
