//! A database of the test's own, and short names for what the tests do with it.

use std::ops::Deref;

use redial_proto::{
    CallId, CallState, ClaimId, ErrorClass, Failure, JobRef, Message, Role, StoredMessage, TaskCode, TaskDecision,
    TaskId, TaskInput, TaskState, TaskStep, Tenant, ToolEffect, Usage,
};
use redial_records::{
    CallFacts, Change, Claim, EndedAttempt, Guard, InboxItem, NewCall, Reach, TaskCall, TaskOutcome, TaskRecord,
    TaskStatus, TaskTransition, Time, Transition,
};
use redial_store::{Purpose, Store, StoreConfig, StoreError, SubmittedTask, TenantStore};
use redial_testkit::{Database, until};
use sqlx::{PgPool, postgres::PgPoolOptions};

pub(crate) use crate::new_task::new_task;

/// How long a job may stay unclaimed; no test waits for it.
const CHECK_AFTER_MS: u64 = 10_000;

/// A first attempt that runs, whoever has it.
pub(crate) const RUNNING: Guard =
    Guard { state: CallState::Running, attempt: 1, worker: None, claim: None, cancel_requested: None };

pub(crate) struct Fixture {
    pub(crate) store: Store,
    tenant: Tenant,
    /// Connections of the test itself.
    pub(crate) db: PgPool,
    database: Database,
}

impl Fixture {
    pub(crate) async fn open() -> Self {
        let database = Database::create().await;
        let store = connect(&database, Purpose::Dispatch).await;
        let db = PgPoolOptions::new().max_connections(4).connect_lazy(database.url()).unwrap();
        Self { store, tenant: Tenant::default(), db, database }
    }

    /// Returns the store as the tenant of the tests sees it.
    pub(crate) const fn own(&self) -> TenantStore<'_> {
        self.store.of(&self.tenant)
    }

    /// Opens another dispatcher's connections.
    pub(crate) async fn another_store(&self) -> Store {
        connect(&self.database, Purpose::Dispatch).await
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
        plan: impl FnMut(Locked) -> Option<TaskTransition>,
    ) -> Result<Advanced, StoreError> {
        advance(&self.store, tasks.as_ref(), true, plan).await
    }

    pub(crate) async fn start(&self, task: TaskId) -> Advanced {
        self.start_with(task, &[]).await
    }

    /// Starts a task that asks for these calls.
    pub(crate) async fn start_with(&self, task: TaskId, calls: &[NewCall]) -> Advanced {
        let plan = |task: Locked| Some(TaskTransition { calls: calls.to_vec(), ..started(&task) });
        let advanced = self.advance([task], plan).await.unwrap();
        assert_eq!(advanced.tasks(), [task], "it may start");
        advanced
    }

    /// Wakes a running task, and ends it.
    pub(crate) async fn end(&self, task: TaskId) -> Advanced {
        self.own().cancel_task(task).await.unwrap();
        let plan = |task: Locked| Some(ended(&task, TaskState::Cancelled, TaskCode::Cancelled));
        let advanced = self.advance([task], plan).await.unwrap();
        assert_eq!(advanced.tasks(), [task], "it had not ended");
        advanced
    }

    /// Returns the inbox of a task, which continues.
    pub(crate) async fn received(&self, task: TaskId) -> Vec<InboxItem> {
        let mut seen = Vec::new();
        let advanced = self.advance([task], |task| {
            seen.extend(task.inbox.iter().cloned());
            Some(stepped(&task, Vec::new()))
        });
        advanced.await.unwrap();
        seen
    }

    /// Claims the first attempt of a call of the tool of [`bare_call`].
    pub(crate) async fn claim(&self, call: CallId) {
        let (worker, job) = ("worker-1".parse().unwrap(), JobRef { call, attempt: 1 });
        let (claim, not_after) = (ClaimId::generate(), chrono::Utc::now() + chrono::TimeDelta::hours(1));
        let claim = Claim { job, claim, worker, tool: bare_call().tool, not_after };
        assert_eq!(self.store.claim(&[claim], 60_000).await.unwrap().len(), 1, "it is ready");
    }

    pub(crate) async fn apply(&self, transition: Transition) -> CallFacts {
        self.store.apply(&[transition]).await.unwrap().pop().expect("the guard holds")
    }

    /// Claims the first attempt of a call, which ends like this.
    pub(crate) async fn run(&self, call: CallId, state: CallState, result: Result<String, Failure>) {
        self.claim(call).await;
        let failure = result.as_ref().err().cloned();
        let attempt = Some(EndedAttempt { duration_ms: None, result });
        self.apply(Transition { call, guard: RUNNING, change: Change::End { state, failure, attempt } }).await;
    }

    /// Cancels a call that is ready.
    pub(crate) async fn cancel(&self, call: CallId) {
        let guard = Guard { state: CallState::Ready, attempt: 0, ..RUNNING };
        let failure = Some(Failure::new(ErrorClass::Cancelled, "cancelled"));
        let change = Change::End { state: CallState::Cancelled, failure, attempt: None };
        self.apply(Transition { call, guard, change }).await;
    }

    pub(crate) async fn state(&self, task: TaskId) -> TaskState {
        self.text("SELECT state FROM tasks WHERE id = $1", task).await.parse().unwrap()
    }

    /// Reads one text of a task, by a statement of the test.
    pub(crate) async fn text(&self, statement: &'static str, task: TaskId) -> String {
        sqlx::query_scalar(statement).bind(task.0).fetch_one(&self.db).await.unwrap()
    }

    pub(crate) async fn count(&self, statement: &'static str) -> i64 {
        sqlx::query_scalar(statement).fetch_one(&self.db).await.unwrap()
    }

    /// Waits until a statement waits for a lock that the test holds.
    pub(crate) async fn waits_for_lock(&self) {
        until("a statement waits for a lock", async || {
            let waiting = "SELECT count(*) FROM pg_stat_activity
                           WHERE datname = current_database() AND wait_event_type = 'Lock'";
            (self.count(waiting).await > 0).then_some(())
        })
        .await;
    }

    /// Counts the items in all inboxes.
    pub(crate) async fn inbox(&self) -> i64 {
        self.count("SELECT count(*) FROM task_inbox").await
    }
}

