//! The texts for a model, composed.

use redial_proto::{ErrorClass, Failure, FieldError, Help, Language, TaskCode, limits};
use redial_redaction::{Known, reveals_secret, scrub};
use serde_json::Value;

use super::{
    Nudge, Repeated, Words, advice,
    content::{Content, MAX_FEEDBACK},
    failure::CallFailure,
    fill::Values,
};

/// Broken rules that are shown.
const MAX_SHOWN_DETAILS: usize = 50;
/// Bytes of one text in them.
const MAX_TEXT: usize = 1000;
/// Undeclared properties that are shown.
const MAX_SHOWN_UNDECLARED: usize = 20;

/// Makes the failure of a call that is refused as a repetition.
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

/// Writes the content of the tool message of a call that has no result. Where the text of the call is at hand,
/// [`call_failure`] keeps more of what the model knows already.
pub fn failed_call(words: Words<'_>, tool: &str, failure: &Failure, corrections_left: Option<u32>) -> String {
    call_failure(words, CallFailure { corrections_left, ..CallFailure::new(tool, failure) }, MAX_FEEDBACK)
}

/// Writes the content of the tool message of a call that has no result: complete JSON of at most `most` bytes, and of
/// at most [`MAX_FEEDBACK`].
///
/// What a tool wrote is scrubbed of secrets, addresses and traces; but what is in `sent`, the arguments as the model
/// wrote them, is known to it and stays, so that it can see what was wrong with it.
pub fn call_failure(words: Words<'_>, failed: CallFailure<'_>, most: usize) -> String {
    let CallFailure { tool, sent, failure, corrections_left, .. } = failed;
    let known = Known::new(sent, &failure.details);
    let without_secrets =
        failed.help.filter(|help| shows_secret(help, &known)).map(|help| Help { example: None, ..help.clone() });
    let help = without_secrets.as_ref().or(failed.help);
    let failed = CallFailure { help, ..failed };
    let message = error_text(words, tool, failure, &known);
    let class = failure.class.as_str();
    let values =
        Values { tool: Some(tool), class: Some(class), message: Some(&message), corrections_left, ..Values::default() };
    let guidance = advice::guidance(words, &failed, &values);
    let details: Vec<FieldError> =
        failure.details.iter().take(MAX_SHOWN_DETAILS).map(|detail| shown(detail, &known)).collect();
    let undeclared = help.map_or(&[][..], |help| &help.undeclared);
    let content = Content {
        status: "error",
        class: failure.class,
        details_left_out: failure.details.len() - details.len(),
        details,
        undeclared: &undeclared[..undeclared.len().min(MAX_SHOWN_UNDECLARED)],
        sent: help.and_then(|help| help.sent.as_deref()),
        example: help.and_then(|help| help.example.as_ref()),
        corrections_left,
        guidance,
        message,
    };
    content.within(most.min(MAX_FEEDBACK))
}

/// Writes the error in words, as a model gets it: what was said if the model can act on it, else our own words.
pub fn message(words: Words<'_>, tool: &str, failure: &Failure) -> String {
    error_text(words, tool, failure, &Known::new("", &failure.details))
}

/// Writes the content of a user message by Redial.
pub fn nudge(words: Words<'_>, nudge: Nudge<'_>) -> String {
    let (code, tool) = match nudge {
        Nudge::Problem(problem) => {
            let problem = problem.trim_end_matches(['.', '。']);
            return words.say("nudge.problem", &Values { problem: Some(problem), ..Values::default() });
        }
        Nudge::Empty => return words.say("nudge.empty", &Values::default()),
        Nudge::CutOff => return words.say("nudge.cut_off", &Values::default()),
        Nudge::CutOffBeforeAnswer => return words.say("nudge.cut_off_before_answer", &Values::default()),
        Nudge::Continue { ending } => {
            return words.say("nudge.continue", &Values { ending: Some(ending), ..Values::default() });
        }
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
        TaskCode::CostUnknown => "last_answer.cost_unknown",
        TaskCode::TimeExhausted => "last_answer.time_exhausted",
        TaskCode::Answered
        | TaskCode::AnswerCutOff
        | TaskCode::ModelFailed
        | TaskCode::NoAnswer
        | TaskCode::Cancelled
        | TaskCode::Internal
        | TaskCode::Other => "last_answer.other",
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

/// Writes the broken rules of a tool that names them in Chinese, like those of the arguments' pipeline; the tool has
/// them put into English words (`ToolError::invalid`). `None` if the tool wrote a message of its own.
fn broken_rules(language: Language, failure: &Failure) -> Option<String> {
    let joined = |separator, line: fn(&FieldError) -> String| {
        failure.details.iter().map(line).collect::<Vec<_>>().join(separator)
    };
    let english = joined("; ", FieldError::without_hint);
    if language == Language::En || failure.details.is_empty() || failure.message != english {
        return None;
    }
    Some(joined("；", |rule| {
        let (path, allowed) = (&rule.path, &rule.allowed);
        match rule.was_sent() {
            Some(sent) => format!("{path} 收到的是 {sent}，允许的是：{allowed}"),
            None => format!("缺少 {path}，允许的是：{allowed}"),
        }
    }))
}

/// True if the words of this class come from the arguments' pipeline, from the tool as an answer to the model, or from
/// a person; what a tool wrote without meaning it as an answer is not in a message, but in diagnostics. All others are
/// about the service, and are for operators.
const fn is_for_the_model(class: ErrorClass) -> bool {
    match class {
        ErrorClass::MalformedArguments
        | ErrorClass::UnknownTool
        | ErrorClass::InvalidArguments
        | ErrorClass::RepeatedCall
        | ErrorClass::BusinessRule
        | ErrorClass::OutputInvalid
        | ErrorClass::OutputTooLarge
        | ErrorClass::Rejected
        | ErrorClass::ToolFailed => true,
        ErrorClass::RateLimited
        | ErrorClass::Unavailable
        | ErrorClass::Timeout
        | ErrorClass::Unanswered
        | ErrorClass::Lost
        | ErrorClass::Auth
        | ErrorClass::Configuration
        | ErrorClass::BudgetExhausted
        | ErrorClass::Cancelled
        | ErrorClass::Internal => false,
    }
}

/// Scrubs a broken rule. What was sent stays as it was.
fn shown(detail: &FieldError, known: &Known<'_>) -> FieldError {
    let text = |text: &str| limits::shorten(&scrub(text, known), MAX_TEXT);
    let sent = |sent: &Value| match sent {
        Value::String(sent) => Value::String(limits::shorten(sent, MAX_TEXT)),
        other => {
            let json = other.to_string();
            if json.len() > MAX_TEXT { Value::String(limits::shorten(&json, MAX_TEXT)) } else { other.clone() }
        }
    };
    FieldError {
        path: limits::shorten(&detail.path, MAX_TEXT),
        rule: text(&detail.rule),
        sent: detail.was_sent().map(sent),
        allowed: text(&detail.allowed),
        hint: detail.hint.as_deref().map(text),
    }
}

/// True if help holds a secret, which a schema's own values may; the model sees them with the tool, but nothing repeats
/// them.
fn shows_secret(help: &Help, known: &Known<'_>) -> bool {
    fn holds(value: &Value, is_secret: &dyn Fn(&str) -> bool) -> bool {
        match value {
            Value::String(text) => is_secret(text),
            Value::Array(items) => items.iter().any(|item| holds(item, is_secret)),
            Value::Object(members) => members.values().any(|member| holds(member, is_secret)),
            _ => false,
        }
    }
    help.example.as_ref().is_some_and(|example| holds(example, &|text| reveals_secret(text, known)))
}
