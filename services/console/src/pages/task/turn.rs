//! `/console/tasks/{id}/turns/{turn}`: what the model saw in a turn, to the letter, and what it answered.

use axum::{extract::Path, response::Response};
use chrono::Utc;
use redial_api::TurnView;
use redial_proto::{TaskView, Trimmed};

use crate::{
    failure::Failure,
    page::{Shell, Visit},
    show::{self, Html},
};

#[derive(askama::Template)]
#[template(path = "turn.html")]
struct Page {
    shell: Shell,
    task: TaskView,
    turn: TurnView,
}

pub(super) async fn turn(visit: Visit, Path((id, number)): Path<(String, String)>) -> Response {
    visit.answer(page(&visit, &show::url(&id), &show::url(&number)).await)
}

async fn page(visit: &Visit, id: &str, number: &str) -> Result<Page, Failure> {
    let task: TaskView = visit.api.get(&format!("/v1/tasks/{id}")).await?;
    let turn: TurnView = visit.api.get(&format!("/v1/tasks/{id}/turns/{number}")).await?;
    Ok(Page { shell: visit.frame(format!("Turn {}", turn.turn)), task, turn })
}

impl Page {
    /// Counts tokens, as the provider told them or as they are estimated.
    fn tokens(&self) -> String {
        let Some(reply) = &self.turn.reply else {
            return format!("about {} read (estimated)", show::count(self.turn.trimmed.tokens));
        };
        let usage = &reply.usage;
        let told = |told: Option<u64>, estimated: Option<u64>, what: &str| match (told, estimated) {
            (Some(tokens), _) => format!("{} {what}", show::count(tokens)),
            (None, Some(tokens)) => format!("about {} {what} (estimated)", show::count(tokens)),
            (None, None) => format!("unknown {what}"),
        };
        let read = told(usage.input_tokens, usage.estimated_input_tokens, "read");
        let written = told(usage.output_tokens, usage.estimated_output_tokens, "written");
        format!("{read}, {written}")
    }

    fn cost(&self) -> String {
        let Some(reply) = &self.turn.reply else { return "unknown".to_owned() };
        match (reply.usage.cost_micros, reply.usage.estimated_cost_micros) {
            (Some(micros), _) => show::dollars(micros),
            (None, Some(micros)) => format!("about {} (estimated)", show::dollars(micros)),
            (None, None) => "unknown".to_owned(),
        }
    }

    fn took(&self) -> String {
        let end = self.turn.finished_at.unwrap_or_else(Utc::now);
        show::span((end - self.turn.submitted_at).num_milliseconds().max(0))
    }

    /// Says what was left out of the conversation for the model.
    fn left_out(&self) -> String {
        let Trimmed { shortened, left_out, .. } = self.turn.trimmed;
        match (left_out, shortened) {
            (0, 0) => "nothing: the model saw all of the conversation that its policy lets it see".to_owned(),
            (left, 0) => format!("{} left out", show::things(left, "message")),
            (0, cut) => format!("{} shortened", show::things(cut, "tool result")),
            (left, cut) => {
                format!("{} left out, {} shortened", show::things(left, "message"), show::things(cut, "tool result"))
            }
        }
    }

    fn part(&self, nth: &usize, part: &usize, text: &str) -> Html {
        crate::json::of_text(&format!("v{nth}-{part}"), text)
    }
}
