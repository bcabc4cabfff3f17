//! `/console/find`: from what somebody types to the page that shows it.

use axum::{
    Router,
    response::{IntoResponse as _, Redirect, Response},
    routing::get,
};
use redial_proto::TaskView;
use serde_json::Value;

use crate::{
    console::Console,
    failure::Failure,
    filter::Filter,
    page::{self, Visit},
    show,
};

pub(super) fn router() -> Router<Console> {
    Router::new().route("/console/find", get(find))
}

/// Conditions that can be typed as `name:value`.
const NAMES: [&str; 10] =
    ["tool", "state", "class", "agent", "model", "worker", "conversation", "key", "effect", "task"];

async fn find(visit: Visit) -> Response {
    let typed = Filter::of(&visit.here).get("q").trim().to_owned();
    match target(&visit, &typed).await {
        Ok(to) => Redirect::to(&to).into_response(),
        Err(failure) => visit.done(Err(failure)),
    }
}

async fn target(visit: &Visit, typed: &str) -> Result<String, Failure> {
    if let Ok(id) = typed.parse::<uuid::Uuid>() {
        if visit.api.find::<TaskView>(&format!("/v1/tasks/{id}")).await?.is_some() {
            return Ok(format!("/console/tasks/{id}"));
        }
        if visit.api.find::<Value>(&format!("/v1/calls/{id}")).await?.is_some() {
            return Ok(format!("/console/calls/{id}"));
        }
        if is_conversation(visit, typed).await? {
            return Ok(format!("/console/conversations/{}", show::url(typed)));
        }
        return Err(Failure::not_found(format!("No task, call or conversation has the id {id}.")));
    }
    let is_word = !typed.is_empty() && !typed.contains([':', '=', '/']);
    if is_word && is_conversation(visit, typed).await? {
        return Ok(format!("/console/conversations/{}", show::url(typed)));
    }
    if is_word && visit.api.find::<Value>(&format!("/v1/tools/{}", show::url(typed))).await.ok().flatten().is_some() {
        return Ok(format!("/console/tools/{}", show::url(typed)));
    }
    Ok(search(typed))
}

/// Says whether a conversation has this name.
async fn is_conversation(visit: &Visit, name: &str) -> Result<bool, Failure> {
    let path = format!("/v1/conversations/{}/messages?page_size=1", show::url(name));
    let found: Option<Value> = visit.api.find(&path).await?;
    Ok(found.is_some_and(|found| found["messages"].as_array().is_some_and(|messages| !messages.is_empty())))
}

/// Makes a search: `name:value` and `/pointer=value` are conditions, all else a text in arguments or results.
fn search(typed: &str) -> String {
    let mut conditions: Vec<(&str, String)> = Vec::new();
    let mut text: Vec<&str> = Vec::new();
    for word in typed.split_whitespace() {
        let named = word.split_once(':').filter(|(_, value)| !value.is_empty());
        let named = named.and_then(|(name, value)| Some((condition(name)?, value)));
        match named {
            Some((name, value)) => conditions.push((name, value.to_owned())),
            None if word.starts_with('/') && word.contains('=') => conditions.push(("argument", word.to_owned())),
            None => text.push(word),
        }
    }
    if !text.is_empty() {
        conditions.push(("contains", text.join(" ")));
    }
    let query = page::query(conditions.iter().map(|(name, value)| (*name, value.as_str())));
    format!("/console/calls{query}")
}

/// Returns the condition that a name stands for; one with a minus leaves something out.
fn condition(name: &str) -> Option<&'static str> {
    let Some(name) = name.strip_prefix('-') else { return NAMES.iter().find(|known| **known == name).copied() };
    Some(match name {
        "tool" => "not_tool",
        "state" => "not_state",
        "class" => "not_class",
        "agent" => "not_agent",
        "model" => "not_model",
        "worker" => "not_worker",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_conditions() {
        for (typed, to) in [
            ("", "/console/calls"),
            ("tool:echo -state:failed", "/console/calls?tool=echo&not_state=failed"),
            ("/city=Paris", "/console/calls?argument=%2Fcity%3DParis"),
            ("sold out", "/console/calls?contains=sold%20out"),
            ("class:timeout 订票", "/console/calls?class=timeout&contains=%E8%AE%A2%E7%A5%A8"),
            ("-key:x", "/console/calls?contains=-key%3Ax"),
            ("http://a", "/console/calls?contains=http%3A%2F%2Fa"),
        ] {
            assert_eq!(search(typed), to, "{typed}");
        }
    }
}
