//! `/v1/conversations`.

use std::time::{Duration, Instant};

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use redial_api::{ConversationList, Erased, MessageList};
use redial_proto::{Code, Forget, ForgetReply, TaskId, UserRole, limits::shorten, subjects::Verb};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    endpoint::Endpoint,
    extract::{Name, Query},
    gateway::Api,
    page::{Page, PageQuery},
    problem::{JsonResult, Problem},
};

const TAG: &str = "conversations";
const READ: &[UserRole] = &[UserRole::Read];
/// Bytes of text of one page of messages.
const BYTES: u32 = 4 * 1024 * 1024;
/// How long one request works on an erasure. One request to a dispatcher takes a few seconds.
const ERASES_FOR: Duration = Duration::from_secs(12);

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/v1/conversations", list)
            .about(TAG, "list_conversations", "List conversations, the one with the newest task first")
            .roles(READ)
            .query::<PageQuery>()
            .answer::<ConversationList>(200, "Conversations."),
        Endpoint::get("/v1/conversations/{conversation}/messages", messages)
            .about(TAG, "list_messages", "The messages of a conversation, in order")
            .roles(READ)
            .query::<MessagesQuery>()
            .answer::<MessageList>(200, "Messages."),
        Endpoint::delete("/v1/conversations/{conversation}", erase)
            .about(TAG, "erase_conversation", "Erase a conversation with its tasks, calls and results")
            .description(
                "Once it has begun it is finished in any case. Send a request with the same `erasure` again until the answer \
                 says `done`.",
            )
            .roles(&[UserRole::Admin])
            .query::<EraseQuery>()
            .answer::<Erased>(200, "All of it is erased.")
            .answer::<Erased>(202, "The erasure goes on."),
    ]
}

async fn list(Api { gateway, who }: Api, Query(query): Query<PageQuery>) -> JsonResult<ConversationList> {
    let page = Page::<TaskId>::of(&gateway, &who, "conversations", &query).await?;
    let found = gateway.store.of(&who.tenant).conversations(page.after, page.size).await?;
    let next_page_token = page.next(found.next.as_ref());
    Ok(axum::Json(ConversationList { conversations: found.conversations, next_page_token }))
}

/// Which page.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MessagesQuery {
    /// Entries of a page: 1 to 1,000. Default 50. A page has fewer if they are long.
    page_size: Option<u32>,
    /// `next_page_token` of the answer before.
    page_token: Option<String>,
    /// The name in the path: a token of one conversation is not good for another.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    conversation: String,
}

async fn messages(
    Api { gateway, who }: Api,
    Name(conversation): Name,
    Query(mut query): Query<MessagesQuery>,
) -> JsonResult<MessageList> {
    query.conversation.clone_from(&conversation);
    let page = Page::<u32>::of(&gateway, &who, "messages", &query).await?;
    let store = gateway.store.of(&who.tenant);
    // One more tells whether there is a next page.
    let mut messages = store.messages(&conversation, page.after.unwrap_or(0), page.size + 1, BYTES).await?;
    if messages.is_empty() && !store.has_conversation(&conversation).await? {
        let name = shorten(&conversation, 100);
        return Err(Problem::new(Code::NotFound, format!("no conversation {name:?} is on record")));
    }
    let is_full = messages.len() > page.size as usize;
    messages.truncate(page.size as usize);
    let last = messages.last().map(|message| message.seq);
    let more = match last {
        Some(_) if is_full => true,
        Some(last) => !store.messages(&conversation, last, 1, 1).await?.is_empty(),
        None => false,
    };
    let next = last.filter(|_| more);
    Ok(axum::Json(MessageList { messages, next_page_token: page.next(next.as_ref()) }))
}

/// How a conversation is erased.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EraseQuery {
    /// A UUID that you make for this erasure, so that a request that is sent again continues it. Default: a new one, which the
    /// answer names.
    erasure: Option<Uuid>,
    /// Cancel tasks and calls that have not ended, and wait for their end. Otherwise they are a reason to erase nothing.
    #[serde(default)]
    cancel: bool,
}

async fn erase(
    Api { gateway, who }: Api,
    Name(conversation): Name,
    Query(query): Query<EraseQuery>,
) -> Result<Response, Problem> {
    let erasure = query.erasure.unwrap_or_else(Uuid::new_v4);
    let request =
        Forget { conversation: Some(conversation), erasure: Some(erasure), cancel: query.cancel, ..Forget::default() };
    let until = Instant::now() + ERASES_FOR;
    loop {
        let reply: ForgetReply = gateway.ask_twice(&who, Verb::ConversationForget, &request).await?;
        if reply.done || Instant::now() >= until || gateway.shutdown.is_cancelled() {
            let status = if reply.done { StatusCode::OK } else { StatusCode::ACCEPTED };
            return Ok((status, axum::Json(Erased { erasure, reply })).into_response());
        }
    }
}
