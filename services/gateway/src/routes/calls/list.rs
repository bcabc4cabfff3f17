//! Lists and searches calls.

use chrono::{DateTime, Utc};
use redial_api::{CallList, SearchedCalls};
use redial_proto::{CallId, CallState, ErrorClass, TaskId, ToolEffect, turn};
use redial_store::audit::{Filter, Inside, Limits, Search, json_search::Condition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    bounds::{LOOKED, look_time},
    extract::Query,
    gateway::Api,
    page::Page,
    problem::{JsonResult, Problem},
};

/// Which calls. Every parameter narrows.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CallsQuery {
    /// Of this tool.
    tool: Option<String>,
    /// Not of this tool; may be repeated.
    #[serde(default)]
    not_tool: Vec<String>,
    /// Turns of this model.
    model: Option<String>,
    /// In this state.
    state: Option<CallState>,
    /// Not in this state; may be repeated.
    #[serde(default)]
    not_state: Vec<CallState>,
    /// Ended with this error class.
    class: Option<ErrorClass>,
    /// Not ended with this error class; may be repeated.
    #[serde(default)]
    not_class: Vec<ErrorClass>,
    /// Submitted then or later.
    since: Option<DateTime<Utc>>,
    /// Submitted before.
    until: Option<DateTime<Utc>>,
    /// Of which this worker ran an attempt, or runs one.
    worker: Option<String>,
    /// Of which this worker ran no attempt; may be repeated.
    #[serde(default)]
    not_worker: Vec<String>,
    /// Not turns of this model; may be repeated.
    #[serde(default)]
    not_model: Vec<String>,
    /// Of tasks of this declared agent.
    agent: Option<String>,
    /// Not of tasks of this declared agent; may be repeated.
    #[serde(default)]
    not_agent: Vec<String>,
    /// Of tools with this effect.
    effect: Option<ToolEffect>,
    /// Not of tools with this effect; may be repeated.
    #[serde(default)]
    not_effect: Vec<ToolEffect>,
    /// Submitted by this user, or asked for by a task that was.
    submitted_by: Option<String>,
    /// Of this conversation.
    conversation: Option<String>,
    /// Submitted under this idempotency key.
    key: Option<String>,
    /// That this task asked for, model turns included.
    task: Option<TaskId>,
    /// `POINTER=VALUE`: with this value in their arguments, such as `/city=Paris` or `/items/0/id=17`; may be repeated.
    #[serde(default)]
    argument: Vec<String>,
    /// `POINTER=VALUE`: with this value in their result; may be repeated.
    #[serde(default)]
    output: Vec<String>,
    /// With this text in their arguments or their result.
    contains: Option<String>,
    /// How long the request looks at most, in ms: 10 to 2,000, and at least at one portion of calls. Default 2,000.
    look_ms: Option<u64>,
    /// Entries of a page: 1 to 1,000. Default 50.
    pub(super) page_size: Option<u32>,
    /// `next_page_token` of the answer before.
    pub(super) page_token: Option<String>,
}

pub(super) async fn list(Api { gateway, who }: Api, Query(query): Query<CallsQuery>) -> JsonResult<CallList> {
    let page = Page::<CallId>::of(&gateway, &who, "calls", &query).await?;
    let time = look_time(query.look_ms)?;
    let search = search(query, page.after)?;
    let _share = gateway.list_read(&who, page.is_unfiltered).await?;
    let limits = Limits { matches: page.size as usize, looked: LOOKED, time };
    let found = gateway.store.of(&who.tenant).search(&search, limits).await?;
    let ids: Vec<CallId> = found.calls.iter().map(|found| found.call).collect();
    let calls = gateway.store.call_lines(&ids).await?;
    let next = found.last.filter(|_| !found.ended);
    let searched = SearchedCalls { calls: found.looked, back_to: found.back_to, complete: found.ended };
    Ok(axum::Json(CallList { calls, next_page_token: page.next(next.as_ref()), searched }))
}

pub(super) fn search(query: CallsQuery, before: Option<CallId>) -> Result<Search, Problem> {
    if query.tool.is_some() && query.model.is_some() {
        return Err(Problem::invalid("tool and model are both set; allowed: one of them"));
    }
    Problem::check_times(&[("since", query.since), ("until", query.until)])?;
    let tool = query.tool.or_else(|| query.model.as_deref().map(turn::tool_name));
    let conditions = |name: &str, texts: &[String]| {
        let read = |text: &String| {
            let wrong = |what: String| Problem::invalid(format!("{name}={text}: {what}"));
            text.parse::<Condition>().map_err(wrong)
        };
        texts.iter().map(read).collect::<Result<Vec<_>, Problem>>()
    };
    let inside = Inside {
        arguments: conditions("argument", &query.argument)?,
        output: conditions("output", &query.output)?,
        text: query.contains,
    };
    let CallsQuery { state, class, since, until, worker, conversation, key, task, .. } = query;
    let filter =
        Filter { tool, state, class, since, until, worker, conversation, key, task, before, ..Filter::default() };
    let not_models = query.not_model.iter().map(|model| turn::tool_name(model));
    let not_tools = query.not_tool.into_iter().chain(not_models).collect();
    let (not_states, not_classes, not_workers) = (query.not_state, query.not_class, query.not_worker);
    let (agent, not_agents, effect) = (query.agent, query.not_agent, query.effect);
    let (not_effects, submitted_by) = (query.not_effect, query.submitted_by);
    Ok(Search {
        filter,
        not_tools,
        not_states,
        not_classes,
        agent,
        not_agents,
        effect,
        not_effects,
        not_workers,
        submitted_by,
        inside,
    })
}
