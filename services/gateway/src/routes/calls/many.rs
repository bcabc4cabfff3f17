//! Waits for several calls.

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
    calls: Vec<Standing>,
}

/// Where a call stands.
#[derive(Serialize, JsonSchema)]
struct Standing {
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
    let mut waiters: Vec<_> =
        request.calls.iter().map(|call| gateway.hub.wait_for(call_subject(&who, *call))).collect();
    let reply = loop {
        let reply = look(&gateway, &who, &request).await?;
        if reply.done {
            break reply;
        }
        let mut news: FuturesUnordered<_> = waiters.iter_mut().map(Waiter::next).collect();
        let heard = tokio::select! {
            heard = timeout_at(deadline, news.next()) => heard.is_ok(),
            () = gateway.shutdown.cancelled() => false,
        };
        if !heard {
            break reply;
        }
    };
    let status = if reply.done { StatusCode::OK } else { StatusCode::ACCEPTED };
    let is_over = reply.done;
    let mut response = (status, axum::Json(reply)).into_response();
    if !is_over {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("0"));
    }
    prefer::applied(response.headers_mut(), wait);
    Ok(response)
}

async fn look(gateway: &Gateway, who: &Identity, request: &WaitRequest) -> Result<WaitReply, Problem> {
    let states = gateway.store.of(&who.tenant).call_states(&request.calls).await?;
    let standing = |call: &CallId| {
        let state = *states
            .get(call)
            .ok_or_else(|| Problem::new(Code::CallNotFound, format!("no call {call} is on record")))?;
        Ok(Standing { call: *call, state, ended: state.is_terminal() })
    };
    let calls = request.calls.iter().map(standing).collect::<Result<Vec<_>, Problem>>()?;
    let done = match request.until {
        Until::All => calls.iter().all(|call| call.ended),
        Until::Any => calls.iter().any(|call| call.ended),
    };
    Ok(WaitReply { done, calls })
}
