//! What becomes of a task, from what is on record of it.
//!
//! A plan needs the task's summary and its inbox, both small. Only two things need something of the conversation: the
//! request for a model turn needs as much of its end as a view can show, and the built-in tool that reads on in a result
//! needs that one result. A plan that comes to such a point pauses and says what it needs.

mod needs;
mod request;
mod rows;
mod transition;
mod waiting;

use std::collections::VecDeque;

use redial_proto::{AgentSpec, CallId, TaskId, TaskInput, TaskState, TaskStep, tolerant};
use redial_records::{EndedCall, InboxItem, NewCall, StartInfo, TaskOutcome, TaskRecord, TaskStatus, TaskTransition};
use serde_json::Value;

pub use self::needs::{Known, Needs};

use self::transition::{effects, nothing};
use super::{
    inputs::{Aside, Conversation, PendingInput, Resolver, TaskRun},
    state::Task,
    step::WantedTurn,
};
use crate::{Time, tools::Tools};

/// What plans depend on besides the records. One serves for any number of tasks.
pub struct PlanContext<'a> {
    tools: &'a Tools,
    resolver: Resolver<'a>,
    new_id: &'a mut (dyn FnMut() -> CallId + Send),
}

impl<'a> PlanContext<'a> {
    /// Plans with the tools that are registered now; `new_id` makes the ids of new calls.
    pub fn new(tools: &'a Tools, new_id: &'a mut (dyn FnMut() -> CallId + Send)) -> Self {
        Self { tools, resolver: Resolver::new(tools), new_id }
    }

    /// Runs the checks of arguments that may take long by `aside`: not where others wait.
    #[must_use]
    pub fn with_aside(self, aside: Aside) -> Self {
        Self { resolver: self.resolver.with_aside(aside), ..self }
    }
}

/// How far a plan is.
#[derive(Debug)]
pub enum Planning {
    Done(Box<Planned>),
    /// It needs something of the conversation.
    Paused(Box<Paused>),
    /// This version cannot read the task, and says why: nothing is written.
    Unreadable(String),
}

#[derive(Debug)]
pub struct Planned {
    /// What is to be written, and what is to be done then.
    pub transition: TaskTransition,
    /// What only a bug of Redial explains, in words; for the log.
    pub bugs: Vec<String>,
}

/// A plan that needs something of its task's conversation.
#[derive(Debug)]
pub struct Paused {
    planner: Box<Planner>,
    needs: Needs,
}

/// Plans what becomes of a task.
///
/// A call that is wanted and cannot run, because its tool or model is not registered or its request does not fit, ends before it starts,
/// and the plan continues.
pub fn plan(mut record: TaskRecord, context: &mut PlanContext<'_>) -> Planning {
    if waiting::must_wait(&record) {
        return Planning::Done(Box::new(Planned { transition: waiting::wait(&record), bugs: Vec::new() }));
    }
    match read(&mut record) {
        Ok((agent, task)) => advance(Box::new(Planner::new(record, agent, task)), context),
        Err(why) => Planning::Unreadable(why),
    }
}

fn advance(mut planner: Box<Planner>, context: &mut PlanContext<'_>) -> Planning {
    match planner.advance(context) {
        Ok(()) => Planning::Done(Box::new(planner.done())),
        Err(needs) => Planning::Paused(Box::new(Paused { planner, needs })),
    }
}

impl Paused {
    pub const fn task(&self) -> TaskId {
        self.planner.record.id
    }

    pub const fn needs(&self) -> &Needs {
        &self.needs
    }

    pub fn resume(self, known: Known, context: &mut PlanContext<'_>) -> Planning {
        let mut planner = self.planner;
        match (self.needs, known) {
            (_, Known::Conversation(read)) => planner.run.conversation.add_read(read),
            (Needs::Results(calls), Known::Results(found)) => planner.run.conversation.add_results(calls, found),
            (needs, Known::Results(_)) => return Planning::Paused(Box::new(Self { planner, needs })),
        }
        advance(planner, context)
    }
}

/// Reads the pinned agent and the state machine of a task.
fn read(record: &mut TaskRecord) -> Result<(AgentSpec, Task), String> {
    let agent = tolerant::from_str(&record.spec).map_err(|error| format!("its agent cannot be read: {error}"))?;
    let task: Option<Task> = record
        .progress
        .as_deref()
        .map_or(Ok(None), serde_json::from_str)
        .map_err(|error| format!("its progress cannot be read: {error}"))?;
    Ok((agent, task.unwrap_or_default()))
}

/// One task on its way through its inputs.
#[derive(Debug)]
struct Planner {
    /// Without its inbox and input.
    record: TaskRecord,
    run: TaskRun,
    /// What is still to happen to the task, in order.
    inputs: VecDeque<PendingInput>,
    /// A model turn that is wanted, and whose request is not made yet.
    turn: Option<WantedTurn>,
    /// What is planned so far. Its status, summary, and effects follow at the end.
    transition: TaskTransition,
    cancel: Vec<CallId>,
    wake_at: Option<Time>,
    outcome: Option<TaskOutcome>,
    bugs: Vec<String>,
}

impl Planner {
    fn new(mut record: TaskRecord, agent: AgentSpec, task: Task) -> Self {
        let inputs = inputs(&mut record, &agent);
        let run = TaskRun {
            id: record.id,
            agent,
            language: record.language,
            input: std::mem::take(&mut record.input),
            task,
            conversation: Conversation::default(),
        };
        Self {
            transition: nothing(&record),
            wake_at: record.wake_at,
            record,
            run,
            inputs,
            turn: None,
            cancel: Vec::new(),
            outcome: None,
            bugs: Vec::new(),
        }
    }

