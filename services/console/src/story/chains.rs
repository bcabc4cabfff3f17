//! Chains of corrections: a call that was fed back to the model, and what the model sent instead, until it ran or was given up.

use std::collections::BTreeSet;

use redial_proto::ErrorClass;

use super::{Asked, Story};

/// One intention: calls by turn and number, in order. All but the last were fed back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) tool: String,
    pub(crate) calls: Vec<(u32, u32)>,
}

/// Finds the chains of a task: those with a correction, or with a call that was fed back and never corrected.
///
/// A call corrects the call of the same tool that was fed back in the turn before which had one. If the name was
/// unknown, any first call of the next turn does. It is how docs/AUDIT.md counts corrections.
pub(crate) fn chains(story: &Story) -> Vec<Chain> {
    let mut open: Vec<Chain> = Vec::new();
    let mut done: Vec<Chain> = Vec::new();
    let turns: BTreeSet<u32> = story.calls.keys().map(|(turn, _)| *turn).collect();
    for turn in turns {
        let mut went_on: Vec<Chain> = Vec::new();
        for (key, call) in story.calls.range((turn, 0)..=(turn, u32::MAX)) {
            let same = open.iter().position(|chain| chain.tool == call.tool);
            let renamed = || open.iter().position(|chain| is_unknown_tool(story, chain));
            let mut chain = match same.or_else(renamed) {
                Some(at) => open.remove(at),
                None => Chain { tool: String::new(), calls: Vec::new() },
            };
            chain.tool.clone_from(&call.tool);
            chain.calls.push(*key);
            if was_fed_back(call) { went_on.push(chain) } else { done.push(chain) }
        }
        // A tool that this turn called was corrected now or is not any more.
        let called: BTreeSet<&str> =
            story.calls.range((turn, 0)..=(turn, u32::MAX)).map(|(_, call)| call.tool.as_str()).collect();
        let (left, ended): (Vec<_>, Vec<_>) = open.into_iter().partition(|chain| !called.contains(chain.tool.as_str()));
        done.extend(ended);
        open = left;
        open.extend(went_on);
    }
    done.extend(open);
    done.retain(|chain| {
        chain.calls.len() > 1 || chain.calls.iter().any(|key| story.calls.get(key).is_some_and(was_fed_back))
    });
    done.sort_by(|a, b| a.calls.cmp(&b.calls));
    done
}

/// Returns true if the model got an error that it can correct.
pub(crate) fn was_fed_back(call: &Asked) -> bool {
    call.answer.as_ref().is_some_and(|answer| answer.corrections_left.is_some() && answer.class.is_some())
}

fn is_unknown_tool(story: &Story, chain: &Chain) -> bool {
    let last = chain.calls.last().and_then(|key| story.calls.get(key));
    let class = last.and_then(|call| call.answer.as_ref()).and_then(|answer| answer.class);
    class == Some(ErrorClass::UnknownTool)
}
