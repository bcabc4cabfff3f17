//! Waits for several calls.

use std::collections::{BTreeSet, HashMap};

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use redial_api::{CallStanding, WaitReply};
use redial_proto::{CallId, CallState, Code, limits};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::{
    extract::Json,
    gateway::{Api, Gateway},
    hub::Waiter,
    identity::Identity,
    prefer,
    problem::Problem,
    watch::call_subject,
};

/// Which calls to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitRequest {
    /// 1 to 1,000 calls.
    calls: Vec<CallId>,
    /// Until when.
    #[serde(default)]
    until: Until,
}

/// When the wait is over.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Until {
    /// All have ended.
    #[default]
    All,
    /// One of them has.
    Any,
}

pub(super) async fn wait(
    Api { gateway, who }: Api,
    headers: HeaderMap,
    Json(request): Json<WaitRequest>,
) -> Result<Response, Problem> {
    let count = request.calls.len();
    if !(1..=limits::MAX_BATCH).contains(&count) {
        return Err(Problem::invalid(format!("calls holds {count} ids; allowed: 1 to {}", limits::MAX_BATCH)));
    }
    who.limits.wait_for(count)?;
    let wait = prefer::wait(&headers);
    let deadline = Instant::now() + wait.unwrap_or_default();
    let mut open = Open::of(&gateway, &who, &request.calls);
    let mut states = HashMap::new();
    let reply = loop {
        states.extend(open.look(&gateway, &who).await?);
        let reply = reply(&request, &states)?;
        if reply.done || wait.is_none() {
            break reply;
        }
        let heard = tokio::select! {
            heard = timeout_at(deadline, open.news(request.until)) => heard.is_ok(),
            () = gateway.wait_is_over(&who) => break reply,
        };
        if !heard {
            break last_reply(&gateway, &who, &request, states).await?;
        }
    };
    let mut response = if reply.done {
        axum::Json(reply).into_response()
    } else {
        let again = [(header::RETRY_AFTER, HeaderValue::from_static("0"))];
        (StatusCode::ACCEPTED, again, axum::Json(reply)).into_response()
    };
    prefer::applied(response.headers_mut(), wait);
    Ok(response)
}

struct Open {
    /// Where these stand is not known: at the beginning all, then those whose end was heard.
    unknown: Vec<(CallId, Waiter)>,
    /// Give the others once their end is heard.
    ends: FuturesUnordered<BoxFuture<'static, (CallId, Waiter)>>,
}

impl Open {
    fn of(gateway: &Gateway, who: &Identity, calls: &[CallId]) -> Self {
        let calls: BTreeSet<CallId> = calls.iter().copied().collect();
        let unknown = calls.into_iter().map(|call| (call, gateway.hub.wait_for(call_subject(who, call)))).collect();
        Self { unknown, ends: FuturesUnordered::new() }
    }

    /// Reads where those stand of which it is not known. Those that have not ended are waited for.
    async fn look(&mut self, gateway: &Gateway, who: &Identity) -> Result<HashMap<CallId, CallState>, Problem> {
        let unknown = std::mem::take(&mut self.unknown);
        let states = look(gateway, who, unknown.iter().map(|(call, _)| *call)).await?;
        let open = unknown.into_iter().filter(|(call, _)| states.get(call).is_none_or(|state| !state.is_terminal()));
        self.ends.extend(open.map(|(call, waiter)| end_of(call, waiter).boxed()));
        Ok(states)
    }

    /// Waits until what is waited for may have happened. Only ends count, so that hundreds of waits for the same thousand calls
    /// ask the database nothing while those go on. Can be cancelled without loss.
    async fn news(&mut self, until: Until) {
        while let Some(ended) = self.ends.next().await {
            self.unknown.push(ended);
            if until == Until::Any {
                return;
            }
        }
    }
}

async fn end_of(call: CallId, mut waiter: Waiter) -> (CallId, Waiter) {
    waiter.end().await;
    (call, waiter)
}

/// Reads where these calls stand, in the tenant's share of what streams read.
async fn look(
    gateway: &Gateway,
    who: &Identity,
    calls: impl Iterator<Item = CallId>,
) -> Result<HashMap<CallId, CallState>, Problem> {
    let _share = gateway.limits.stream_read(&who.tenant).await;
    Ok(gateway.store.of(&who.tenant).call_states(&calls.collect::<Vec<_>>()).await?)
}

/// Replies once the time is over: with where those stand now that had not ended, if that can be read.
async fn last_reply(
    gateway: &Gateway,
    who: &Identity,
    request: &WaitRequest,
    mut states: HashMap<CallId, CallState>,
) -> Result<WaitReply, Problem> {
    let open = states.iter().filter(|(_, state)| !state.is_terminal()).map(|(call, _)| *call);
    if let Ok(now) = look(gateway, who, open).await {
        states.extend(now);
    }
    reply(request, &states)
}

fn reply(request: &WaitRequest, states: &HashMap<CallId, CallState>) -> Result<WaitReply, Problem> {
    let standing = |call: &CallId| {
        let state = *states
            .get(call)
            .ok_or_else(|| Problem::new(Code::CallNotFound, format!("no call {call} is on record")))?;
        Ok(CallStanding { call: *call, state, ended: state.is_terminal() })
    };
    let calls = request.calls.iter().map(standing).collect::<Result<Vec<_>, Problem>>()?;
    let done = match request.until {
        Until::All => calls.iter().all(|call| call.ended),
        Until::Any => calls.iter().any(|call| call.ended),
    };
    Ok(WaitReply { done, calls })
}
