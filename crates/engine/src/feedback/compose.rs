//! The texts for a model, composed.

use redial_proto::{ErrorClass, Failure, FieldError, Language, TaskCode, limits};
use serde::Serialize;
use serde_json::Value;

use super::{
    Nudge, Repeated, Words,
    fill::Values,
    scrub::{Known, scrub},
};

/// Broken rules that are shown.
const MAX_SHOWN_DETAILS: usize = 50;
/// Bytes of one text in them.
const MAX_TEXT: usize = 1000;

/// The content of a tool message.
#[derive(Serialize)]
struct Content<'a> {
    status: &'static str,
    class: ErrorClass,
    message: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<FieldError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    corrections_left: Option<u32>,
    guidance: String,
}

/// The failure of a call that is refused as a repetition.
pub fn repeated(words: Words<'_>, tool: &str, why: Repeated<'_>) -> Failure {
    let values = Values { tool: Some(tool), class: Some(ErrorClass::RepeatedCall.as_str()), ..Values::default() };
    let message = match why {
        Repeated::SameCall { error } => {
            words.say("repeated_call.same_call", &Values { message: Some(error), ..values })
        }
        Repeated::SameError { error, times } => {
            words.say("repeated_call.same_error", &Values { message: Some(error), times: Some(times), ..values })
        }
        Repeated::SameResult { times } => {
            words.say("repeated_call.same_result", &Values { times: Some(times), ..values })
        }
        Repeated::PingPong { other } => words.say("repeated_call.ping_pong", &Values { other: Some(other), ..values }),
    };
    let message = limits::shorten(&message, limits::MAX_ERROR_MESSAGE);
    Failure::new(ErrorClass::RepeatedCall, message).without_effect()
}

/// The content of the tool message of a call that has no result. `effect_possible` of its failure means here that the
/// outcome is unknown: an unsafe tool may or may not have done its work. Where the text of the call is at hand,
/// [`failed_call_of`] keeps more of what the model knows already.
pub fn failed_call(words: Words<'_>, tool: &str, failure: &Failure, corrections_left: Option<u32>) -> String {
    failed_call_of(words, tool, "", failure, corrections_left)
}

/// The content of the tool message of a call that has no result.
///
/// What a tool wrote is scrubbed of secrets, addresses and traces; but what is in `sent`, the arguments as the
/// model wrote them, is known to it and stays, so that it can see what was wrong with it.
pub fn failed_call_of(
    words: Words<'_>,
    tool: &str,
    sent: &str,
    failure: &Failure,
    corrections_left: Option<u32>,
) -> String {
    let known = Known::new(sent, &failure.details);
    let message = error_text(words, tool, failure, &known);
    let class = failure.class.as_str();
    let values =
        Values { tool: Some(tool), class: Some(class), message: Some(&message), corrections_left, ..Values::default() };
    let guidance = match corrections_left {
        _ if failure.effect_possible => "unknown_outcome",
        Some(0) => "no_corrections_left",
        _ => class,
    };
    let content = Content {
        status: "error",
        class: failure.class,
        message: &message,
        details: failure.details.iter().take(MAX_SHOWN_DETAILS).map(|detail| shown(detail, &known)).collect(),
        corrections_left,
        guidance: words.say(guidance, &values),
    };
    // Maps have text keys only, so this cannot fail.
    serde_json::to_string(&content).unwrap_or_default()
}

/// The error in words, as a model gets it: what was said if the model can act on it, else our own words.
pub fn message(words: Words<'_>, tool: &str, failure: &Failure) -> String {
    error_text(words, tool, failure, &Known::new("", &failure.details))
}

/// The content of a user message by Redial.
pub fn nudge(words: Words<'_>, nudge: Nudge<'_>) -> String {
    let (code, tool) = match nudge {
        Nudge::Problem(problem) => {
            let problem = problem.trim_end_matches(['.', '。']);
            return words.say("nudge.problem", &Values { problem: Some(problem), ..Values::default() });
        }
        Nudge::Empty => return words.say("nudge.empty", &Values::default()),
        Nudge::LastAnswer { code, tool } => (code, tool),
    };
    let values = Values { tool, code: Some(code.as_str()), ..Values::default() };
    let reason = words.say(limit(code, tool.is_some()), &values);
    words.say("last_answer", &Values { reason: Some(&reason), ..values })
}

