//! Locked tasks: from their lock to the commit of what was planned for them.

use std::collections::{HashMap, HashSet};

use redial_proto::{TaskId, TaskState};
use redial_records::{InboxItem, Reach, ReadConversation, TaskRecord, TaskTransition, Time};
use uuid::Uuid;

use super::{
    commit::{self, Commit},
    inbox,
    messages::{self, ConversationCall, Found, Room, Wanted},
    row, start,
    write::{TaskWrite, Unplanned},
};
use crate::{
    StoreError,
    connect::{Store, Transaction},
};

/// Tasks that are locked until the commit. Dropping this instead leaves everything as it was.
#[derive(Debug)]
pub struct LockedTasks {
    transaction: Transaction,
    now: Time,
    records: Vec<TaskRecord>,
    /// Tasks with items that there was no room for.
    left: Vec<TaskId>,
    tasks: HashMap<TaskId, Locked>,
    unplanned: Unplanned,
    /// Bytes of conversations that were read.
    read_bytes: u64,
}

/// Bytes of conversations that one transaction reads; as many of results in inboxes, and of results that models read on in.
const ROOM: u64 = 4 * 1024 * 1024;

/// What the other statements need of a locked task.
#[derive(Debug)]
struct Locked {
    tenant: String,
    conversation: String,
    /// The items of its inbox.
    received: Vec<i64>,
}

impl Store {
    /// Locks tasks and reads those among them that have something in their inbox or whose time has come. Tasks that
    /// another transaction has locked are waited for, or left out unless `wait`. A transaction reads a few MB of results, in the
    /// order of the tasks, and one at least; what is behind them is for a later one: see [`LockedTasks::take_left`].
    ///
    /// A task with a row or an inbox that cannot be read is an error: the caller tries the others without it.
    ///
    /// Rows stay locked until the commit, so the caller must not wait for anything else until then.
    pub async fn lock_tasks(&self, tasks: &[TaskId], wait: bool) -> Result<LockedTasks, StoreError> {
        let ids: Vec<Uuid> = tasks.iter().map(|task| task.0).collect();
        self.run(async {
            let mut transaction = self.begin().await?;
            let mut rows = row::lock(&mut transaction, &ids, wait).await?;
            if rows.len() < ids.len() {
                inbox::delete_orphans(&mut transaction, &ids).await?;
            }
            let order: HashMap<Uuid, usize> = ids.iter().copied().zip(0..).collect();
            rows.sort_by_key(|row| order.get(&row.id.0).copied());
            let inboxes = inbox::read(&mut transaction, &rows, ROOM).await?;
            let mut locked = LockedTasks::new(transaction, inboxes.now);
            locked.fill(rows, inboxes.received, &inboxes.left).await?;
            Ok(locked)
        })
        .await
    }
}

impl LockedTasks {
    fn new(transaction: Transaction, now: Time) -> Self {
        let (records, left, tasks) = (Vec::new(), Vec::new(), HashMap::new());
        Self { transaction, now, records, left, tasks, unplanned: Unplanned::default(), read_bytes: 0 }
    }

    /// Sorts the locked tasks: those to plan for, those that ended, and those of which items are `left`.
    async fn fill(
        &mut self,
        rows: Vec<TaskRecord>,
        received: Vec<inbox::Received>,
        left: &HashSet<TaskId>,
    ) -> Result<(), sqlx::Error> {
        let mut by_task = HashMap::<TaskId, (Vec<i64>, Vec<InboxItem>)>::new();
        for one in received {
            let (ids, items) = by_task.entry(one.task).or_default();
            ids.push(one.id);
            items.push(one.item);
        }
        let mut due: Vec<(TaskRecord, Vec<i64>)> = Vec::new();
        let mut begun = Vec::new();
        for mut record in rows {
            let (received, items) = by_task.remove(&record.id).unwrap_or_default();
            record.inbox = items;
            if left.contains(&record.id) {
                if received.is_empty() {
                    self.left.push(record.id);
                    continue;
                }
                begun.push(record.id);
            }
            if !received.is_empty() || record.wake_at.is_some_and(|at| at <= self.now) {
                due.push((record, received));
            }
        }
        self.left.extend(begun);
        let waiting: Vec<&TaskRecord> =
            due.iter().map(|(record, _)| record).filter(|record| wants_to_start(record)).collect();
        let mut starts = start::may_start(&mut self.transaction, &waiting).await?;
        // What ran before them may have ended after the inboxes were read.
        self.now = starts.now.unwrap_or(self.now);
        for (mut record, received) in due {
            (record.start, record.read_at) = (starts.tasks.remove(&record.id), self.now);
            self.sort(record, received);
        }
        Ok(())
    }

    fn sort(&mut self, record: TaskRecord, received: Vec<i64>) {
        if record.state.is_terminal() {
            if record.inbox.iter().any(|item| matches!(item, InboxItem::Start)) {
                self.unplanned.skipped.push(record.id.0);
            }
            self.unplanned.received.extend(received);
        } else {
            let (tenant, conversation) = (record.tenant.clone(), record.conversation.clone());
            self.tasks.insert(record.id, Locked { tenant, conversation, received });
            self.records.push(record);
        }
    }

