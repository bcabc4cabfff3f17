//! Waits for the end of a call.

use std::time::Duration;

use bytes::Bytes;
use redial_proto::{CallId, Code, Language};
use tokio::time::{Instant, timeout_at};

use super::read::read;
use crate::{gateway::Gateway, identity::Identity, problem::Problem, watch::call_subject};

/// A call that has ended: its [`redial_proto::CallView`] as JSON.
pub(crate) struct Ended(pub(crate) Bytes);

/// Waits for a call that was just submitted with `notify`: its event is its end. `ended`: it had ended before.
pub(crate) async fn ended_within(
    gateway: &Gateway,
    who: &Identity,
    call: CallId,
    ended: bool,
    wait: Duration,
) -> Result<Option<Ended>, Problem> {
    if ended {
        return end_within(gateway, who, call, Language::default(), Duration::ZERO).await;
    }
    wait_from(gateway, who, Waited { call, language: Language::default(), time: wait }, false).await
}

/// Waits for any call of the tenant; `None` if it has not ended within the time.
pub(crate) async fn end_within(
    gateway: &Gateway,
    who: &Identity,
    call: CallId,
    language: Language,
    wait: Duration,
) -> Result<Option<Ended>, Problem> {
    wait_from(gateway, who, Waited { call, language, time: wait }, true).await
}

struct Waited {
    call: CallId,
    language: Language,
    time: Duration,
}

/// Waits; `look`: whether it may have ended before now.
async fn wait_from(
    gateway: &Gateway,
    who: &Identity,
    wanted: Waited,
    mut look: bool,
) -> Result<Option<Ended>, Problem> {
    let Waited { call, language, time } = wanted;
    let deadline = Instant::now() + time;
    let mut waiter = gateway.hub.wait_for(call_subject(who, call));
    loop {
        if look {
            match read(gateway, who, call, language).await {
                Ok(view) if view.state.is_terminal() => return Ok(Some(Ended(to_json(&view)?))),
                // Nothing of the call is held while it goes on.
                Ok(_) => drop(who.limits.take_large()),
                // The next look may succeed.
                Err(problem) if problem.again().is_some() => {}
                Err(problem) => return Err(problem),
            }
        }
        let news = tokio::select! {
            news = timeout_at(deadline, waiter.next()) => news,
            () = gateway.wait_is_over(who) => return Ok(None),
        };
        let Ok(news) = news else {
            // Once more: its event may have been lost.
            let view = read(gateway, who, call, language).await?;
            return if view.state.is_terminal() { Ok(Some(Ended(to_json(&view)?))) } else { Ok(None) };
        };
        // Events are in English.
        if let Some(end) = news.end.filter(|_| language == Language::default()) {
            return Ok(Some(Ended(end)));
        }
        look = true;
    }
}

fn to_json(view: &redial_proto::CallView) -> Result<Bytes, Problem> {
    let json = serde_json::to_vec(view);
    json.map(Bytes::from).map_err(|error| Problem::new(Code::Internal, format!("the call cannot be written: {error}")))
}
