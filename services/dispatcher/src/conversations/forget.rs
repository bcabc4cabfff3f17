//! Erases a conversation, or everything of a tenant; or only counts it.
//!
//! A request puts the erasure on record, waits for a few seconds, and says how far it is; the dispatchers carry it out
//! (`erase`). Whoever asked sends it again until it is done.

use std::time::{Duration, Instant};

use redial_engine::accept::check_texts;
use redial_proto::{ApiError, Caller, Code, Forget, ForgetReply, OpenWork, subjects::Verb};
use redial_store::{NewErasure, Phase, Scope, StoreError, Tombstone};
use tokio::time::{sleep, timeout};

use super::erase::open_work;
use crate::{actions::trim_now_and_then, asked::Asked, context::Context, error::store_failed};

/// How long one request waits for the end.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long a dry run waits for its turn.
const TURN: Duration = Duration::from_secs(2);
/// Between two looks at how far it is.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) async fn conversation(asked: Asked, request: Forget) -> Result<ForgetReply, ApiError> {
    if request.conversation.is_none() {
        return wrong("conversation is missing; `tenants.forget` erases everything of the tenant");
    }
    forget_of(&asked, request).await
}

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
    let scope = Scope { tenant: caller.tenant.to_string(), conversation: request.conversation };
    if request.dry_run {
        let Ok(_share) = timeout(TURN, context.counting.take(caller.tenant.as_str(), 1)).await else {
            return Err(ApiError::new(Code::Unavailable, "other erasures of the tenant are being counted; try again"));
        };
        return context.store.count_erasure(&scope).await.map_err(|error| store_failed(&error));
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
    let until = Instant::now() + PATIENCE;
    // Another erasure of the same scope is finished first: it may be of an earlier time.
    while Instant::now() < until {
        let begun = context.store.begin_erasure(&new).await.map_err(|error| store_failed(&error))?;
        context.erasures.notify_one();
        let Some(tombstone) = begun else {
            if context.store.tombstone(id).await.map_err(|error| store_failed(&error))?.is_some() {
                let message = format!("erasure {id} is of something else; allowed: another UUID for each erasure");
                return Err(ApiError::new(Code::InvalidValue, message));
            }
            continue;
        };
        let (last, is_given_up) = wait(context, tombstone, until).await.map_err(|error| store_failed(&error))?;
        if last.id != id && (is_given_up || last.phase == Phase::Done) {
            continue;
        }
        let open = open_work(context, &last).await.map_err(|error| store_failed(&error))?;
        return if is_given_up { Err(refused(&scope, open)) } else { Ok(reply(&last, open)) };
    }
    Err(ApiError::new(Code::Unavailable, "another erasure of the same is being finished; try again"))
}

/// Waits until an erasure is done or given up, or the time is over; returns how far it was, and whether it was given up.
async fn wait(context: &Context, mut tombstone: Tombstone, until: Instant) -> Result<(Tombstone, bool), StoreError> {
    while tombstone.phase != Phase::Done && Instant::now() < until {
        sleep(LOOK).await;
        match context.store.tombstone(tombstone.id).await? {
            Some(now) => tombstone = now,
            None => return Ok((tombstone, true)),
        }
    }
    Ok((tombstone, false))
}

fn reply(tombstone: &Tombstone, open: OpenWork) -> ForgetReply {
    let erased_at = tombstone.erased_at;
    ForgetReply { done: erased_at.is_some(), counts: tombstone.counts, open, more: false, erased_at }
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
