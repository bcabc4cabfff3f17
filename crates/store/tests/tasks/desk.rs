//! A database of the test's own, and short words for what the tests do with it.

use redial_proto::{
    CallId, Effect, Language, Message, Role, TaskCode, TaskDecision, TaskId, TaskInput, TaskState, TaskStep, Usage,
};
use redial_records::{NewCall, TaskCall};
use redial_store::{
    Advanced, Advancer, NewTask, Purpose, Store, StoreConfig, StoreError, SubmittedTask, TaskChange, TaskRow, Time,
    admin,
};
use redial_testkit::{Servers, until};
use sqlx::{PgPool, postgres::PgPoolOptions};

/// How long a job may stay unclaimed; no test waits for it.
const CHECK_AFTER_MS: u64 = 10_000;

pub(crate) struct Desk {
    pub(crate) store: Store,
    /// Past the store.
    pub(crate) db: PgPool,
    servers: Servers,
}

impl Desk {
    pub(crate) async fn open() -> Self {
        let servers = Servers::start().await;
        admin::create_database(servers.postgres_url(), servers.database()).await.unwrap();
        admin::migrate(servers.database_url()).await.unwrap();
        let store = connect(&servers).await;
        let db = PgPoolOptions::new().max_connections(4).connect_lazy(servers.database_url()).unwrap();
        Self { store, db, servers }
    }

    /// Another dispatcher's connections.
    pub(crate) async fn another_store(&self) -> Store {
        connect(&self.servers).await
    }

    pub(crate) async fn submit(&self, conversation: &str) -> TaskId {
        let task = new_task(conversation);
        let written = self.store.submit_tasks(std::slice::from_ref(&task)).await.unwrap();
        assert_eq!(written, [SubmittedTask::Written]);
        task.id
    }

    /// Advances tasks and waits for those that are locked.
    pub(crate) async fn advance(
        &self,
        tasks: impl AsRef<[TaskId]>,
        decide: impl FnMut(TaskRow) -> Option<TaskChange>,
    ) -> Result<Vec<Advanced>, StoreError> {
        self.store.advance(tasks.as_ref(), true, CHECK_AFTER_MS, &mut By(decide)).await
    }

    /// Starts a task.
    pub(crate) async fn start(&self, task: TaskId) -> Advanced {
        let mut advanced = self.advance([task], |row| Some(started(&row))).await.unwrap();
        advanced.pop().expect("it may start")
    }

    /// Starts a task that asks for these calls.
    pub(crate) async fn start_with(&self, task: TaskId, calls: &[NewCall]) -> Advanced {
        let decide = |row: TaskRow| Some(TaskChange { calls: calls.to_vec(), ..started(&row) });
        self.advance([task], decide).await.unwrap().pop().expect("it may start")
    }

    /// Makes somebody look at a running task, who ends it.
    pub(crate) async fn end(&self, task: TaskId) -> Advanced {
        self.store.cancel_task(task).await.unwrap();
        let decide = |row: TaskRow| Some(ended(&row, TaskState::Cancelled, TaskCode::Cancelled));
        self.advance([task], decide).await.unwrap().pop().expect("it had not ended")
    }

    pub(crate) async fn state(&self, task: TaskId) -> TaskState {
        self.text("SELECT state FROM tasks WHERE id = $1", task).await.parse().unwrap()
    }

    /// One text of a task, by a statement of the test.
    pub(crate) async fn text(&self, statement: &'static str, task: TaskId) -> String {
        sqlx::query_scalar(statement).bind(task.0).fetch_one(&self.db).await.unwrap()
    }

    pub(crate) async fn count(&self, statement: &'static str) -> i64 {
        sqlx::query_scalar(statement).fetch_one(&self.db).await.unwrap()
    }

    /// Waits until somebody waits for a lock that the test holds.
    pub(crate) async fn waits_for_lock(&self) {
        until("somebody waits for a lock", async || {
            let waiting = "SELECT count(*) FROM pg_stat_activity
                           WHERE datname = current_database() AND wait_event_type = 'Lock'";
            (self.count(waiting).await > 0).then_some(())
        })
        .await;
    }

    /// Items in all inboxes.
    pub(crate) async fn inbox(&self) -> i64 {
        self.count("SELECT count(*) FROM task_inbox").await
    }
}