const fn limit(code: TaskCode, of_one_tool: bool) -> &'static str {
    match code {
        TaskCode::CorrectionsExhausted if of_one_tool => "last_answer.tool_corrections_exhausted",
        TaskCode::CorrectionsExhausted => "last_answer.corrections_exhausted",
        TaskCode::TurnsExhausted => "last_answer.turns_exhausted",
        TaskCode::ToolCallsExhausted => "last_answer.tool_calls_exhausted",
        TaskCode::TokensExhausted => "last_answer.tokens_exhausted",
        TaskCode::CostExhausted => "last_answer.cost_exhausted",
        TaskCode::TimeExhausted => "last_answer.time_exhausted",
        TaskCode::Answered | TaskCode::ModelFailed | TaskCode::NoAnswer | TaskCode::Cancelled | TaskCode::Internal => {
            "last_answer.other"
        }
    }
}

fn error_text(words: Words<'_>, tool: &str, failure: &Failure, known: &Known<'_>) -> String {
    let class = failure.class.as_str();
    let values = Values { tool: Some(tool), class: Some(class), ..Values::default() };
    let written = broken_rules(words.language, failure).unwrap_or_else(|| failure.message.clone());
    let said = is_for_the_model(failure.class).then(|| scrub(&written, known));
    let said = said.map(|said| if said.is_empty() { words.say("no_message", &values) } else { said });
    let values = Values { message: said.as_deref(), ..values };
    let message = words.say(&format!("{class}.message"), &values);
    if !failure.effect_possible {
        return message;
    }
    words.say("unknown_outcome.message", &Values { message: Some(&message), ..values })
}

/// A tool that names broken rules has them put into English words (`ToolError::invalid`); here they are in Chinese, like
/// those of the arguments' pipeline. None if the tool wrote a message of its own.
fn broken_rules(language: Language, failure: &Failure) -> Option<String> {
    let joined = |separator, line: fn(&FieldError) -> String| {
        failure.details.iter().map(line).collect::<Vec<_>>().join(separator)
    };
    let english = joined("; ", |rule| format!("{}: {} was sent; allowed: {}", rule.path, rule.sent, rule.allowed));
    if language == Language::En || failure.details.is_empty() || failure.message != english {
        return None;
    }
    Some(joined("；", |rule| format!("{} 收到的是 {}，允许的是：{}", rule.path, rule.sent, rule.allowed)))
}

/// The words of these come from the arguments' pipeline, from the tool as an answer to the model, or from a person. All
/// others are about the service, and are for operators.
const fn is_for_the_model(class: ErrorClass) -> bool {
    match class {
        ErrorClass::MalformedArguments
        | ErrorClass::UnknownTool
        | ErrorClass::InvalidArguments
        | ErrorClass::RepeatedCall
        | ErrorClass::BusinessRule
        | ErrorClass::OutputInvalid
        | ErrorClass::OutputTooLarge
        | ErrorClass::Rejected => true,
        ErrorClass::RateLimited
        | ErrorClass::Unavailable
        | ErrorClass::Timeout
        | ErrorClass::Lost
        | ErrorClass::Auth
        | ErrorClass::Configuration
        | ErrorClass::BudgetExhausted
        | ErrorClass::Cancelled
        | ErrorClass::Internal => false,
    }
}

/// A broken rule, scrubbed. What was sent stays as it was.
fn shown(detail: &FieldError, known: &Known<'_>) -> FieldError {
    let text = |text: &str| limits::shorten(&scrub(text, known), MAX_TEXT);
    let sent = detail.sent.to_string();
    FieldError {
        path: limits::shorten(&detail.path, MAX_TEXT),
        rule: text(&detail.rule),
        sent: match &detail.sent {
            Value::String(sent) => Value::String(limits::shorten(sent, MAX_TEXT)),
            _ if sent.len() > MAX_TEXT => Value::String(limits::shorten(&sent, MAX_TEXT)),
            small => small.clone(),
        },
        allowed: text(&detail.allowed),
        hint: detail.hint.as_deref().map(text),
    }
}
