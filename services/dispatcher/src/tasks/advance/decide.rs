//! What becomes of a batch of tasks: the part inside of the transaction. Pure but for the ids that it makes.

use std::collections::VecDeque;

use redial_engine::task::{Ended, Step, Task};
use redial_proto::{AgentSpec, CallId, TaskInput, TaskState, TaskStep};
use redial_records::NewCall;
use redial_store::{Advancer, EndedCall, InboxItem, StartInfo, TaskChange, TaskRow};
use serde_json::Value;

use super::super::{life::Life, resolve::Resolver};
use super::{
    calls::{self, Calls},
    unreadable::give_up,
};
use redial_engine::tools::Tools;

/// A task that waits for another one is looked at again after this.
const LOOK_AGAIN: chrono::TimeDelta = chrono::TimeDelta::seconds(1);

/// Decides about tasks with the engine.
pub(super) struct Decider<'a> {
    tools: &'a Tools,
    resolver: Resolver<'a>,
}

impl<'a> Decider<'a> {
    pub(super) fn new(tools: &'a Tools) -> Self {
        Self { tools, resolver: Resolver::new(tools) }
    }
}

impl Advancer for Decider<'_> {
    /// Anything but a retry may begin a turn, and a turn needs the whole conversation.
    fn wants_messages(&mut self, task: &TaskRow) -> bool {
        let is_retry = |item: &InboxItem| matches!(item, InboxItem::Retrying { .. });
        is_due(task) || !task.inbox.iter().all(is_retry)
    }

    fn advance(&mut self, row: TaskRow) -> Option<TaskChange> {
        let read = read(&row);
        match read {
            Ok((spec, task)) => Some(self.decide(row, &spec, task)),
            Err(error) => {
                tracing::error!(task = %row.id, error, "a task cannot be read and is ended");
                Some(give_up(&row, &error))
            }
        }
    }
}

/// The pinned agent and the state machine of a task.
fn read(row: &TaskRow) -> Result<(AgentSpec, Task), String> {
    let spec = serde_json::from_str(&row.spec).map_err(|error| format!("its agent cannot be read: {error}"))?;
    let task: Option<Task> = row
        .progress
        .as_deref()
        .map_or(Ok(None), serde_json::from_str)
        .map_err(|error| format!("its progress cannot be read: {error}"))?;
    Ok((spec, task.unwrap_or_default()))
}

impl Decider<'_> {
    fn decide(&mut self, mut row: TaskRow, spec: &AgentSpec, task: Task) -> TaskChange {
        let (messages, inbox) = (std::mem::take(&mut row.messages), std::mem::take(&mut row.inbox));
        let life = Life { id: row.id, spec, language: row.language, input: &row.input, task, messages };
        let mut turn = Turn {
            coming: came_in(&row, spec, inbox),
            change: unchanged(&row, &life.task),
            calls: Calls { row: &row, tools: self.tools },
            life,
            step: row.last_step,
        };
        while let Some((input, ended)) = turn.coming.pop_front() {
            turn.take(input, ended.as_ref(), &mut self.resolver);
        }
        turn.done()
    }
}

/// What came in, in order, with the calls that ended.
fn came_in(row: &TaskRow, spec: &AgentSpec, inbox: Vec<InboxItem>) -> VecDeque<(TaskInput, Option<EndedCall>)> {
    let mut coming = VecDeque::new();
    if let Some(start) = &row.start {
        coming.push_back((started(start, spec), None));
    }
    coming.extend(inbox.into_iter().filter_map(input));
    if is_due(row) && row.state == TaskState::Running {
        coming.push_back((TaskInput::Woken, None));
    }
    coming
}

fn is_due(row: &TaskRow) -> bool {
    row.wake_at.is_some_and(|at| at <= row.now)
}

fn started(start: &StartInfo, spec: &AgentSpec) -> TaskInput {
    let system = !spec.system.is_empty() && start.system.as_deref() != Some(spec.system.as_str());
    // What another version wrote and this one cannot read is not worth failing for.
    let before = start.carried.as_deref().and_then(|progress| serde_json::from_str::<Task>(progress).ok());
    let carried = before.map_or(Value::Null, |task| task.carried());
    TaskInput::Started { first_seq: start.next_seq, system, carried }
}

