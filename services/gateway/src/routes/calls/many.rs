//! Waits for several calls.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use redial_proto::{CallId, CallState, Code, limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use crate::{
    extract::Json,
    gateway::{Gateway, Shared},
    hub::Waiter,
    identity::Identity,
    prefer,
    problem::Problem,
    watch::call_subject,
};

/// Of more calls than these, several ends are waited for before the database is asked again.
const FEW: usize = 16;
/// How long.
const COLLECT: Duration = Duration::from_millis(50);

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

/// Where the calls stand now.
#[derive(Serialize, JsonSchema)]
pub(super) struct WaitReply {
    /// True if what was waited for has happened.
    done: bool,
    /// The calls, in the order of the request.
    calls: Vec<CallStanding>,
}

/// Where a call stands.
#[derive(Serialize, JsonSchema)]
struct CallStanding {
    /// The call.
    call: CallId,
    /// Its state.
    state: CallState,
    /// Whether it has ended.
    ended: bool,
}

pub(super) async fn wait(
    State(gateway): State<Shared>,
    who: Identity,
    headers: HeaderMap,
    Json(request): Json<WaitRequest>,
) -> Result<Response, Problem> {
    let count = request.calls.len();
    if !(1..=limits::MAX_BATCH).contains(&count) {
        return Err(Problem::invalid(format!("calls holds {count} ids; allowed: 1 to {}", limits::MAX_BATCH)));
    }
    let _waits = who.limits.stream()?;
    let wait = prefer::wait(&headers);
    let deadline = Instant::now() + wait.unwrap_or_default();
    let mut open = Open::of(&gateway, &who, &request.calls);
    let mut states = HashMap::new();
    let reply = loop {
        states.extend(open.look(&gateway, &who).await?);
        let reply = reply(&request, &states)?;
        if reply.done {
            break reply;
        }
        let heard = tokio::select! {
            heard = timeout_at(deadline, open.news()) => heard.is_ok(),
            () = gateway.wait_is_over(&who) => false,
        };
        if !heard {
            break reply;
        }
        if open.0.len() > FEW {
            tokio::time::sleep_until(deadline.min(Instant::now() + COLLECT)).await;
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

/// The calls that have not ended.
struct Open(Vec<(CallId, Waiter)>);

impl Open {
    fn of(gateway: &Gateway, who: &Identity, calls: &[CallId]) -> Self {
        let calls: BTreeSet<CallId> = calls.iter().copied().collect();
        Self(calls.into_iter().map(|call| (call, gateway.hub.wait_for(call_subject(who, call)))).collect())
    }

    /// Where they stand; afterwards those are left that have not ended.
    async fn look(&mut self, gateway: &Gateway, who: &Identity) -> Result<HashMap<CallId, CallState>, Problem> {
        let calls: Vec<CallId> = self.0.iter().map(|(call, _)| *call).collect();
        let states = gateway.store.of(&who.tenant).call_states(&calls).await?;
        self.0.retain(|(call, _)| states.get(call).is_none_or(|state| !state.is_terminal()));
        Ok(states)
    }

    /// Waits until something happened to one of them. Can be cancelled without loss.
    async fn news(&mut self) {
        let mut news: FuturesUnordered<_> = self.0.iter_mut().map(|(_, waiter)| waiter.next()).collect();
        news.next().await;
    }
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
