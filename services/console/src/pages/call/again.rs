//! `/console/calls/{id}/again`: an ended call runs again, perhaps with other arguments, as a new call that names it.

use axum::{
    extract::{Form, Path},
    http::StatusCode,
    response::Response,
};
use redial_api::{CallRecord, ProblemDocument, ProblemField};
use redial_proto::{CallState, SubmitResult, json_text};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::record::may_run_again;
use crate::{
    failure::Failure,
    page::{Shell, Visit},
    show,
};

/// Arguments over this many bytes are not edited in a browser.
const LARGEST: usize = 256 * 1024;

#[derive(askama::Template)]
#[template(path = "again.html")]
struct Page {
    shell: Shell,
    call: CallRecord,
    text: String,
    wrong: Option<String>,
    errors: Vec<ProblemField>,
}

#[derive(Deserialize)]
pub(super) struct Again {
    #[serde(default)]
    arguments: String,
    /// The reader knows that it may happen twice.
    twice: Option<String>,
}

pub(super) async fn form(visit: Visit, Path(id): Path<String>) -> Response {
    visit.answer(read(&visit, &show::url(&id), None, None, Vec::new()).await)
}

async fn read(
    visit: &Visit,
    id: &str,
    text: Option<String>,
    wrong: Option<String>,
    errors: Vec<ProblemField>,
) -> Result<Page, Failure> {
    let call: CallRecord = visit.api.get(&format!("/v1/calls/{id}")).await?;
    let text = text.unwrap_or_else(|| pretty(&call.details.arguments));
    Ok(Page { shell: visit.frame(format!("Run {} again", call.view.tool)), call, text, wrong, errors })
}

pub(super) async fn run(visit: Visit, Path(id): Path<String>, Form(form): Form<Again>) -> Response {
    let id = show::url(&id);
    match redrive(&visit, &id, &form).await {
        Ok(call) => visit.done(Ok(format!("/console/calls/{call}?done=redriven"))),
        Err(Failure::Problem(problem)) if StatusCode::UNAUTHORIZED != problem.status => {
            let ProblemDocument { status, detail, errors, .. } = *problem;
            let mut response = visit.answer(read(&visit, &id, Some(form.arguments), Some(detail), errors).await);
            if response.status() == StatusCode::OK {
                *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            }
            response
        }
        Err(failure) => visit.done(Err(failure)),
    }
}

async fn redrive(visit: &Visit, id: &str, form: &Again) -> Result<String, Failure> {
    let call: CallRecord = visit.api.get(&format!("/v1/calls/{id}")).await?;
    if call.view.state == CallState::Unknown && form.twice.is_none() {
        return Err(Failure::invalid(
            "Nobody knows whether this call did its work. Tick that it may happen twice, or leave it.",
        ));
    }
    // A browser sends other line breaks than it was given. Unchanged arguments keep the idempotency key of the call.
    let is_unchanged = call.details.arguments.get().len() > LARGEST
        || json_text::one_line(&form.arguments) == json_text::one_line(call.details.arguments.get());
    let body = if is_unchanged {
        json!({})
    } else {
        let arguments: Box<RawValue> = serde_json::from_str(&form.arguments)
            .map_err(|error| Failure::invalid(format!("The arguments are not JSON: {error}.")))?;
        json!({ "arguments": arguments })
    };
    let result: SubmitResult = visit.api.post(&format!("/v1/calls/{id}/redrive"), &body).await?;
    let new = result.call.ok_or_else(|| Failure::invalid("The dispatcher named no new call."))?;
    Ok(new.to_string())
}

/// Writes arguments as a person edits them: as they are, if lines for deep parts would make them very much longer.
fn pretty(json: &RawValue) -> String {
    let json = json.get();
    if json.len() > LARGEST {
        return String::new();
    }
    let lines = json_text::indented(json);
    if lines.len() > LARGEST.max(4 * json.len()) { json.to_owned() } else { lines }
}

impl Page {
    fn may_run(&self) -> bool {
        self.shell.may("operate") && may_run_again(&self.call)
    }

    fn is_long(&self) -> bool {
        self.call.details.arguments.get().len() > LARGEST
    }

    fn is_unknown(&self) -> bool {
        self.call.view.state == CallState::Unknown
    }

    fn check(&self) -> String {
        format!("/v1/tools/{}/check", show::url(&self.call.view.tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn what_is_edited_differs_in_white_space_only() {
        let json = r#"{"a":[1,2.50,{}],"b":"x\"{,: y\\","c":[],"d":{"e":1e400, "f": 12345678901234567890}}"#;
        let shown = pretty(&raw(json));
        assert!(
            shown.starts_with("{\n  \"a\": [\n    1,\n    2.50,\n    {}\n  ],\n  \"b\": \"x\\\"{,: y\\\\\",\n"),
            "{shown}"
        );
        assert!(shown.contains("1e400") && shown.contains("12345678901234567890"), "{shown}");
        assert_eq!(pretty(&raw(&shown)), shown, "again the same");
        let sent = shown.replace('\n', "\r\n");
        assert_eq!(json_text::one_line(&sent), json_text::one_line(json), "as a browser sends it");
        let value: serde_json::Value = serde_json::from_str(r#"{"a":[1,{}],"b":"x"}"#).unwrap();
        let shown = pretty(&raw(&value.to_string()));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        let deep = format!("{}{}1{}", "[".repeat(60), "1,".repeat(100_000), "]".repeat(60));
        assert_eq!(pretty(&raw(&deep)), deep, "every element would have a line of its own with 120 spaces");
    }
}
