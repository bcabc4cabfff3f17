//! Erases a conversation, or everything of a tenant; or only counts it.
//!
//! A request works for a few seconds and says how far it came. Whoever asked sends it again until it is done; if nobody does,
//! the dispatchers finish it (`finish`).

use std::time::{Duration, Instant};

use redial_engine::accept::check_texts;
use redial_proto::{ApiError, Caller, Code, Forget, ForgetReply, OpenWork, subjects::Verb};
use redial_store::{Begun, NewErasure, Scope, Tombstone};

use tokio::time::timeout;

use super::{
    count::count,
    erase::{Outcome, erase},
};
use crate::{actions::trim_now_and_then, asked::Asked, context::Context, error::store_failed};

/// How long one request works at most, but for its last statement.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long one waits for its turn.
const TURN: Duration = Duration::from_secs(2);

/// Erases a conversation.
pub(crate) async fn conversation(asked: Asked, request: Forget) -> Result<ForgetReply, ApiError> {
    if request.conversation.is_none() {
        return wrong("conversation is missing; `tenants.forget` erases everything of the tenant");
    }
    forget_of(&asked, request).await
}

/// Erases everything of the tenant.
pub(crate) async fn tenant(asked: Asked, request: Forget) -> Result<ForgetReply, ApiError> {
    if request.conversation.is_some() {
        return wrong("a conversation is named, and this would erase everything; use `conversations.forget`");
    }
    forget_of(&asked, request).await
}

fn wrong(message: &str) -> Result<ForgetReply, ApiError> {
    Err(ApiError::new(Code::InvalidValue, message))
}

async fn forget_of(asked: &Asked, request: Forget) -> Result<ForgetReply, ApiError> {
    // Boxed, because it would make the future of each request large.
    Box::pin(forget(asked.for_erasing(), &asked.caller, request)).await
}

async fn forget(context: &Context, caller: &Caller, request: Forget) -> Result<ForgetReply, ApiError> {
    check_texts(&[("conversation", request.conversation.as_ref())])?;
    let Ok(_share) = timeout(TURN, context.erasing.take(caller.tenant.as_str(), 1)).await else {
        return Err(ApiError::new(Code::Unavailable, "other erasures of the tenant are being worked on; try again"));
    };
    let until = Instant::now() + PATIENCE;
    let scope = Scope { tenant: caller.tenant.to_string(), conversation: request.conversation };
    if request.dry_run {
        return count(context, &scope, request.after, until).await;
    }
    let Some(id) = request.erasure else {
        let message =
            "erasure is missing; allowed: a UUID that is made for this erasure, the same in each request for it";
        return Err(ApiError::new(Code::InvalidValue, message));
    };
    let conversation = scope.conversation.as_deref();
    let verb = if conversation.is_some() { Verb::ConversationForget } else { Verb::TenantForget };
    trim_now_and_then(context, caller, verb).await;
    let cancels = request.cancel;
    let new = NewErasure { id, caller, door: caller.door.as_str(), verb: verb.name(), conversation, cancels };
    // Another erasure of the same scope is finished first: it may be of an earlier time.
    while Instant::now() < until {
        let tombstone = match context.store.begin_erasure(&new).await.map_err(|error| store_failed(&error))? {
            Begun::Erasure(tombstone) => *tombstone,
            Begun::OtherEnded => continue,
            Begun::IdIsTaken => {
                let message = format!("erasure {id} is of something else; allowed: another UUID for each erasure");
                return Err(ApiError::new(Code::InvalidValue, message));
            }
        };
        let is_other = tombstone.id != id;
        match erase(context, tombstone, until).await.map_err(|error| store_failed(&error))? {
            Outcome::Erased(_) if is_other => {}
            Outcome::Erased(tombstone) => return Ok(reply(&tombstone, OpenWork::default())),
            Outcome::Working(tombstone, open) => return Ok(reply(&tombstone, open)),
            Outcome::Refused(open) => return Err(refused(&scope, open)),
            Outcome::GivenUp => {}
        }
    }
    Err(ApiError::new(Code::Unavailable, "another erasure of the same is being finished; try again"))
}

fn reply(tombstone: &Tombstone, open: OpenWork) -> ForgetReply {
    let erased_at = tombstone.erased_at;
    ForgetReply { done: erased_at.is_some(), counts: tombstone.counts, open, next: None, erased_at }
}

fn refused(scope: &Scope, open: OpenWork) -> ApiError {
    let what = match &scope.conversation {
        Some(conversation) => format!("conversation {conversation:?} of tenant {:?}", scope.tenant),
        None => format!("tenant {:?}", scope.tenant),
    };
    let OpenWork { tasks, calls } = open;
    let message = format!(
        "{what} has work that has not ended (found {tasks} tasks and {calls} calls, perhaps not all), so nothing was erased; \
         wait for its end, or cancel it first with `cancel` (--cancel)"
    );
    ApiError::new(Code::WrongState, message)
}
