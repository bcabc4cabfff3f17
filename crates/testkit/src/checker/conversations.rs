//! Tasks and conversations: what stands in the database, and what must hold of it.

use std::collections::BTreeMap;

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
        let tasks = sqlx::query("SELECT id, tenant, conversation, state FROM tasks ORDER BY id");
        let mut found = BTreeMap::new();
        for row in tasks.fetch_all(&mut *db).await.unwrap() {
            let id = TaskId(row.get("id"));
            let conversation = (row.get("tenant"), row.get("conversation"));
            let state = row.get::<String, _>("state").parse().unwrap();
            found.insert(id, Self { id, conversation, state, steps: Vec::new(), messages: Vec::new() });
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
        if !(1..).zip(&task.steps).all(|(wanted, found)| wanted == *found) {
            accuse(Invariant::StepsWithoutGaps, task.id, format!("steps {:?}", task.steps));
        }
    }
    let mut conversations: BTreeMap<_, Vec<&TaskFacts>> = BTreeMap::new();
    for task in tasks {
        conversations.entry(&task.conversation).or_default().push(task);
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
