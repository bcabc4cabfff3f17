//! Old conversations are forgotten whole, or not at all.

use redial_proto::{CallState, ErrorClass, Failure, TaskId};
use redial_records::{Change, Guard, NewCall, Transition};

use crate::desk::{Desk, bare_call, new_call};

/// A task of a conversation that has ended with its call.
async fn past_task(desk: &Desk, conversation: &str) -> TaskId {
    let task = desk.submit(conversation).await;
    let call = new_call(task, 1, 0);
    desk.start_with(task, std::slice::from_ref(&call)).await;
    cancel(desk, &call).await;
    desk.end(task).await;
    task
}

async fn cancel(desk: &Desk, call: &NewCall) {
    let guard = Guard { state: CallState::Ready, attempt: 0, worker: None, claim: None, cancel_requested: None };
    let failure = Some(Failure::new(ErrorClass::Cancelled, "cancelled"));
    let change = Change::End { state: CallState::Cancelled, failure, attempt: None };
    let transition = Transition { call: call.id, guard, change };
    assert_eq!(desk.store.apply(&[transition]).await.unwrap().len(), 1);
}

/// Rows of a task, by table.
async fn left(desk: &Desk, task: TaskId) -> [i64; 4] {
    let mut counts = [0; 4];
    for (count, statement) in counts.iter_mut().zip([
        "SELECT count(*)::text FROM tasks WHERE id = $1",
        "SELECT count(*)::text FROM task_steps WHERE task_id = $1",
        "SELECT count(*)::text FROM messages WHERE task_id = $1",
        "SELECT count(*)::text FROM calls WHERE task_id = $1",
    ]) {
        *count = desk.text(statement, task).await.parse().unwrap();
    }
    counts
}

#[tokio::test]
async fn an_old_conversation_goes_with_all_that_belongs_to_it() {
    let desk = Desk::open().await;
    let (first, second) = (past_task(&desk, "old").await, past_task(&desk, "old").await);
    let bare = bare_call();
    desk.store.submit(std::slice::from_ref(&bare), 10_000).await.unwrap();
    cancel(&desk, &bare).await;
    assert_eq!(left(&desk, first).await, [1, 2, 2, 1]);
    let cutoff = desk.store.now().await.unwrap();
    let young = past_task(&desk, "young").await;
    assert_eq!(desk.store.prune(cutoff, 100).await.unwrap(), 3, "two tasks and a bare call");
    assert_eq!((left(&desk, first).await, left(&desk, second).await), ([0; 4], [0; 4]));
    assert_eq!(left(&desk, young).await, [1, 2, 2, 1]);
    assert_eq!(desk.inbox().await, 0, "what came in at last is gone, too");
    assert_eq!(desk.store.prune(cutoff, 100).await.unwrap(), 0);
}

#[tokio::test]
async fn a_conversation_that_goes_on_keeps_everything() {
    let desk = Desk::open().await;
    let mut old = Vec::new();
    for conversation in ["waits", "runs", "ended_late"] {
        old.push(past_task(&desk, conversation).await);
    }
    let cutoff = desk.store.now().await.unwrap();
    desk.submit("waits").await;
    let running = desk.submit("runs").await;
    desk.start(running).await;
    past_task(&desk, "ended_late").await;
    assert_eq!(desk.store.prune(cutoff, 100).await.unwrap(), 0);
    for task in old {
        assert_eq!(left(&desk, task).await, [1, 2, 2, 1]);
    }
}

#[tokio::test]
async fn a_conversation_stays_while_a_call_of_it_runs() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    let call = new_call(task, 1, 1);
    desk.start_with(task, std::slice::from_ref(&call)).await;
    desk.end(task).await;
    let cutoff = desk.store.now().await.unwrap();
    assert_eq!(desk.store.prune(cutoff, 100).await.unwrap(), 0);
    cancel(&desk, &call).await;
    assert_eq!(desk.store.prune(cutoff, 100).await.unwrap(), 1);
    assert_eq!(left(&desk, task).await, [0; 4]);
}

#[tokio::test]
async fn a_batch_is_a_tenth_of_the_limit_in_whole_conversations() {
    let desk = Desk::open().await;
    for conversation in ["a", "a", "b", "c"] {
        past_task(&desk, conversation).await;
    }
    let cutoff = desk.store.now().await.unwrap();
    assert_eq!(desk.store.prune(cutoff, 10).await.unwrap(), 2, "both of the oldest conversation");
    assert_eq!(desk.store.prune(cutoff, 20).await.unwrap(), 2);
    assert_eq!(desk.count("SELECT count(*) FROM messages").await, 0);
}

#[tokio::test]
async fn a_task_that_is_submitted_meanwhile_keeps_its_whole_conversation() {
    let desk = Desk::open().await;
    let old = past_task(&desk, "c").await;
    let cutoff = desk.store.now().await.unwrap();
    let mut holder = desk.db.begin().await.unwrap();
    sqlx::query("SELECT FROM tasks WHERE id = $1 FOR UPDATE").bind(old.0).execute(&mut *holder).await.unwrap();
    let submit = async {
        desk.waits_for_lock().await;
        desk.submit("c").await;
        holder.rollback().await.unwrap();
    };
    let (forgotten, ()) = tokio::join!(desk.store.prune(cutoff, 100), submit);
    assert_eq!(forgotten.unwrap(), 0);
    assert_eq!(left(&desk, old).await, [1, 2, 2, 1]);
}
