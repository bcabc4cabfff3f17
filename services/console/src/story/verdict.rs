//! What to know of a task before anything else: what went wrong, why, and what to do.

use chrono::{DateTime, Utc};
use redial_api::TaskCallItem;
use redial_proto::{AgentSpec, CallState, FieldError, TaskCode, TaskState};

use super::{Asked, Story, why};
use crate::{
    record,
    show::{self, things},
};

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// `good`, `warn`, `bad`, `odd`, or nothing while it runs.
    pub(crate) tone: &'static str,
    pub(crate) heading: String,
    pub(crate) because: String,
    pub(crate) remedy: String,
    pub(crate) lane: Option<String>,
}

/// Judges a task. `now` is the time of the reader.
pub(crate) fn verdict(story: &Story, items: &[TaskCallItem], agent: Option<&AgentSpec>, now: DateTime<Utc>) -> Verdict {
    if let Some(item) = items.iter().find(|item| item.state == CallState::Unknown && item.redriven_as.is_none()) {
        return unknown(item);
    }
    match (story.task.state, story.task.code) {
        (TaskState::Waiting, _) => Verdict {
            heading: "Waits for its turn".to_owned(),
            because: "An earlier task of its conversation has not ended; a conversation has one task at a time."
                .to_owned(),
            ..Verdict::default()
        },
        (TaskState::Running, _) => running(story, items, now),
        (TaskState::Succeeded, Some(TaskCode::AnswerCutOff)) => Verdict {
            tone: "warn",
            heading: "Answered, but the answer is cut off".to_owned(),
            because: "The model reached its limit of tokens.".to_owned(),
            remedy: "Raise max_tokens of the agent, or set cut_off to \"continue\".".to_owned(),
            ..Verdict::default()
        },
        (TaskState::Succeeded, _) => succeeded(story),
        (TaskState::Cancelled, _) => Verdict {
            tone: "warn",
            heading: "Stopped by a user".to_owned(),
            because: "What had run until then is on record below.".to_owned(),
            ..Verdict::default()
        },
        (TaskState::Failed, code) => failed(story, code, agent),
        (TaskState::Other, _) => Verdict {
            tone: "odd",
            heading: "Its state is unknown here".to_owned(),
            because: "A newer version of Redial wrote it.".to_owned(),
            remedy: "Open the console of a gateway of that version.".to_owned(),
            ..Verdict::default()
        },
    }
}

fn unknown(item: &TaskCallItem) -> Verdict {
    Verdict {
        tone: "odd",
        heading: format!("Nobody knows whether {} did its work", item.tool),
        because: item.message.clone().unwrap_or_else(|| "Its worker was lost while it ran.".to_owned()),
        remedy: format!(
            "Look at what {} did. If it did nothing, run the call again; if it did its work, leave it. Redial does not run it twice on a guess.",
            item.tool
        ),
        lane: Some(record::lane(item)),
    }
}

fn running(story: &Story, items: &[TaskCallItem], now: DateTime<Utc>) -> Verdict {
    let open: Vec<&TaskCallItem> = items.iter().filter(|item| item.finished_at.is_none()).collect();
    let Some(first) = open.first() else {
        return Verdict {
            heading: "Running".to_owned(),
            because: "A dispatcher decides what comes next.".to_owned(),
            ..Verdict::default()
        };
    };
    let what = redial_proto::turn::model_name(&first.tool)
        .map_or_else(|| first.tool.clone(), |model| format!("the model {model}"));
    let more = if open.len() > 1 { format!(" and {} more", things(open.len() - 1, "call")) } else { String::new() };
    let since = show::span((now - first.submitted_at).num_milliseconds().max(0));
    let (tone, heading) = match first.state {
        CallState::RetryWait => ("warn", format!("Waits for a retry of {what}{more}")),
        CallState::ClientWait => ("", format!("Waits for the client's answer to {what}{more}")),
        CallState::Ready => ("", format!("Waits for a worker to take {what}{more}")),
        _ => ("", format!("Works: {what}{more}, since {since}")),
    };
    let because = record::standing(first).unwrap_or_else(|| format!("Turn {} of the task.", story.turns.len()));
    Verdict { tone, heading, because, lane: Some(record::lane(first)), ..Verdict::default() }
}

fn succeeded(story: &Story) -> Verdict {
    let task = &story.task;
    let mut parts = vec![things(task.turns, "turn"), things(task.tool_calls, "tool call")];
    if task.corrections > 0 {
        parts.push(things(task.corrections, "correction"));
    }
    let took = task.finished_at.map(|end| show::span((end - task.submitted_at).num_milliseconds()));
    let because = format!("{}{}.", parts.join(", "), took.map(|took| format!(", in {took}")).unwrap_or_default());
    Verdict { tone: "good", heading: "Answered".to_owned(), because, ..Verdict::default() }
}

fn failed(story: &Story, code: Option<TaskCode>, agent: Option<&AgentSpec>) -> Verdict {
    let last =
        story.calls.iter().rev().find(|(_, call)| call.answer.as_ref().is_some_and(|answer| answer.class.is_some()));
    let lane = last.map(|((turn, index), _)| format!("c{turn}.{index}"));
    let about = last.map(|(_, call)| about(call)).unwrap_or_default();
    let (heading, because, remedy) = match code {
        Some(TaskCode::CorrectionsExhausted) => corrections(story, last.map(|(_, call)| call), agent, &about),
        Some(TaskCode::ModelFailed) => model_failed(story),
        Some(code) => limit(code, agent, &about),
        None => ("Failed".to_owned(), about, String::new()),
    };
    let because = match (&story.task.message, because.is_empty()) {
        (Some(message), true) => message.clone(),
        _ => because,
    };
    Verdict { tone: "bad", heading, because, remedy, lane }
}

