//! What must hold of tasks and conversations.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use redial_proto::TaskId;

use super::{
    claims::Claims,
    tasks::{MessageFacts, TaskFacts},
    violation::{Invariant, Subject, Violation},
};

/// Returns every invariant that does not hold of tasks and conversations.
pub(super) fn check(tasks: &[TaskFacts], claims: &Claims) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut add = |invariant, task, found| violations.push(Violation { invariant, about: Subject::Task(task), found });
    for promised in claims.tasks.iter().filter(|id| tasks.iter().all(|task| task.id != **id)) {
        add(Invariant::AcknowledgedExists, *promised, "was acknowledged and is not on record".to_owned());
    }
    for task in tasks {
        if !task.state.is_terminal() && !claims.calls_may_live {
            add(Invariant::EveryTaskEnds, task.id, format!("is {} after {} steps", task.state, task.steps.len()));
        }
        // A live task may have taken another step while the tables were read.
        let last = if task.state.is_terminal() { Some(task.last_step) } else { task.steps.last().copied() };
        if !(1..=last.unwrap_or(0)).eq(task.steps.iter().copied()) {
            let found = format!("{} steps taken, on record are {:?}", task.last_step, task.steps);
            add(Invariant::StepsWithoutGaps, task.id, found);
        }
    }
    let mut conversations: BTreeMap<_, Vec<&TaskFacts>> = BTreeMap::new();
    for task in tasks {
        conversations.entry(&task.conversation).or_default().push(task);
    }
    for tasks in conversations.values() {
        if let Some((task, found)) = overlapping(tasks) {
            add(Invariant::OneTaskAtATime, task, found);
        }
    }
    // While a task runs, the numbers of its answers are reserved and have no rows.
    conversations.retain(|_, tasks| tasks.iter().all(|task| task.state.is_terminal()));
    for tasks in conversations.values() {
        let mut messages: Vec<&MessageFacts> = tasks.iter().flat_map(|task| &task.messages).collect();
        messages.sort_by_key(|message| message.seq);
        if let Some(found) = gap(&messages) {
            add(Invariant::MessagesWithoutGaps, tasks[0].id, found);
        }
        if let Some(found) = unanswered(&messages) {
            add(Invariant::OneAnswerPerCall, tasks[0].id, found);
        }
    }
    violations
}

fn overlapping(tasks: &[&TaskFacts]) -> Option<(TaskId, String)> {
    let mut begun: Vec<_> = tasks.iter().filter_map(|task| Some((task.worked_on.0?, task))).collect();
    begun.sort_by_key(|(start, task)| (*start, task.id));
    let early = |pair: &&[(DateTime<Utc>, &&TaskFacts)]| pair[0].1.worked_on.1.is_none_or(|end| pair[1].0 < end);
    begun.windows(2).find(early).map(|pair| (pair[1].1.id, format!("began while task {} ran", pair[0].1.id)))
}

fn gap(messages: &[&MessageFacts]) -> Option<String> {
    let mut wrong = (1..).zip(messages).filter(|(wanted, message)| *wanted != message.seq);
    wrong.next().map(|(wanted, message)| format!("message {wanted} is missing, the next one is {}", message.seq))
}

/// Walks through a conversation with the list of calls that the next messages must answer.
fn unanswered(messages: &[&MessageFacts]) -> Option<String> {
    let mut open = std::collections::VecDeque::new();
    for message in messages {
        let wanted = open.pop_front();
        if message.answers.as_ref() != wanted {
            return Some(format!("message {} answers {:?}, wanted {wanted:?}", message.seq, message.answers));
        }
        open.extend(&message.calls);
    }
    open.front().map(|id| format!("nothing answers {id}"))
}
