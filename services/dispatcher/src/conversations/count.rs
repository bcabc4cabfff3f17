//! Counts what an erasure would erase, a part with each request. Nothing is kept between them: the answer says where the next
//! one continues.

use std::time::Instant;

use chrono::TimeDelta;
use redial_engine::accept::check_texts;
use redial_proto::{ApiError, CallId, ForgetCursor, ForgetReply};
use redial_store::{Scope, StoreError, TaskPosition};

use crate::{context::Context, error::store_failed};

/// Tasks that one statement counts: each with its messages and steps.
const TASKS: u32 = 200;
/// Calls that one statement looks at.
const CALLS: u32 = 2_000;

pub(super) async fn count(
    context: &Context,
    scope: &Scope,
    after: Option<ForgetCursor>,
    until: Instant,
) -> Result<ForgetReply, ApiError> {
    if let Some(ForgetCursor::Tasks { conversation, .. }) = &after {
        check_texts(&[("after.tasks.conversation", Some(conversation))])?;
    }
    let mut reply = ForgetReply { next: after, ..ForgetReply::default() };
    while !reply.done && Instant::now() < until {
        step(context, scope, &mut reply).await.map_err(|error| store_failed(&error))?;
    }
    Ok(reply)
}

/// The nil id and zero come before every other.
async fn step(context: &Context, scope: &Scope, reply: &mut ForgetReply) -> Result<(), StoreError> {
    let store = &context.store;
    let next = match reply.next.take() {
        Some(ForgetCursor::Calls { call }) => {
            // No call was submitted later than this.
            let until = store.now().await? + TimeDelta::days(1);
            let counted = store.count_calls(scope, until, Some(call), CALLS).await?;
            reply.counts.add(&counted.counts);
            reply.open.calls += counted.open;
            Some(match counted.before {
                Some(call) => ForgetCursor::Calls { call },
                None => ForgetCursor::DeadLetters { dead_letter: 0 },
            })
        }
        Some(ForgetCursor::DeadLetters { dead_letter }) => {
            let counted = store.count_letters(scope, dead_letter).await?;
            reply.counts.dead_letters += counted.dead_letters;
            if counted.up_to.is_none() {
                reply.counts.tokens += store.count_tokens(scope).await?;
            }
            counted.up_to.map(|dead_letter| ForgetCursor::DeadLetters { dead_letter })
        }
        tasks => {
            let after = match tasks {
                Some(ForgetCursor::Tasks { conversation, submitted_at, task }) => {
                    Some(TaskPosition { conversation, submitted_at, task })
                }
                _ => None,
            };
            let counted = store.count_tasks(scope, after.as_ref(), TASKS).await?;
            reply.counts.add(&counted.counts);
            reply.open.tasks += counted.open;
            Some(match counted.last {
                Some(TaskPosition { conversation, submitted_at, task }) => {
                    ForgetCursor::Tasks { conversation, submitted_at, task }
                }
                None => ForgetCursor::Calls { call: CallId(uuid::Uuid::nil()) },
            })
        }
    };
    (reply.done, reply.next) = (next.is_none(), next);
    Ok(())
}
