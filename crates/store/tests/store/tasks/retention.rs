//! Old conversations are deleted completely, or not at all.

use redial_proto::TaskId;
use redial_records::{NewCall, Redrive, Time};
use redial_store::{Pruned, Submitted};
use uuid::Uuid;

use crate::fixture::{Fixture, bare_call, new_call};

/// Makes a task of a conversation that has ended with its call.
async fn past_task(fixture: &Fixture, conversation: &str) -> TaskId {
    let task = fixture.submit(conversation).await;
    let call = new_call(task, 1, 0);
    fixture.start_with(task, std::slice::from_ref(&call)).await;
    fixture.cancel(call.id).await;
    fixture.end(task).await;
    task
}

/// Makes one pass over tasks; returns how many were deleted in each step that looked at so many.
async fn pass(fixture: &Fixture, cutoff: Time, limit: u32) -> Vec<u64> {
    let (mut after, mut batches) = (Uuid::nil(), Vec::new());
    loop {
        let pruned = fixture.store.prune_tasks(cutoff, Time::MAX_UTC, after, limit).await.unwrap();
        batches.push(pruned.deleted);
        let Some(last) = pruned.last else { return batches };
        after = last;
    }
}

/// Makes one pass over tasks and one over calls; returns how many of both were deleted.
async fn prune(fixture: &Fixture, cutoff: Time) -> u64 {
    let tasks: u64 = pass(fixture, cutoff, 100).await.iter().sum();
    tasks + fixture.store.prune_calls(cutoff, Time::MAX_UTC, Uuid::nil(), 100).await.unwrap().deleted
}

/// Counts the rows of a task: itself, its steps, messages and calls.
async fn left(fixture: &Fixture, task: TaskId) -> Vec<i64> {
    let counts = "SELECT ARRAY[(SELECT count(*) FROM tasks WHERE id = $1), (SELECT count(*) FROM task_steps WHERE task_id = $1),
                      (SELECT count(*) FROM messages WHERE task_id = $1), (SELECT count(*) FROM calls WHERE task_id = $1)]";
    sqlx::query_scalar(counts).bind(task.0).fetch_one(&fixture.db).await.unwrap()
}

#[tokio::test]
async fn an_old_conversation_is_deleted_with_all_its_rows() {
    let fixture = Fixture::open().await;
    let (first, second) = (past_task(&fixture, "old").await, past_task(&fixture, "old").await);
    let bare = bare_call();
    fixture.store.submit(std::slice::from_ref(&bare), 10_000).await.unwrap();
    fixture.cancel(bare.id).await;
    assert_eq!(left(&fixture, first).await, [1, 2, 2, 1]);
    let cutoff = fixture.store.now().await.unwrap();
    let young = past_task(&fixture, "young").await;
    assert_eq!(prune(&fixture, cutoff).await, 3, "two tasks and a bare call");
    assert_eq!([left(&fixture, first).await, left(&fixture, second).await], [[0; 4]; 2]);
    assert_eq!(left(&fixture, young).await, [1, 2, 2, 1]);
    assert_eq!(fixture.inbox().await, 0, "the last items are deleted, too");
    assert_eq!(prune(&fixture, cutoff).await, 0);
}

#[tokio::test]
async fn a_conversation_that_continues_keeps_everything() {
    let fixture = Fixture::open().await;
    let mut old = Vec::new();
    for conversation in ["waits", "runs", "ended_late"] {
        old.push(past_task(&fixture, conversation).await);
    }
    let task = fixture.submit("calls").await;
    let call = new_call(task, 1, 1);
    fixture.start_with(task, std::slice::from_ref(&call)).await;
    fixture.end(task).await;
    let cutoff = fixture.store.now().await.unwrap();
    fixture.submit("waits").await;
    let running = fixture.submit("runs").await;
    fixture.start(running).await;
    past_task(&fixture, "ended_late").await;
    assert_eq!(prune(&fixture, cutoff).await, 0);
    for task in old {
        assert_eq!(left(&fixture, task).await, [1, 2, 2, 1]);
    }
    // Of one conversation only a call was left.
    fixture.cancel(call.id).await;
    assert_eq!(prune(&fixture, cutoff).await, 1);
    assert_eq!(left(&fixture, task).await, [0; 4]);
}

