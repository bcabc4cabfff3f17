//! The events of a call: its attempts as they end, and where it stands now.

use axum::{
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use redial_proto::{CallId, CallState, CallView, Code, Language, Tenant};
use redial_store::Time;
use redial_views::{attempt_view, call_view};

use super::{
    id::{After, Position, number, wrong},
    stream::{self, Progress, Source},
};
use crate::{
    gateway::Shared,
    hub::Waiter,
    identity::Identity,
    problem::Problem,
    streams::sse::{END, Page},
    watch::call_subject,
};

const IDS: &str = "the id of an event of this call, as 1.ended, or end";

/// Streams the events of a call after the one that the request names.
pub(crate) async fn follow_call(
    gateway: Shared,
    who: Identity,
    call: CallId,
    after: &After,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let permit = who.limits.stream()?;
    let from = after.position(headers, ended, IDS)?;
    let waiter = gateway.hub.wait_for(call_subject(&who, call));
    let mut events = CallEvents { tenant: who.tenant, call, waiter, after: 0, standing: None, gateway };
    let look = events.look().await?;
    match from {
        Some(Position::End) if look.view.state.is_terminal() => return Ok(StatusCode::NO_CONTENT.into_response()),
        Some(Position::End) => return Err(wrong(END, "the id of an event of this call, as 1.ended: it has not ended")),
        Some(Position::Event(attempt)) if !look.has_ended(attempt) => {
            return Err(wrong(&format!("{attempt}.ended"), IDS));
        }
        Some(Position::Event(attempt)) => events.after = attempt,
        None => {}
    }
    let mut page = Page::first();
    let progress = events.show(look, &mut page)?;
    Ok(stream::answer(events.gateway.clone(), permit, events, page, progress))
}

/// Returns the attempt whose end the id is. That one started has no id: if it is released, its number is granted again.
fn ended(id: &str) -> Option<u32> {
    number(id.strip_suffix(".ended")?).filter(|attempt| *attempt > 0)
}

struct CallEvents {
    gateway: Shared,
    tenant: Tenant,
    call: CallId,
    waiter: Waiter,
    /// The last attempt whose end was shown.
    after: u32,
    standing: Option<Standing>,
}

/// What is told again when it changes: state, attempts, start of the attempt that runs.
type Standing = (CallState, u32, Option<Time>);

struct Look {
    view: CallView,
    ended: Vec<redial_proto::AttemptView>,
}

impl Look {
    fn has_ended(&self, attempt: u32) -> bool {
        self.ended.iter().any(|ended| ended.attempt == attempt)
    }
}

impl Source for CallEvents {
    async fn news(&mut self) {
        self.waiter.next().await;
    }

    async fn read(&mut self, page: &mut Page) -> Result<Progress, Problem> {
        let look = self.look().await?;
        self.show(look, page)
    }
}

impl CallEvents {
    async fn look(&self) -> Result<Look, Problem> {
        let _share = self.gateway.limits.stream_read(&self.tenant).await;
        // Attempts are read after the call's row: an ended call has all of them.
        let record = self.gateway.store.of(&self.tenant).records_of(&[self.call]).await?.pop();
        let not_found = || Problem::new(Code::CallNotFound, format!("no call {} is on record", self.call));
        let record = record.ok_or_else(not_found)?;
        let ended = record.attempts_made.iter().filter(|attempt| attempt.ended_at.is_some());
        let ended = ended.map(attempt_view).collect();
        Ok(Look { ended, view: call_view(record, Language::default()) })
    }

    fn show(&mut self, look: Look, page: &mut Page) -> Result<Progress, Problem> {
        for attempt in look.ended.iter().filter(|attempt| attempt.attempt > self.after) {
            page.event(Some(&format!("{}.ended", attempt.attempt)), "attempt", attempt)?;
        }
        self.after = look.ended.last().map_or(self.after, |last| last.attempt.max(self.after));
        let view = look.view;
        if view.state.is_terminal() {
            page.event(Some(END), END, &view)?;
            return Ok(Progress::Ended);
        }
        let running = view.attempts_made.last().filter(|last| last.ended_at.is_none());
        let standing = (view.state, view.attempts, running.map(|running| running.started_at));
        if self.standing.replace(standing) != Some(standing) {
            page.event(None, "state", &view)?;
        }
        Ok(Progress::Waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_this_form_are_positions() {
        assert_eq!(ended("12.ended"), Some(12));
        for id in ["", "1", "0.ended", "01.ended", "1.started", "ended", "-1.ended"] {
            assert_eq!(ended(id), None, "{id}");
        }
    }
}
