//! Carries out redrives, step by step, in turn: first the calls that match are counted, then they run again at the rate that
//! was asked for. Everything that is remembered is in the row of the redrive, so whoever takes the next step goes on there.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use redial_engine::{call, publish::FIRST_CHECK_MS};
use redial_proto::{
    ApiError, CallId, Caller, Code, Door, RedriveFilter, RedriveRequest, RedriveState, UserRole, turn::model_name,
};
use redial_records::NewCall;
use redial_store::{
    RedriveStep, RedriveWork, StoreError,
    audit::{Filter, Inside, Limits, Search, Searched, json_search::Condition},
};
use redial_telemetry::set_aside;
use tokio_util::sync::CancellationToken;

use crate::{
    asked::Asked, calls::redrive::plan, context::Context, effects, error::store_failed, policies::check_roles,
    wait::carry_out,
};

/// A dispatcher that takes a step for longer is dead, or its step comes to nothing.
const LEASE: Duration = Duration::from_secs(15);
/// Calls of one step that counts.
const COUNTED: usize = 1_000;
/// Calls of one step that run again.
const REDRIVEN: u32 = 500;
/// Calls that a step looks at, and how long it may look.
const LOOKED: u64 = 20_000;
const LOOKS_FOR: Duration = Duration::from_secs(2);

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    carry_out(&shutdown, &context.redrives, || take_step(&context)).await;
}

/// Takes a step; false if none is due.
async fn take_step(context: &Arc<Context>) -> bool {
    match context.store.take_redrive(LEASE).await {
        Ok(Some(work)) => {
            if let Err(error) = Box::pin(step(context, &work)).await {
                let redrive = work.redrive;
                tracing::warn!(%redrive, %error, "Failed to carry out a step of a redrive; it is tried again");
            }
            true
        }
        Ok(None) => false,
        Err(error) => {
            tracing::warn!(%error, "Failed to look for redrives");
            false
        }
    }
}

async fn step(context: &Arc<Context>, work: &RedriveWork) -> Result<(), ApiError> {
    if let Some(why) = lost_right(context, work).await? {
        return fail(context, work, why).await;
    }
    let filter = match &work.filter {
        Ok(filter) => filter,
        // To ignore a condition would run calls again that nobody meant. Another dispatcher may take it once this step's time is over.
        Err(why) => {
            set_aside("redrives", 1, &work.redrive, why);
            return Ok(());
        }
    };
    let found = match look(context, work, filter).await {
        Ok(found) => found,
        Err(error) if error.is_transient() || error.is_timeout() => return Err(store_failed(&error)),
        Err(error) => {
            tracing::error!(redrive = %work.redrive, %error, "Failed to find the calls of a redrive");
            return fail(context, work, "its calls cannot be read; the dispatcher's log has more".to_owned()).await;
        }
    };
    let mut next = next(work, filter, &found);
    if work.state == RedriveState::Counting {
        let matched = work.matched + found.calls.len() as u64;
        if let Some(most) = work.at_most.filter(|most| matched > *most && !work.dry_run) {
            let why =
                format!("{matched} or more calls match; allowed by at_most: {most}. None runs again: count them again");
            return fail(context, work, why).await;
        }
        let counted = RedriveStep { matched: found.calls.len() as u64, ..next };
        return write(context, work, Vec::new(), &counted).await;
    }
    let mut calls = found.calls;
    // Calls that failed after they were counted match, too.
    let left = work
        .at_most
        .map_or(usize::MAX, |most| usize::try_from(most.saturating_sub(work.redriven)).unwrap_or(usize::MAX));
    if calls.len() > left {
        calls.truncate(left);
        next.state = RedriveState::Failed;
        next.error = Some("more calls match than were counted; as many run again as at_most allows".to_owned());
    }
    redrive(context, work, calls, next).await
}

/// Returns why the access file does not let the user who asked for it do so any more. If that was over NATS, the
/// permissions of the server allowed it, and the file is not asked.
async fn lost_right(context: &Context, work: &RedriveWork) -> Result<Option<String>, ApiError> {
    // Another text is told with the first call that would run again.
    let Ok(user) = work.created_by.parse() else { return Ok(None) };
    let access = context.access.at(Instant::now()).await;
    let Err(lost) = check_roles(&access, &work.tenant, &user, &BTreeSet::from([UserRole::Operate])) else {
        return Ok(None);
    };
    let door = context.store.of(&work.tenant).redrive_door(work.redrive, &user).await;
    let door = door.map_err(|error| store_failed(&error))?;
    Ok((door.as_deref() != Some(Door::Nats.as_str())).then_some(lost.message))
}

/// The next calls that match and were not redriven.
struct Matching {
    calls: Vec<CallId>,
    last: Option<CallId>,
    ended: bool,
}