/// Old tasks of a living conversation are the oldest on record: a pass walks over them once.
#[tokio::test]
async fn a_pass_continues_behind_the_last_task_that_it_looked_at() {
    let fixture = Fixture::open().await;
    let mut living = Vec::new();
    for _ in 0..4 {
        living.push(past_task(&fixture, "living").await);
    }
    let (first, second) = (past_task(&fixture, "old").await, past_task(&fixture, "old").await);
    let cutoff = fixture.store.now().await.unwrap();
    fixture.submit("living").await;
    let batches = pass(&fixture, cutoff, 2).await;
    assert_eq!(batches, [0, 0, 2, 0, 0], "the task that was submitted last is looked at, too");
    assert_eq!([left(&fixture, first).await, left(&fixture, second).await], [[0; 4]; 2]);
    assert_eq!(left(&fixture, living[0]).await, [1, 2, 2, 1]);
}

#[tokio::test]
async fn a_pass_over_calls_continues_behind_the_last_one_too() {
    let fixture = Fixture::open().await;
    let calls: Vec<NewCall> = (0..5).map(|_| bare_call()).collect();
    fixture.store.submit(&calls, 10_000).await.unwrap();
    for call in &calls[3..] {
        fixture.cancel(call.id).await;
    }
    let cutoff = fixture.store.now().await.unwrap();
    let first = fixture.store.prune_calls(cutoff, Time::MAX_UTC, Uuid::nil(), 3).await.unwrap();
    assert_eq!(first, Pruned { deleted: 0, last: Some(calls[2].id.0) }, "those that live are walked over");
    let second = fixture.store.prune_calls(cutoff, Time::MAX_UTC, calls[2].id.0, 3).await.unwrap();
    assert_eq!(second, Pruned { deleted: 2, last: Some(calls[4].id.0) });
}

/// Without its redrive, the call would be redriven once more.
#[tokio::test]
async fn a_redrive_stays_as_long_as_the_call_of_a_task_that_it_runs_again() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("living").await;
    let call = new_call(task, 1, 0);
    fixture.start_with(task, std::slice::from_ref(&call)).await;
    fixture.cancel(call.id).await;
    fixture.end(task).await;
    let again = |of: &NewCall| NewCall { redrive_of: Some(Redrive { call: of.id, origin: call.id }), ..bare_call() };
    let first = again(&call);
    let second = again(&first);
    for redrive in [&first, &second] {
        assert!(matches!(
            fixture.store.submit(std::slice::from_ref(redrive), 10_000).await.unwrap()[..],
            [Submitted::Written]
        ));
        fixture.cancel(redrive.id).await;
    }
    let cutoff = fixture.store.now().await.unwrap();
    let other = fixture.submit("living").await;
    assert_eq!(prune(&fixture, cutoff).await, 0);
    for (of, before) in [(&call, &first), (&first, &second)] {
        let results = fixture.store.submit(&[again(of)], 10_000).await.unwrap();
        assert!(matches!(&results[..], [Submitted::Existing { id, .. }] if *id == before.id), "{results:?}");
    }
    fixture.end(other).await;
    let cutoff = fixture.store.now().await.unwrap();
    assert_eq!(prune(&fixture, cutoff).await, 2 + 2, "both tasks, and the redrives");
    assert_eq!(fixture.count("SELECT count(*) FROM redriven_calls").await, 0);
}

#[tokio::test]
async fn a_task_submitted_during_pruning_keeps_its_whole_conversation() {
    let fixture = Fixture::open().await;
    let old = past_task(&fixture, "c").await;
    let cutoff = fixture.store.now().await.unwrap();
    let mut holder = fixture.db.begin().await.unwrap();
    sqlx::query("SELECT FROM tasks WHERE id = $1 FOR UPDATE").bind(old.0).execute(&mut *holder).await.unwrap();
    let submit = async {
        fixture.waits_for_lock().await;
        fixture.submit("c").await;
        holder.rollback().await.unwrap();
    };
    let (forgotten, ()) = tokio::join!(prune(&fixture, cutoff), submit);
    assert_eq!(forgotten, 0);
    assert_eq!(left(&fixture, old).await, [1, 2, 2, 1]);
}
