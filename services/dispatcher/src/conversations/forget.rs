//! Erases a conversation, or everything of a tenant; or only counts it.
//!
//! A request works for a few seconds and says how far it came. Whoever asked sends it again until it is done; if nobody does,
//! the dispatchers finish it (`finish`).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use redial_engine::accept::check_texts;
use redial_proto::{ApiError, Code, Forget, ForgetReply, OpenWork};
use redial_store::{NewErasure, Scope, Tombstone};

use super::{
    count::count,
    erase::{Outcome, erase},
};
use crate::{context::Context, error::store_failed};

/// How long one request works at most, but for its last statement.
const PATIENCE: Duration = Duration::from_secs(4);
/// Who asked, if nobody says so.
const UNKNOWN: &str = "unknown";

pub(crate) async fn answer(context: Arc<Context>, request: Forget) -> Result<ForgetReply, ApiError> {
    let tenant = match (&request.tenant, &request.conversation) {
        (Some(tenant), _) => tenant.clone(),
        (None, Some(_)) => "default".to_owned(),
        (None, None) => {
            let message =
                "nothing is named to erase; allowed: a conversation, or a tenant of which everything is erased";
            return Err(ApiError::new(Code::InvalidValue, message));
        }
    };
    // Boxed, because it would make the future of each request large.
    Box::pin(forget(&context, tenant, request)).await
}

/// `tenant` is whose conversation it is, or what is erased if no conversation is named.
async fn forget(context: &Context, tenant: String, request: Forget) -> Result<ForgetReply, ApiError> {
    check_texts(&[
        ("tenant", Some(&tenant)),
        ("conversation", request.conversation.as_ref()),
        ("actor", request.actor.as_ref()),
    ])?;
    let until = Instant::now() + PATIENCE;
    let scope = Scope { tenant, conversation: request.conversation };
    if request.dry_run {
        return count(context, &scope, request.after, until).await;
    }
    let Some(id) = request.erasure else {
        let message =
            "erasure is missing; allowed: a UUID that is made for this erasure, the same in each request for it";
        return Err(ApiError::new(Code::InvalidValue, message));
    };
    let actor = request.actor.unwrap_or_else(|| UNKNOWN.to_owned());
    let new = NewErasure { id, scope, actor, cancels: request.cancel };
    // Another erasure of the same scope is finished first: it may be of an earlier time.
    while Instant::now() < until {
        let begun = context.store.begin_erasure(&new).await.map_err(|error| store_failed(&error))?;
        let Some(tombstone) = begun else { continue };
        if tombstone.scope != new.scope {
            let message = format!("erasure {id} is of something else; allowed: another UUID for each erasure");
            return Err(ApiError::new(Code::InvalidValue, message));
        }
        let is_other = tombstone.id != id;
        match erase(context, tombstone, until).await.map_err(|error| store_failed(&error))? {
            Outcome::Erased(_) if is_other => {}
            Outcome::Erased(tombstone) => return Ok(reply(&tombstone, OpenWork::default())),
            Outcome::Working(tombstone, open) => return Ok(reply(&tombstone, open)),
            Outcome::Refused(open) => return Err(refused(&new.scope, open)),
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
