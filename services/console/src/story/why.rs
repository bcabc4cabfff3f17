//! Why each step happened: the rule, and the setting that decided.

use redial_proto::{AgentSpec, ErrorClass, FieldError, Repair};

use super::{Asked, Retry, Turn};
use crate::show::{self, line, things};

/// Characters of a reason in one line.
const LINE: usize = 240;

/// Says why a turn went as it did.
pub(crate) fn of_turn(turn: &Turn) -> String {
    let asked = match (turn.last, turn.continues) {
        (true, _) => "last answer, without tools: ",
        (false, true) => "the rest of an answer: ",
        (false, false) => "",
    };
    let what = match (turn.ended_at, &turn.nudged, turn.asked, &turn.text) {
        (None, ..) => "asked".to_owned(),
        (_, Some(problem), ..) => format!("not taken: {problem}"),
        (.., 0, Some(text)) => text.clone(),
        (.., 0, None) => "no answer".to_owned(),
        (.., calls, None) => format!("asks for {}", things(calls, "call")),
        (.., calls, Some(text)) => format!("asks for {}: {text}", things(calls, "call")),
    };
    let retried = retried(&turn.retries).map(|text| format!("{text}; ")).unwrap_or_default();
    line(&format!("{retried}{asked}{what}"), LINE)
}

/// Says why a call went as it did: repaired, fed back, retried, held, refused, or plainly answered.
pub(crate) fn of_call(call: &Asked, agent: Option<&AgentSpec>) -> String {
    let mut parts = Vec::new();
    parts.extend(repaired(&call.repairs));
    parts.extend(retried(&call.retries));
    match &call.answer {
        None if call.client => parts.push("the client answers it".to_owned()),
        None => {}
        Some(answer) => match answer.class {
            None if answer.ran => {}
            None => parts.push("answered by Redial without running a tool".to_owned()),
            Some(class) => {
                let left = answer.corrections_left.map(|left| corrections(left, agent)).unwrap_or_default();
                let rules = rules(&answer.details);
                let said = if rules.is_empty() { answer.message.clone().unwrap_or_default() } else { rules };
                let how = how(&class, &answer.ran, answer.corrections_left.is_some());
                parts.push(format!("{how}: {said}{left}"));
            }
        },
    }
    line(&parts.join("; "), LINE)
}

/// Says what became of a failure.
pub(crate) fn how(class: &ErrorClass, ran: &bool, is_fed_back: bool) -> String {
    let class = show::words(class.as_str());
    match (*ran, is_fed_back) {
        (false, true) => format!("fed back without running ({class})"),
        (false, false) => format!("refused ({class})"),
        (true, true) => format!("fed back ({class})"),
        (true, false) => format!("failed ({class})"),
    }
}

fn corrections(left: u32, agent: Option<&AgentSpec>) -> String {
    match agent {
        Some(agent) => format!("; {left} of {} corrections left (max_corrections)", agent.max_corrections),
        None => format!("; {} left", things(left, "correction")),
    }
}

/// Names the repairs that code made, in a few words.
fn repaired(repairs: &[Repair]) -> Option<String> {
    let first = repairs.first()?;
    let place =
        first.path.as_deref().filter(|path| !path.is_empty()).map(|path| format!(" at {path}")).unwrap_or_default();
    let more = if repairs.len() > 1 { format!(" and {} more", repairs.len() - 1) } else { String::new() };
    Some(format!("repaired in code: {}{place}{more}", show::words(first.kind.as_str())))
}

fn retried(retries: &[Retry]) -> Option<String> {
    let last = retries.last()?;
    let pause = show::span((last.next_at - last.at).num_milliseconds().max(0));
    let times = things(retries.len(), "retry");
    Some(format!("{times} ({}), the last after {pause}", show::words(last.class.as_str())))
}

/// Names the broken rules, in a few words.
pub(crate) fn rules(details: &[FieldError]) -> String {
    let rule = |detail: &FieldError| {
        let place = if detail.path.is_empty() { "the whole" } else { &detail.path };
        let sent =
            detail.sent.as_ref().map(|sent| format!(" {}", show::clip(&sent.to_string(), 60))).unwrap_or_default();
        format!("{place}{sent} breaks {}, allowed is {}", detail.rule, show::clip(&detail.allowed, 80))
    };
    let mut rules: Vec<String> = details.iter().take(2).map(rule).collect();
    if details.len() > 2 {
        rules.push(format!("{} more", details.len() - 2));
    }
    rules.join("; ")
}