async fn connect(servers: &Servers) -> Store {
    let config = StoreConfig { url: servers.database_url().to_owned(), connections: 4, purpose: Purpose::Dispatch };
    Store::connect(&config).await.unwrap()
}

/// Decides by a closure, and always wants the messages.
pub(crate) struct By<F>(pub(crate) F);

impl<F: FnMut(TaskRow) -> Option<TaskChange>> Advancer for By<F> {
    fn wants_messages(&mut self, _: &TaskRow) -> bool {
        true
    }

    fn advance(&mut self, task: TaskRow) -> Option<TaskChange> {
        (self.0)(task)
    }
}

/// For tasks that must not be asked about.
#[expect(clippy::needless_pass_by_value, reason = "has the form of a decision")]
pub(crate) fn nobody_asks(row: TaskRow) -> Option<TaskChange> {
    panic!("there is nothing to decide about {row:?}")
}

pub(crate) fn new_task(conversation: &str) -> NewTask {
    NewTask {
        id: TaskId::generate(),
        tenant: "default".to_owned(),
        conversation: conversation.to_owned(),
        key: None,
        content: None,
        agent: Some("helper".to_owned()),
        language: Language::Zh,
        spec: r#"{"model": "small", "system": "Be kind."}"#.to_owned(),
        input: "你好".to_owned(),
        traceparent: None,
    }
}

/// A task goes on as it is, with one step.
pub(crate) fn stepped(row: &TaskRow, state: TaskState, messages: Vec<(u32, Message)>) -> TaskChange {
    let decisions = messages.iter().map(|(seq, _)| TaskDecision::Message { seq: *seq }).collect();
    let step = TaskStep { n: row.last_step + 1, at: row.now, input: TaskInput::Woken, decisions };
    TaskChange {
        id: row.id,
        state,
        progress: format!(r#"{{"of": "{}"}}"#, row.id),
        wake_at: (!state.is_terminal()).then(|| row.now + chrono::TimeDelta::hours(1)),
        code: None,
        message: None,
        answer: None,
        turns: 1,
        tool_calls: 2,
        corrections: 3,
        usage: Usage { input_tokens: 4, output_tokens: 5, cost_micros: 6 },
        messages,
        steps: vec![step],
        calls: Vec::new(),
        cancel: Vec::new(),
    }
}

/// A task starts with the instructions, if they are new, and the user's text.
pub(crate) fn started(row: &TaskRow) -> TaskChange {
    let start = row.start.as_ref().expect("it may start");
    let mut messages = Vec::new();
    let mut seq = start.next_seq;
    if start.system.is_none() {
        messages.push((seq, Message::text(Role::System, "Be kind.")));
        seq += 1;
    }
    messages.push((seq, Message::text(Role::User, row.input.clone())));
    stepped(row, TaskState::Running, messages)
}

pub(crate) fn ended(row: &TaskRow, state: TaskState, code: TaskCode) -> TaskChange {
    TaskChange { code: Some(code), ..stepped(row, state, Vec::new()) }
}

/// The end of a task with an answer behind all messages.
pub(crate) fn answered(row: &TaskRow) -> TaskChange {
    let seq = row.messages.last().map_or(1, |message| message.seq + 1);
    let answer = Message::text(Role::Assistant, "Done.");
    let change = stepped(row, TaskState::Succeeded, vec![(seq, answer)]);
    TaskChange { code: Some(TaskCode::Answered), answer: Some("Done.".to_owned()), ..change }
}

/// A call of a task.
pub(crate) fn new_call(task: TaskId, turn: u32, call_index: u32) -> NewCall {
    NewCall { task: Some(TaskCall { task, turn, call_index }), ..bare_call() }
}

pub(crate) fn bare_call() -> NewCall {
    NewCall {
        id: CallId::generate(),
        tool: "get_weather".to_owned(),
        pool: "default".to_owned(),
        effect: Effect::Idempotent,
        tenant: "default".to_owned(),
        key: None,
        content: None,
        conversation: Some("c".to_owned()),
        arguments: r#"{"city": "Paris"}"#.to_owned(),
        repairs: Vec::new(),
        timeout_ms: 1_000,
        retry: None,
        notify: false,
        traceparent: None,
        deadline_ms: 60_000,
        refusal: None,
        redrive_of: None,
        task: None,
    }
}

pub(crate) fn hour_before(time: Time) -> Time {
    time - chrono::TimeDelta::hours(1)
}