pub(crate) async fn connect(database: &Database, purpose: Purpose) -> Store {
    let config = StoreConfig { url: database.url().to_owned(), connections: 4, purpose };
    Store::connect(&config).await.unwrap()
}

#[derive(Clone, Debug)]
pub(crate) struct Locked {
    record: TaskRecord,
    pub(crate) messages: Vec<StoredMessage>,
}

impl Locked {
    pub(crate) const fn without_messages(record: TaskRecord) -> Self {
        Self { record, messages: Vec::new() }
    }
}

impl Deref for Locked {
    type Target = TaskRecord;

    fn deref(&self) -> &TaskRecord {
        &self.record
    }
}

#[derive(Debug)]
pub(crate) struct Advanced {
    pub(crate) transitions: Vec<TaskTransition>,
    /// Tasks whose turn it is now.
    pub(crate) next: Vec<TaskId>,
}

impl Advanced {
    pub(crate) fn tasks(&self) -> Vec<TaskId> {
        self.transitions.iter().map(|transition| transition.task).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.transitions.is_empty()
    }
}

/// Locks tasks, plans them by a closure, and commits; plans again after a failure that passes by itself. Tasks that must
/// wait are not planned by the closure, and are not among what was committed.
pub(crate) async fn advance(
    store: &Store,
    tasks: &[TaskId],
    wait: bool,
    mut plan: impl FnMut(Locked) -> Option<TaskTransition>,
) -> Result<Advanced, StoreError> {
    loop {
        match advance_once(store, tasks, wait, &mut plan).await {
            Err(error) if error.is_transient() => {}
            done => return done,
        }
    }
}

async fn advance_once(
    store: &Store,
    tasks: &[TaskId],
    wait: bool,
    plan: &mut impl FnMut(Locked) -> Option<TaskTransition>,
) -> Result<Advanced, StoreError> {
    let mut locked = store.lock_tasks(tasks, wait).await?;
    let records = locked.take_records();
    let ids: Vec<TaskId> = records.iter().map(|record| record.id).collect();
    let reach = whole();
    let wanted: Vec<(TaskId, &Reach)> = ids.iter().map(|id| (*id, &reach)).collect();
    let mut conversations = locked.conversations(store, &wanted).await?;
    let with_messages = |record: TaskRecord| {
        let read = conversations.remove(&record.id).unwrap();
        let messages = read.messages.into_iter().map(|read| read.stored).collect();
        Locked { record, messages }
    };
    let (waiting, plannable): (Vec<Locked>, Vec<Locked>) = records.into_iter().map(with_messages).partition(must_wait);
    let waiting: Vec<TaskTransition> = waiting.iter().map(waits).collect();
    let transitions: Vec<TaskTransition> = plannable.into_iter().filter_map(plan).collect();
    let next = locked.commit(store, &transitions.iter().chain(&waiting).collect::<Vec<_>>(), CHECK_AFTER_MS).await?;
    Ok(Advanced { transitions, next })
}