    /// Takes the tasks that there is something to plan for.
    pub fn take_records(&mut self) -> Vec<TaskRecord> {
        std::mem::take(&mut self.records)
    }

    /// Takes the tasks with items that this transaction has no room for, those first of which it took none. Of the others it took the
    /// first items. All stay due.
    pub fn take_left(&mut self) -> Vec<TaskId> {
        std::mem::take(&mut self.left)
    }

    /// Reads the newest part of the conversations of these locked tasks, as far as the reach of each says. A
    /// transaction reads a few MB: conversations that there is no room for are not among the answer, and their tasks
    /// belong to a later transaction. One conversation at least is read.
    pub async fn conversations(
        &mut self,
        store: &Store,
        wanted: &[(TaskId, &Reach)],
    ) -> Result<HashMap<TaskId, ReadConversation>, StoreError> {
        let of: Vec<(TaskId, Wanted<'_>)> = wanted
            .iter()
            .filter_map(|(task, reach)| {
                let (tenant, conversation) = self.tasks.get(task)?.conversation_key();
                Some((*task, Wanted { tenant, conversation, reach }))
            })
            .collect();
        let (tasks, of): (Vec<TaskId>, Vec<Wanted<'_>>) = of.into_iter().unzip();
        let room = Room { bytes: ROOM.saturating_sub(self.read_bytes), for_first: self.read_bytes == 0 };
        let began = self.transaction.began();
        let read = store.run_since(began, messages::conversations(&mut self.transaction, &of, room)).await?;
        self.read_bytes += read.iter().flatten().map(ReadConversation::bytes).sum::<u64>();
        Ok(tasks.into_iter().zip(read).filter_map(|(task, read)| Some((task, read?))).collect())
    }

    /// Reads the contents of the messages that answer these calls, as far as there are any; calls by their ids in the
    /// conversation of a locked task. A few MB are read at once: tasks that there is no room for are not among the
    /// answer, and belong to a later transaction. What one task needs is read in any case.
    pub async fn results(
        &mut self,
        store: &Store,
        calls: &[(TaskId, Vec<String>)],
    ) -> Result<HashMap<TaskId, HashMap<String, String>>, StoreError> {
        let (mut known, mut of) = (Vec::new(), Vec::new());
        for (position, (task, calls)) in (0..).zip(calls) {
            let Some(Locked { tenant, conversation, .. }) = self.tasks.get(task) else { continue };
            known.extend(calls.iter().map(|call| (*task, call)));
            of.extend(calls.iter().map(|call| ConversationCall { tenant, conversation, call, task: position }));
        }
        let began = self.transaction.began();
        let results = store.run_since(began, messages::results(&mut self.transaction, &of, ROOM)).await?;
        let mut read: HashMap<TaskId, HashMap<String, String>> =
            calls.iter().map(|(task, _)| (*task, HashMap::new())).collect();
        for ((task, call), result) in known.into_iter().zip(results) {
            match result {
                Found::Content(content) => {
                    read.entry(task).or_default().insert(call.clone(), content);
                }
                Found::NoRoom => drop(read.remove(&task)),
                Found::Nothing => {}
            }
        }
        Ok(read)
    }

    /// Writes transitions of locked tasks, and commits; returns the tasks whose turn it is now in their conversations,
    /// because others ended. What is in the inbox of a task without a transition stays there, and so it stays due.
    ///
    /// `check_after_ms`: how long the job of a new call may stay unclaimed before the sweeper checks it.
    pub async fn commit(
        mut self,
        store: &Store,
        transitions: &[&TaskTransition],
        check_after_ms: u64,
    ) -> Result<Vec<TaskId>, StoreError> {
        if transitions.iter().any(|one| !one.calls.is_empty()) {
            store.clock.check()?;
        }
        let mut writes = Vec::with_capacity(transitions.len());
        for transition in transitions.iter().copied() {
            let Some(locked) = self.tasks.get(&transition.task) else {
                let what = format!("a transition of task {}, which is not locked", transition.task);
                return Err(StoreError::BadData(what));
            };
            self.unplanned.received.extend(&locked.received);
            let (tenant, conversation) = locked.conversation_key();
            writes.push(TaskWrite { transition, tenant, conversation });
        }
        let commit = Commit { now: self.now, writes, unplanned: &self.unplanned, check_after_ms };
        let mut transaction = self.transaction;
        store
            .run_since(transaction.began(), async move {
                let next = commit::write(&mut transaction, &commit).await?;
                transaction.commit().await?;
                Ok(next)
            })
            .await
    }
}

impl Locked {
    fn conversation_key(&self) -> (&str, &str) {
        (&self.tenant, &self.conversation)
    }
}

/// True if it waits, and its user does not want it stopped.
fn wants_to_start(record: &TaskRecord) -> bool {
    let cancelled = record.inbox.iter().any(|item| matches!(item, InboxItem::Cancel));
    record.state == TaskState::Waiting && !cancelled
}