    /// Plans until the inputs are used up, or something of the conversation is needed.
    fn advance(&mut self, context: &mut PlanContext<'_>) -> Result<(), Needs> {
        loop {
            if let Some(turn) = &self.turn {
                let (call, offers) = rows::turn(&self.record, &self.run, turn, context.tools)?;
                self.turn = None;
                self.transition.offers.extend(offers);
                self.write(vec![call]);
            }
            let Some(pending) = self.inputs.pop_front() else { return Ok(()) };
            if let Err(missing) = self.take(&pending, context) {
                self.inputs.push_front(pending);
                return Err(Needs::Results(missing));
            }
        }
    }

    fn take(&mut self, pending: &PendingInput, context: &mut PlanContext<'_>) -> Result<(), Vec<String>> {
        let now = self.record.read_at;
        let step = self.run.apply(pending, &mut context.resolver, now, context.new_id)?;
        let input = &pending.input;
        self.bugs.extend(context.resolver.take_bugs());
        let transition = &mut self.transition;
        // A wake that only asks again is not a step.
        if !matches!(input, TaskInput::Woken) || !step.decisions.is_empty() {
            let number = transition.steps.last().map_or(transition.last_step, |last| last.step) + 1;
            transition.steps.push(TaskStep { step: number, at: now, input: input.clone(), decisions: step.decisions });
        }
        transition.messages.extend(step.messages);
        self.cancel.extend(step.cancel);
        self.wake_at = step.wake_at;
        self.outcome = self.outcome.take().or(step.ended);
        let (refused, wanted): (Vec<_>, Vec<_>) = step.calls.into_iter().partition(|call| call.refusal.is_some());
        let row = |call| rows::tool(&self.record, &self.run.agent, call, context.tools);
        let (wanted, refused): (Vec<_>, Vec<_>) =
            (wanted.into_iter().map(row).collect(), refused.into_iter().map(row).collect());
        self.write(wanted);
        self.transition.calls.extend(refused);
        self.turn = step.turn;
        Ok(())
    }

    /// Adds wanted calls. Those that cannot run have ended before they began.
    fn write(&mut self, wanted: Vec<NewCall>) {
        for ended in wanted.iter().rev().filter_map(rows::ended) {
            self.inputs.push_front(end_of(ended));
        }
        self.transition.calls.extend(wanted);
    }

    fn done(self) -> Planned {
        let task = self.run.task;
        let mut transition = TaskTransition {
            status: match (self.outcome, task.state()) {
                (Some(outcome), _) => TaskStatus::Ended(outcome),
                (None, TaskState::Waiting) => waiting::status(&self.record),
                (None, _) => TaskStatus::Running { wake_at: self.wake_at },
            },
            // Maps have text keys only, so this cannot fail.
            progress: serde_json::to_string(&task).unwrap_or_else(|_| "null".to_owned()),
            turns: task.turns(),
            tool_calls: task.tool_calls(),
            corrections: task.corrections(),
            usage: task.usage(),
            ..self.transition
        };
        transition.effects = effects(&transition, &self.record.tenant, self.cancel);
        Planned { transition, bugs: self.bugs }
    }
}

/// Lists what is to happen to a task, in order, with the calls that ended.
fn inputs(record: &mut TaskRecord, agent: &AgentSpec) -> VecDeque<PendingInput> {
    let mut inputs = VecDeque::new();
    if let Some(start) = &record.start {
        inputs.push_back(PendingInput { input: started(start, agent), ended: None });
    }
    inputs.extend(std::mem::take(&mut record.inbox).into_iter().filter_map(input));
    if record.state == TaskState::Running && record.wake_at.is_some_and(|at| at <= record.read_at) {
        inputs.push_back(PendingInput { input: TaskInput::Woken, ended: None });
    }
    inputs
}

fn started(start: &StartInfo, agent: &AgentSpec) -> TaskInput {
    let system = !agent.system.is_empty() && start.system.as_deref() != Some(agent.system.as_str());
    // What another version wrote and this one cannot read is not worth failing for.
    let before = start.carried.as_deref().and_then(|progress| serde_json::from_str::<Task>(progress).ok());
    let carried = before.map_or(Value::Null, |task| task.carried());
    TaskInput::Started { first_seq: start.next_seq, system, carried }
}

/// Reads an item; `None` for a start: whether the task may start is decided elsewhere, and is in its record.
fn input(item: InboxItem) -> Option<PendingInput> {
    let input = match item {
        InboxItem::Start => return None,
        InboxItem::Cancel => TaskInput::CancelRequested,
        InboxItem::Ended(ended) => return Some(end_of(ended)),
        InboxItem::Retrying { call, turn, call_index, tool, attempt, class, message, next_at } => {
            TaskInput::Retrying { turn, call_index, call, tool, attempt, class, message, next_at }
        }
    };
    Some(PendingInput { input, ended: None })
}

fn end_of(ended: EndedCall) -> PendingInput {
    let EndedCall { turn, call_index, call, .. } = ended;
    let input = match call_index {
        0 => TaskInput::TurnEnded { turn, call },
        _ => TaskInput::CallEnded { turn, call_index, call },
    };
    PendingInput { input, ended: Some(ended) }
}
