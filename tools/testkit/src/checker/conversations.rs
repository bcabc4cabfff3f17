//! Tasks and conversations: what stands in the database, and what must hold of it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use redial_proto::{MessageCall, TaskId, TaskState};
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::{Accusation, Claims, Invariant, Subject};

/// A task as it stands.
#[derive(Clone, Debug)]
pub struct TaskFacts {
    /// Its id.
    pub id: TaskId,
    /// Its tenant and conversation.
    pub conversation: (String, String),
    /// Its state.
    pub state: TaskState,
    /// When work on it began and ended.
    pub worked_on: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    /// The number of its last step.
    pub last_step: u32,
    /// The numbers of its steps.
    pub steps: Vec<u32>,
    /// Its messages, by their place.
    pub messages: Vec<MessageFacts>,
}

/// A message as it stands.
#[derive(Clone, Debug)]
pub struct MessageFacts {
    seq: u32,
    /// Ids of the calls that it asks for.
    calls: Vec<String>,
    /// The call that it answers.
    answers: Option<String>,
}

impl TaskFacts {
    pub(super) async fn read(db: &mut PgConnection) -> Vec<Self> {
        let tasks = sqlx::query(
            "SELECT id, tenant, conversation, state, started_at, finished_at, last_step FROM tasks ORDER BY id",
        );
        let mut found = BTreeMap::new();
        for row in tasks.fetch_all(&mut *db).await.unwrap() {
            let id = TaskId(row.get("id"));
            let conversation = (row.get("tenant"), row.get("conversation"));
            let state = row.get::<String, _>("state").parse().unwrap();
            let worked_on = (row.get("started_at"), row.get("finished_at"));
            let last_step = row.get::<i32, _>("last_step").try_into().unwrap();
            let (steps, messages) = (Vec::new(), Vec::new());
            found.insert(id, Self { id, conversation, state, worked_on, last_step, steps, messages });
        }
        for row in
            sqlx::query("SELECT task_id, n FROM task_steps ORDER BY task_id, n").fetch_all(&mut *db).await.unwrap()
        {
            let id = TaskId(row.get::<Uuid, _>("task_id"));
            found.get_mut(&id).unwrap().steps.push(row.get::<i32, _>("n").try_into().unwrap());
        }
        let messages =
            sqlx::query("SELECT task_id, seq, calls::text AS calls, call_id FROM messages ORDER BY task_id, seq");
        for row in messages.fetch_all(db).await.unwrap() {
            let calls = row.get::<Option<String>, _>("calls");
            let calls: Vec<MessageCall> = calls.map_or_else(Vec::new, |text| serde_json::from_str(&text).unwrap());
            let message = MessageFacts {
                seq: row.get::<i32, _>("seq").try_into().unwrap(),
                calls: calls.into_iter().map(|call| call.id).collect(),
                answers: row.get("call_id"),
            };
            found.get_mut(&TaskId(row.get::<Uuid, _>("task_id"))).unwrap().messages.push(message);
        }
        found.into_values().collect()
    }
}

/// Every invariant that does not hold of tasks and conversations.
pub(super) fn accuse(tasks: &[TaskFacts], claims: &Claims) -> Vec<Accusation> {
    let mut accusations = Vec::new();
    let mut accuse =
        |invariant, task, found| accusations.push(Accusation { invariant, about: Subject::Task(task), found });
    for promised in claims.tasks.iter().filter(|id| tasks.iter().all(|task| task.id != **id)) {
        accuse(Invariant::AcknowledgedExists, *promised, "was acknowledged and is not on record".to_owned());
    }
    for task in tasks {
        if !task.state.is_terminal() && !claims.calls_may_live {
            accuse(Invariant::EveryTaskEnds, task.id, format!("is {} after {} steps", task.state, task.steps.len()));
        }
        // One that lives may have taken another step while this was read.
        let last = if task.state.is_terminal() { Some(task.last_step) } else { task.steps.last().copied() };
        if !(1..=last.unwrap_or(0)).eq(task.steps.iter().copied()) {
            let found = format!("{} steps taken, on record are {:?}", task.last_step, task.steps);
            accuse(Invariant::StepsWithoutGaps, task.id, found);
        }
    }
    let mut conversations: BTreeMap<_, Vec<&TaskFacts>> = BTreeMap::new();
    for task in tasks {
        conversations.entry(&task.conversation).or_default().push(task);
    }
    for tasks in conversations.values() {
        if let Some((task, found)) = at_once(tasks) {
            accuse(Invariant::OneTaskAtATime, task, found);
        }
    }
    // While a task runs, places of its answers are reserved and empty.
    conversations.retain(|_, tasks| tasks.iter().all(|task| task.state.is_terminal()));
    for tasks in conversations.values() {
        let mut messages: Vec<&MessageFacts> = tasks.iter().flat_map(|task| &task.messages).collect();
        messages.sort_by_key(|message| message.seq);
        if let Some(found) = gap(&messages) {
            accuse(Invariant::MessagesWithoutGaps, tasks[0].id, found);
        }
        if let Some(found) = unanswered(&messages) {
            accuse(Invariant::OneAnswerPerCall, tasks[0].id, found);
        }
    }
    accusations
}

fn at_once(tasks: &[&TaskFacts]) -> Option<(TaskId, String)> {
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