/// `None` for a start: whether it may is another question, and answered by the row.
fn input(item: InboxItem) -> Option<(TaskInput, Option<EndedCall>)> {
    let input = match item {
        InboxItem::Start => return None,
        InboxItem::Cancel => TaskInput::CancelRequested,
        InboxItem::Ended(ended) => return Some((end_of(&ended), Some(ended))),
        InboxItem::Retrying { call, turn, call_index, tool, attempt, class, message, next_at } => {
            TaskInput::Retrying { turn, call_index, call, tool, attempt, class, message, next_at }
        }
    };
    Some((input, None))
}

fn end_of(ended: &EndedCall) -> TaskInput {
    let (turn, call_index, call): (u32, u32, CallId) = (ended.turn, ended.call_index, ended.call);
    if call_index == 0 { TaskInput::TurnEnded { turn, call } } else { TaskInput::CallEnded { turn, call_index, call } }
}

/// One task on its way through what came in.
struct Turn<'a> {
    life: Life<'a>,
    calls: Calls<'a>,
    coming: VecDeque<(TaskInput, Option<EndedCall>)>,
    change: TaskChange,
    /// Number of the last step.
    step: u32,
}

impl Turn<'_> {
    fn take(&mut self, input: TaskInput, ended: Option<&EndedCall>, resolver: &mut Resolver<'_>) {
        let now = self.calls.row.now;
        let Step { decisions, messages, calls, turn, cancel, ended, wake_at } =
            self.life.feed(&input, ended, resolver, now);
        // A wake that only asks again is no step.
        if !matches!(input, TaskInput::Woken) || !decisions.is_empty() {
            self.step += 1;
            self.change.steps.push(TaskStep { n: self.step, at: now, input, decisions });
        }
        self.change.messages.extend(messages);
        self.change.cancel.extend(cancel);
        self.change.wake_at = wake_at;
        let (refused, wanted): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.refusal.is_some());
        let mut wanted: Vec<NewCall> = wanted.into_iter().map(|call| self.calls.tool(call)).collect();
        wanted.extend(turn.map(|turn| self.calls.model(&self.life, &turn)));
        // A call that the engine wants and that cannot run has ended before it began.
        for ended in wanted.iter().rev().filter_map(calls::ended) {
            self.coming.push_front((end_of(&ended), Some(ended)));
        }
        self.change.calls.extend(wanted);
        self.change.calls.extend(refused.into_iter().map(|call| self.calls.tool(call)));
        self.end(ended);
    }

    fn end(&mut self, ended: Option<Ended>) {
        let Some(ended) = ended else { return };
        self.change.code = Some(ended.code);
        self.change.message = ended.message;
        self.change.answer = ended.answer;
    }

    fn done(self) -> TaskChange {
        let (row, task) = (self.calls.row, self.life.task);
        let look_again = (task.state() == TaskState::Waiting).then(|| row.now + LOOK_AGAIN);
        TaskChange {
            state: task.state(),
            // Maps have text keys only, so this cannot fail.
            progress: serde_json::to_string(&task).unwrap_or_else(|_| "null".to_owned()),
            wake_at: self.change.wake_at.or(look_again),
            turns: task.turns(),
            tool_calls: task.tool_calls(),
            corrections: task.corrections(),
            usage: task.usage(),
            ..self.change
        }
    }
}

fn unchanged(row: &TaskRow, task: &Task) -> TaskChange {
    TaskChange {
        id: row.id,
        state: row.state,
        progress: String::new(),
        wake_at: row.wake_at,
        code: None,
        message: None,
        answer: None,
        turns: task.turns(),
        tool_calls: task.tool_calls(),
        corrections: task.corrections(),
        usage: task.usage(),
        messages: Vec::new(),
        steps: Vec::new(),
        calls: Vec::new(),
        cancel: Vec::new(),
    }
}