fn about(call: &Asked) -> String {
    let Some(answer) = &call.answer else { return String::new() };
    let Some(class) = answer.class else { return String::new() };
    let rules = why::rules(&answer.details);
    let said = if rules.is_empty() { answer.message.clone().unwrap_or_default() } else { rules };
    format!(
        "The last call of {} {}: {said}.",
        call.tool,
        why::how(&class, &answer.ran, answer.corrections_left.is_some())
    )
}

fn corrections(
    story: &Story,
    last: Option<&Asked>,
    agent: Option<&AgentSpec>,
    about: &str,
) -> (String, String, String) {
    let tool = last.map_or("a tool", |call| call.tool.as_str());
    let times = story.calls.values().filter(|call| call.tool == tool && super::chains::was_fed_back(call)).count();
    let setting = agent
        .map(|agent| {
            format!(
                " (max_corrections = {}, budgets.corrections = {})",
                agent.max_corrections, agent.budgets.corrections
            )
        })
        .unwrap_or_default();
    let place = last
        .and_then(|call| call.answer.as_ref())
        .and_then(|answer| answer.details.first())
        .map(|detail| detail.path.clone());
    let what = match place.filter(|place| !place.is_empty()) {
        Some(place) => format!("say in the tool's schema what {place} takes, with an example"),
        None => "say in the tool's description what it refuses".to_owned(),
    };
    let insisted = insisted(story, tool).map(|(place, sent)| {
        format!("It insisted on {sent} at {place}: if the task asks for that, the tool does not do it, so ask for something else. If not: ")
    });
    (
        format!("The model did not get {tool} right"),
        format!("It was fed back {times} times, and its corrections are used up{setting}. {about}"),
        format!(
            "{}{what}; give the agent a fallback_model; raise max_corrections. Then submit the task again.",
            insisted.unwrap_or_else(|| "In this order: ".to_owned())
        ),
    )
}

/// Finds a place at which every call of a tool broke a rule with the same value.
fn insisted(story: &Story, tool: &str) -> Option<(String, String)> {
    let calls = story.calls.values().filter(|call| call.tool == tool);
    let mut broken = calls.filter_map(|call| call.answer.as_ref()).map(|answer| answer.details.as_slice());
    let first = broken.next()?;
    // A call that repeats another is fed back without its rules.
    let others: Vec<_> = broken.filter(|details| !details.is_empty()).collect();
    let same = |detail: &&FieldError| {
        let again = |other: &FieldError| other.path == detail.path && other.sent == detail.sent;
        detail.sent.is_some() && !others.is_empty() && others.iter().all(|details| details.iter().any(again))
    };
    let detail = first.iter().find(same)?;
    let sent = detail.sent.as_ref().map(ToString::to_string)?;
    Some((show::line(&detail.path, 80), show::line(&sent, 60)))
}

fn model_failed(story: &Story) -> (String, String, String) {
    let turn = story.turns.values().next_back();
    let why = turn
        .and_then(|turn| turn.retries.last())
        .map(|retry| format!("{}: {}", show::words(retry.class.as_str()), retry.message));
    let because = why.or_else(|| story.task.message.clone()).unwrap_or_default();
    (
        format!("The model{} could not be asked", turn.map(|turn| format!(" {}", turn.model)).unwrap_or_default()),
        because,
        "Look at the last turn: a rejected key or a wrong name is a setting of models.toml; an outage of the provider ends by itself. Then submit the task again.".to_owned(),
    )
}

fn limit(code: TaskCode, agent: Option<&AgentSpec>, about: &str) -> (String, String, String) {
    let budgets = agent.map(|agent| agent.budgets);
    let (heading, setting) = match code {
        TaskCode::TurnsExhausted => {
            ("The turns are used up", budgets.map(|all| format!("budgets.turns = {}", all.turns)))
        }
        TaskCode::ToolCallsExhausted => {
            ("The tool calls are used up", budgets.map(|all| format!("budgets.tool_calls = {}", all.tool_calls)))
        }
        TaskCode::TokensExhausted => (
            "The tokens are used up",
            budgets.and_then(|all| all.tokens).map(|tokens| format!("budgets.tokens = {tokens}")),
        ),
        TaskCode::CostExhausted => (
            "The money is used up",
            budgets.and_then(|all| all.cost_usd).map(|cost| format!("budgets.cost_usd = {cost}")),
        ),
        TaskCode::CostUnknown => (
            "A model has no price, so the limit of money cannot be kept",
            Some("budgets.cost_usd, and prices in models.toml".to_owned()),
        ),
        TaskCode::TimeExhausted => {
            ("The time is used up", budgets.map(|all| format!("budgets.seconds = {}", all.seconds)))
        }
        TaskCode::NoAnswer => ("The model's replies held no answer", None),
        TaskCode::Internal => ("A bug of Redial", None),
        other => return (show::words(other.as_str()), about.to_owned(), String::new()),
    };
    let remedy = match (code, &setting) {
        (TaskCode::NoAnswer, _) => "Look at what the model saw in its last turn; another model may do.".to_owned(),
        (TaskCode::Internal, _) => {
            "The dispatcher's log has the reason. Please report it with the task's record.".to_owned()
        }
        (_, Some(setting)) => format!(
            "The agent's setting decided: {setting}. Look at what used it up, raise it if that was right, and submit again."
        ),
        (_, None) => "Look at what used it up, and submit again.".to_owned(),
    };
    (heading.to_owned(), about.to_owned(), remedy)
}
