//! `/console/tasks/{id}`: one task. Its parts have addresses of their own: the timeline, the corrections, the conversation, what the
//! model saw in a turn, the replay.

mod head;
mod replay;
mod turn;

use axum::{
    Router,
    extract::Path,
    response::Response,
    routing::{get, post},
};
use chrono::Utc;
use redial_api::TaskCallItem;
use serde_json::{Value, json};

use self::head::{Head, head};
use crate::{
    console::Console,
    page::{Shell, Visit},
    record,
    show::{self, Html},
    story::{
        Asked,
        chains::Chain,
        lanes::{self, Lane},
    },
};

pub(super) fn router() -> Router<Console> {
    Router::new()
        .route("/console/tasks/{id}", get(timeline))
        .route("/console/tasks/{id}/corrections", get(corrections))
        .route("/console/tasks/{id}/conversation", get(conversation))
        .route("/console/tasks/{id}/replay", get(replay::replay))
        .route("/console/tasks/{id}/turns/{turn}", get(turn::turn))
        .route("/console/tasks/{id}/cancel", post(cancel))
}

#[derive(askama::Template)]
#[template(path = "task.html")]
struct TimelinePage {
    shell: Shell,
    head: Head,
    lanes: Vec<Lane>,
    ruler: Html,
}

async fn timeline(visit: Visit, Path(id): Path<String>) -> Response {
    let page = head(&visit, &id, "").await.map(|head| {
        let (lanes, scale) = lanes::lanes(&head.story, &head.items, head.spec(), Utc::now());
        TimelinePage { shell: head.shell.clone(), ruler: lanes::ruler(&scale), lanes, head }
    });
    visit.answer(page)
}

impl TimelinePage {
    fn item(&self, lane: &Lane) -> Option<&TaskCallItem> {
        let key = lane.call?;
        self.head.items.iter().find(|item| (item.turn, item.call_index) == key)
    }

    fn asked(&self, lane: &Lane) -> Option<&Asked> {
        self.head.story.calls.get(&lane.call?)
    }

    fn answer(&self, lane: &Lane) -> Option<String> {
        let (turn, index) = lane.call?;
        let text = self.head.story.turns.get(&turn).filter(|_| index == 0)?.text.as_deref()?;
        Some(show::plain(&show::clip(text, 4_000)))
    }

    /// Shows what the model was told instead of a result.
    fn feedback(&self, lane: &Lane) -> Option<Html> {
        let answer = self.asked(lane)?.answer.as_ref()?;
        let name = format!("{}-told", lane.key);
        answer.class?;
        Some(crate::json::of_text(&name, &answer.content))
    }

    fn result(&self, lane: &Lane) -> Option<Html> {
        let answer = self.asked(lane)?.answer.as_ref().filter(|answer| answer.class.is_none())?;
        Some(crate::json::of_text(&format!("{}-got", lane.key), &answer.content))
    }

    /// Shows the arguments, of the call's own record if there is one.
    fn arguments(&self, lane: &Lane) -> Option<Html> {
        if let Some(item) = self.item(lane).filter(|item| item.call_index > 0 && item.arguments.is_some()) {
            return Some(record::arguments_tree(item));
        }
        let sent = self.asked(lane)?.sent.as_deref()?;
        Some(crate::json::of_text(&format!("{}-args", lane.key), sent))
    }
}

#[derive(askama::Template)]
#[template(path = "corrections.html")]
struct CorrectionsPage {
    shell: Shell,
    head: Head,
}

/// One call of a chain, beside the others.
struct Try {
    key: (u32, u32),
    nth: usize,
    model: String,
    sent: Html,
    ran: Option<Html>,
    is_json: bool,
}

async fn corrections(visit: Visit, Path(id): Path<String>) -> Response {
    let page = head(&visit, &id, "corrections").await;
    visit.answer(page.map(|head| CorrectionsPage { shell: head.shell.clone(), head }))
}

impl CorrectionsPage {
    fn tries(&self, chain: &Chain) -> Vec<Try> {
        let mut before: Option<Value> = None;
        let mut tries = Vec::new();
        for (nth, key) in chain.calls.iter().enumerate() {
            let Some(asked) = self.head.story.calls.get(key) else { continue };
            let item = self.head.items.iter().find(|item| (item.turn, item.call_index) == *key);
            let sent = item.and_then(|item| item.sent.as_deref()).or(asked.sent.as_deref()).unwrap_or_default();
            let value: Option<Value> = serde_json::from_str(sent).ok();
            let changed = match (&before, &value) {
                (Some(old), Some(new)) => crate::json::differences(old, new),
                _ => std::collections::BTreeSet::new(),
            };
            let name = format!("try{}.{}", key.0, key.1);
            let ran = item.filter(|_| !asked.repairs.is_empty()).map(record::arguments_tree);
            let model = self.head.story.turns.get(&key.0).map(|turn| turn.model.clone()).unwrap_or_default();
            let sent = crate::json::marked(&name, sent, &changed);
            tries.push(Try { key: *key, nth: nth + 1, model, sent, ran, is_json: value.is_some() });
            before = value.or(before);
        }
        tries
    }

    fn asked(&self, one: &Try) -> Option<&Asked> {
        self.head.story.calls.get(&one.key)
    }

    fn state(&self, one: &Try) -> &'static str {
        match self.asked(one).and_then(|asked| asked.answer.as_ref()) {
            None => "waiting",
            Some(answer) if answer.class.is_none() => "succeeded",
            Some(answer) if answer.ran => "failed",
            Some(_) => "refused",
        }
    }

    fn end(&self, chain: &Chain) -> (&'static str, String) {
        let last = chain.calls.last().and_then(|key| self.head.story.calls.get(key));
        let corrections = chain.calls.len() - 1;
        match last.and_then(|call| call.answer.as_ref()) {
            None => ("running", "goes on".to_owned()),
            Some(answer) if answer.class.is_none() => {
                ("succeeded", format!("right after {}", show::things(corrections, "correction")))
            }
            Some(_) if !self.head.story.task.state.is_terminal() => ("running", "the model has been told".to_owned()),
            Some(_) => ("failed", format!("given up after {}", show::things(corrections, "correction"))),
        }
    }
}

#[derive(askama::Template)]
#[template(path = "conversation.html")]
struct ConversationPage {
    shell: Shell,
    head: Head,
}

async fn conversation(visit: Visit, Path(id): Path<String>) -> Response {
    let page = head(&visit, &id, "conversation").await;
    visit.answer(page.map(|head| ConversationPage { shell: head.shell.clone(), head }))
}

async fn cancel(visit: Visit, Path(id): Path<String>) -> Response {
    let id = show::url(&id);
    let done = visit.api.post::<Value>(&format!("/v1/tasks/{id}/cancel"), &json!({})).await;
    visit.done(done.map(|_| format!("/console/tasks/{id}?done=cancelled")))
}
