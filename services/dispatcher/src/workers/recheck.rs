//! Checks the arguments of granted attempts again if they were accepted for another version of their tool than the one that is registered
//! now: while a call waits, its tool may get another schema. What does not fit ends before its worker hears of the grant.

use std::collections::{HashMap, HashSet};

use redial_engine::call::CallEvent;
use redial_proto::{ApiError, Code, Failure, GrantRef};
use redial_records::Transition;
use redial_store::{Granted, OpenedArguments};
use uuid::Uuid;

use crate::{
    aside::aside,
    context::Context,
    effects,
    error::store_failed,
    transitions::{self, MAX_TRIES},
};

/// A granted attempt with arguments that were accepted for this version of its tool.
struct Accepted<'a> {
    grant: GrantRef,
    tool: &'a str,
    version: Uuid,
    arguments: &'a str,
}

/// Returns the grants but for those that it ends. After an error nothing may be granted: its worker asks again.
/// Arguments whose check may take long are left to [`may_open`], so that the claims of others do not wait for it.
pub(super) async fn fitting(context: &Context, mut granted: Vec<Granted>) -> Result<Vec<Granted>, ApiError> {
    let tools = context.registry.tools();
    let mut accepted = Vec::new();
    for grant in &mut granted {
        let Some(version) = grant.tool_version else { continue };
        let Some(tool) = tools.get(&grant.tool).filter(|tool| tool.version != version) else { continue };
        let is_cheap = |arguments: &String| tool.schema.is_cheap(arguments.len());
        grant.arguments = grant.arguments.take().filter(is_cheap);
        let Some(arguments) = &grant.arguments else { continue };
        accepted.push(Accepted { grant: grant.job.granted_to(grant.claim), tool: &grant.tool, version, arguments });
    }
    if accepted.is_empty() {
        return Ok(granted);
    }
    let ended = end_misfits(context, &accepted).await?;
    granted.retain(|grant| !ended.contains(&grant.job.granted_to(grant.claim)));
    Ok(granted)
}

/// Says whether the worker of an attempt may have its arguments; if they do not fit, the attempt has ended.
pub(crate) async fn may_open(context: &Context, grant: GrantRef, opened: &OpenedArguments) -> Result<bool, ApiError> {
    let OpenedArguments { tool, tool_version: Some(version), arguments } = opened else { return Ok(true) };
    let accepted = Accepted { grant, tool, version: *version, arguments };
    Ok(end_misfits(context, &[accepted]).await?.is_empty())
}

/// Ends the attempts whose arguments do not fit, and returns them.
async fn end_misfits(context: &Context, accepted: &[Accepted<'_>]) -> Result<HashSet<GrantRef>, ApiError> {
    if misfits(context, accepted).is_empty() {
        return Ok(HashSet::new());
    }
    // They may have been accepted for a version that this process has not heard of yet.
    context.registry.refresh(&context.store).await.map_err(|error| store_failed(&error))?;
    let misfits = misfits(context, accepted);
    end(context, &misfits).await?;
    Ok(misfits.into_keys().collect())
}

fn misfits(context: &Context, accepted: &[Accepted<'_>]) -> HashMap<GrantRef, Failure> {
    let tools = context.registry.tools();
    let misfit = |one: &Accepted<'_>| Some((one.grant, tools.get(one.tool)?.misfit(one.version, one.arguments)?));
    aside(|| accepted.iter().filter_map(misfit).collect())
}

/// Ends attempts as if their worker had reported these failures. They are nobody else's: no worker heard of them.
async fn end(context: &Context, misfits: &HashMap<GrantRef, Failure>) -> Result<(), ApiError> {
    let ids: Vec<_> = misfits.keys().map(|grant| grant.call).collect();
    for _ in 0..MAX_TRIES {
        let calls = context.store.load(&ids).await.map_err(|error| store_failed(&error))?;
        let ends: Vec<Transition> = calls
            .iter()
            .filter_map(|call| {
                let failure = misfits.get(&call.grant()?)?;
                transitions::plan(context, call, &CallEvent::Failed { duration_ms: 0, failure })
            })
            .collect();
        if ends.is_empty() {
            return Ok(());
        }
        let written = transitions::write_unlocked(context, &ends).await;
        let (applied, effects) = written.map_err(|error| store_failed(&error))?;
        effects::carry_out(context, effects).await;
        for call in &applied.facts {
            tracing::info!(call = %call.call, tool = call.tool, "Ended a call whose arguments do not fit the changed tool");
        }
        if !applied.locked.is_empty() {
            break;
        }
    }
    let message = "calls whose arguments do not fit the changed tool cannot be ended now; try again";
    Err(ApiError::new(Code::Unavailable, message))
}