/// Returns the reach of a whole conversation of a test.
fn whole() -> Reach {
    Reach {
        shown_bytes: 1 << 20,
        stored_bytes: 1 << 20,
        message_bytes: 1,
        result_bytes: 1 << 20,
        old_result_bytes: 1 << 20,
        hidden: Vec::new(),
    }
}

/// Decides it as the engine does.
fn must_wait(task: &Locked) -> bool {
    let cancelled = task.inbox.iter().any(|item| matches!(item, InboxItem::Cancel));
    task.state == TaskState::Waiting && task.start.is_none() && !cancelled
}

/// Makes the transition of a task that must wait.
fn waits(task: &Locked) -> TaskTransition {
    TaskTransition {
        status: TaskStatus::Waiting { wake_at: task.read_at + chrono::TimeDelta::seconds(1) },
        progress: "null".to_owned(),
        steps: Vec::new(),
        ..stepped(task, Vec::new())
    }
}

/// Fails for tasks that must not be planned.
#[expect(clippy::needless_pass_by_value, reason = "has the form of a plan")]
pub(crate) fn no_plan(task: Locked) -> Option<TaskTransition> {
    panic!("there is nothing to plan for {task:?}")
}

/// Continues a task unchanged, with one step.
pub(crate) fn stepped(task: &Locked, messages: Vec<(u32, Message)>) -> TaskTransition {
    let decisions = messages.iter().map(|(seq, _)| TaskDecision::Message { seq: *seq }).collect();
    let step = TaskStep { step: task.last_step + 1, at: task.read_at, input: TaskInput::Woken, decisions };
    TaskTransition {
        task: task.id,
        last_step: task.last_step,
        starts: task.start.is_some(),
        status: TaskStatus::Running { wake_at: Some(task.read_at + chrono::TimeDelta::hours(1)) },
        progress: format!(r#"{{"of": "{}"}}"#, task.id),
        turns: 1,
        tool_calls: 2,
        corrections: 3,
        usage: Usage {
            input_tokens: 4,
            output_tokens: 5,
            cost_micros: Some(6),
            estimated_input_tokens: 1,
            estimated_output_tokens: 2,
            estimated_cost_micros: 3,
            turns_without_price: 1,
        },
        messages,
        steps: vec![step],
        calls: Vec::new(),
        offers: Vec::new(),
        effects: Vec::new(),
    }
}

/// Starts a task with the instructions, if they are new, and the user's text.
pub(crate) fn started(task: &Locked) -> TaskTransition {
    let start = task.start.as_ref().expect("it may start");
    let mut messages = Vec::new();
    let mut seq = start.next_seq;
    if start.system.is_none() {
        messages.push((seq, Message::text(Role::System, "Be kind.")));
        seq += 1;
    }
    messages.push((seq, Message::text(Role::User, task.input.clone())));
    stepped(task, messages)
}

pub(crate) fn ended(task: &Locked, state: TaskState, code: TaskCode) -> TaskTransition {
    let outcome = TaskOutcome { state, code, message: None, answer: None };
    TaskTransition { status: TaskStatus::Ended(outcome), ..stepped(task, Vec::new()) }
}

/// Ends a task with an answer behind all messages.
pub(crate) fn answered(task: &Locked) -> TaskTransition {
    let seq = task.messages.last().map_or(1, |message| message.seq + 1);
    let (state, code, answer) = (TaskState::Succeeded, TaskCode::Answered, Some("Done.".to_owned()));
    let outcome = TaskOutcome { state, code, message: None, answer };
    let answer = Message::text(Role::Assistant, "Done.");
    TaskTransition { status: TaskStatus::Ended(outcome), ..stepped(task, vec![(seq, answer)]) }
}

pub(crate) fn new_call(task: TaskId, turn: u32, call_index: u32) -> NewCall {
    NewCall { task: Some(TaskCall { task, turn, call_index }), ..bare_call() }
}

pub(crate) fn bare_call() -> NewCall {
    NewCall {
        submitted_by: None,
        id: CallId::generate(),
        tool: "get_weather".to_owned(),
        pool: "default".to_owned(),
        effect: ToolEffect::Idempotent,
        tenant: "default".to_owned(),
        key: None,
        content: None,
        conversation: Some("c".to_owned()),
        arguments: r#"{"city": "Paris"}"#.to_owned(),
        tool_version: None,
        repairs: Vec::new(),
        undeclared: Vec::new(),
        help: None,
        timeout_ms: 1_000,
        retry: None,
        notify: false,
        traceparent: None,
        deadline_ms: 60_000,
        refusal: None,
        redrive_of: None,
        task: None,
        consumer: Some("default".to_owned()),
    }
}

pub(crate) fn hour_before(time: Time) -> Time {
    time - chrono::TimeDelta::hours(1)
}
