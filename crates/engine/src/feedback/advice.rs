//! What to do now: the text that fits the case.

use redial_proto::{Advice, ErrorClass, FieldError, Language, Limited, OverLimit};

use super::{Words, failure::CallFailure, fill::Values};

/// Paths of wrong values that are named.
const MAX_NAMED: usize = 5;

pub(super) fn guidance(words: Words<'_>, failed: &CallFailure<'_>, values: &Values<'_>) -> String {
    let class = failed.failure.class.as_str();
    if failed.failure.effect_possible {
        return words.say("unknown_outcome", values);
    }
    if failed.corrections_left == Some(0) {
        return words.say("no_corrections_left", values);
    }
    let key = key(failed);
    // A text of the user's own for the whole class stands for all of its cases.
    let is_own = words.templates.contains_key(class) && !words.templates.contains_key(key);
    if is_own {
        return words.say(class, values);
    }
    let limit = failed.help.and_then(|help| over(help.advice));
    let (most, over) = limit.map(|limit| of_limit(limit, words.language)).unzip();
    let wrong = wrong(&failed.failure.details, words.language);
    let values = Values { wrong: Some(&wrong), limit: most.as_deref(), over: over.as_deref(), ..*values };
    let said = words.say(key, &values);
    if failed.help.is_none_or(|help| help.example.is_none()) {
        return said;
    }
    let space = if words.language == Language::En { " " } else { "" };
    format!("{said}{space}{}", words.say("example", &values))
}

fn key(failed: &CallFailure<'_>) -> &'static str {
    let class = failed.failure.class;
    let advice = failed.help.map(|help| help.advice);
    match (class, advice) {
        (ErrorClass::MalformedArguments, Some(Advice::Form)) => "malformed_arguments.form",
        (ErrorClass::MalformedArguments, Some(Advice::Place)) => "malformed_arguments.place",
        (ErrorClass::MalformedArguments, Some(Advice::CutOff)) => "malformed_arguments.cut_off",
        (ErrorClass::MalformedArguments, Some(Advice::Comment)) => "malformed_arguments.comment",
        (ErrorClass::MalformedArguments, Some(Advice::OverLimit(_))) => "malformed_arguments.over_limit",
        (ErrorClass::InvalidArguments, Some(Advice::Form)) => "invalid_arguments.form",
        (ErrorClass::InvalidArguments, _) if !failed.failure.details.is_empty() => "invalid_arguments.values",
        _ => class.as_str(),
    }
}

const fn over(advice: Advice) -> Option<OverLimit> {
    match advice {
        Advice::OverLimit(limit) => Some(limit),
        _ => None,
    }
}

/// Says how much is allowed, and how much too much was sent.
fn of_limit(limit: OverLimit, language: Language) -> (String, String) {
    let OverLimit { of, allowed, over } = limit;
    let unit = match (language, of) {
        (Language::En, Limited::Bytes) => " bytes",
        (Language::En, Limited::Levels) => " levels of nesting",
        (Language::En, Limited::Repairs) => " repairs",
        (Language::En, Limited::Values) => " values",
        (Language::Zh, Limited::Bytes) => " 字节",
        (Language::Zh, Limited::Levels) => " 层嵌套",
        (Language::Zh, Limited::Repairs) => " 处修复",
        (Language::Zh, Limited::Values) => " 个值",
    };
    (format!("{allowed}{unit}"), over.to_string())
}

/// Names the places of wrong values, in words.
fn wrong(details: &[FieldError], language: Language) -> String {
    let (whole, comma, and) = match language {
        Language::En => ("the arguments as a whole", ", ", " and "),
        Language::Zh => ("整个参数", "、", " 和 "),
    };
    let mut paths: Vec<&str> = Vec::new();
    for detail in details {
        let path = if detail.path.is_empty() { whole } else { detail.path.as_str() };
        if paths.len() <= MAX_NAMED && !paths.contains(&path) && path.len() <= 100 {
            paths.push(path);
        }
    }
    let more = match language {
        Language::En => "everything else that is listed",
        Language::Zh => "列出的其他问题",
    };
    if paths.len() > MAX_NAMED {
        paths.truncate(MAX_NAMED);
        paths.push(more);
    }
    match paths.as_slice() {
        [] => more.to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{}{and}{last}", first.join(comma)),
    }
}