async fn look(context: &Context, work: &RedriveWork, asked: &RedriveFilter) -> Result<Matching, StoreError> {
    let RedriveFilter { tool, class, since, until, conversation, key, worker, .. } = asked.clone();
    let until = Some(until.map_or(work.created_at, |until| until.min(work.created_at)));
    let state = asked.states().get(work.pass as usize).copied();
    let filter = Filter {
        tool,
        state,
        class,
        since,
        until,
        conversation,
        key,
        worker,
        before: work.position,
        ..Filter::default()
    };
    let counts = work.state == RedriveState::Counting;
    let matches = if counts { COUNTED } else { work.rate.clamp(1, REDRIVEN) as usize };
    let limits = Limits { matches, looked: LOOKED, time: LOOKS_FOR };
    let search = search(filter, asked).map_err(StoreError::BadData)?;
    let Searched { calls, last, ended, .. } = context.store.of(&work.tenant).search(&search, limits).await?;
    let found: Vec<CallId> = calls.iter().map(|found| found.call).collect();
    let lines = context.store.call_lines(&found).await?;
    let again = lines.iter().filter(|line| line.redriven_as.is_none() && model_name(&line.tool).is_none());
    let calls: Vec<CallId> = again.map(|line| line.call).collect();
    if counts {
        return Ok(Matching { calls, last, ended });
    }
    // Their arguments are in memory at once.
    let mut groups = context.store.record_groups(&calls).await?.into_iter();
    let first = groups.next().unwrap_or_default();
    let more = groups.next().is_some();
    let last = if more { first.last().copied() } else { last };
    Ok(Matching { calls: first, last, ended: ended && !more })
}

/// Returns what else the calls must be and hold.
fn search(filter: Filter, asked: &RedriveFilter) -> Result<Search, String> {
    let conditions =
        |texts: &[String]| texts.iter().map(|text| text.parse()).collect::<Result<Vec<Condition>, String>>();
    let inside = Inside {
        arguments: conditions(&asked.argument)?,
        output: conditions(&asked.output)?,
        text: asked.contains.clone(),
    };
    let RedriveFilter { agent, not_tool: not_tools, not_class: not_classes, .. } = asked.clone();
    Ok(Search { filter, agent, not_tools, not_classes, inside, ..Search::default() })
}

/// Returns where the redrive is after this step.
fn next(work: &RedriveWork, filter: &RedriveFilter, found: &Matching) -> RedriveStep {
    let is_last_pass = work.pass as usize + 1 >= filter.states().len();
    let (state, pass, position) = match (found.ended, is_last_pass, work.state) {
        (false, ..) => (work.state, work.pass, found.last),
        (true, false, _) => (work.state, work.pass + 1, None),
        (true, true, RedriveState::Counting) if !work.dry_run => (RedriveState::Running, 0, None),
        (true, true, _) => (RedriveState::Done, work.pass, None),
    };
    RedriveStep { state, pass, position, matched: 0, refused: 0, error: None, pause: Duration::ZERO }
}

/// Has the calls run again, and writes that with how far the redrive is.
async fn redrive(
    context: &Arc<Context>,
    work: &RedriveWork,
    calls: Vec<CallId>,
    next: RedriveStep,
) -> Result<(), ApiError> {
    let Ok(user) = work.created_by.parse() else {
        return fail(context, work, format!("its user {:?} is no name of a user", work.created_by)).await;
    };
    let caller =
        Caller { tenant: work.tenant.clone(), user, role: UserRole::Operate, door: Door::default(), token: None };
    let asked = Asked::new(context.clone(), caller);
    let request = RedriveRequest::unchanged(calls);
    let planned = match plan(&asked, &request).await {
        Ok(planned) => planned,
        Err(error) if error.code == Code::Forbidden => return fail(context, work, error.message).await,
        Err(error) => return Err(error),
    };
    let mut new = Vec::with_capacity(planned.len());
    let mut refused = 0;
    for planned in planned {
        match planned {
            Ok(call) => new.push(call),
            Err(rejected) if rejected.error.as_ref().is_some_and(|error| error.code.is_retryable()) => {
                return Err(ApiError::new(Code::Unavailable, "a call cannot be redriven now"));
            }
            Err(_) => refused += 1,
        }
    }
    for call in &mut new {
        asked.admit(call);
    }
    let pause = Duration::from_secs(new.len() as u64) / work.rate.max(1);
    match write(context, work, new, &RedriveStep { refused, pause, ..next }).await {
        // It would fail again each time, and keep its place among the open redrives.
        Err(error) if !error.code.is_retryable() => {
            fail(context, work, format!("calls cannot be written again: {}", error.message)).await
        }
        done => done,
    }
}

/// Writes a step; afterwards the jobs of its new calls are published.
async fn write(context: &Context, work: &RedriveWork, calls: Vec<NewCall>, step: &RedriveStep) -> Result<(), ApiError> {
    let written = match context.store.redrive_step(work, &calls, step, FIRST_CHECK_MS).await {
        Ok(counted) => counted.map(|counted| counted.written).unwrap_or_default(),
        Err(error) => {
            context.not_published(calls.iter());
            return Err(store_failed(&error));
        }
    };
    for call in &calls {
        if written.contains(&call.id) {
            effects::carry_out(context, call::submitted(call)).await;
        } else {
            context.not_published(std::iter::once(call));
        }
    }
    if step.state.is_terminal() {
        tracing::info!(redrive = %work.redrive, state = step.state.as_str(), "Redrive ended");
    }
    Ok(())
}

async fn fail(context: &Context, work: &RedriveWork, error: String) -> Result<(), ApiError> {
    let (pass, position) = (work.pass, work.position);
    let (state, pause) = (RedriveState::Failed, Duration::ZERO);
    let step = RedriveStep { state, pass, position, matched: 0, refused: 0, error: Some(error), pause };
    write(context, work, Vec::new(), &step).await
}
