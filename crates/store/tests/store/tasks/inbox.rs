//! Items of inboxes are consumed once, and never lost.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use redial_proto::{TaskCode, TaskId, TaskState};
use redial_records::{InboxItem, TaskTransition};

use crate::fixture::{Fixture, advance, ended, no_plan, started, stepped};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_item_is_consumed_once_by_the_first_dispatcher() {
    let fixture = Arc::new(Fixture::open().await);
    let task = fixture.submit("c").await;
    fixture.start(task).await;
    let seen = Arc::new(AtomicU32::new(0));
    let dispatchers = (0..4).map(|_| {
        let (fixture, seen) = (fixture.clone(), seen.clone());
        tokio::spawn(async move {
            for _ in 0..10 {
                fixture.own().cancel_task(task).await.unwrap();
                let advanced = fixture.advance([task], |task| {
                    let turns = u32::try_from(task.inbox.len()).unwrap();
                    Some(TaskTransition { turns, ..stepped(&task, Vec::new()) })
                });
                // Counted after the commit: a plan that was rolled back does not count.
                for one in advanced.await.unwrap().transitions {
                    seen.fetch_add(one.turns, Ordering::SeqCst);
                }
            }
        })
    });
    for dispatcher in dispatchers.collect::<Vec<_>>() {
        dispatcher.await.unwrap();
    }
    assert_eq!(fixture.inbox().await, 0);
    assert_eq!(seen.load(Ordering::SeqCst), 40);
    let steps = fixture.count("SELECT count(*) FROM task_steps").await;
    assert_eq!(fixture.count("SELECT last_step::bigint FROM tasks").await, steps);
}

#[tokio::test]
async fn a_waiting_task_can_be_cancelled_and_the_next_one_is_woken() {
    let fixture = Fixture::open().await;
    let (first, second, third) = (fixture.submit("c").await, fixture.submit("c").await, fixture.submit("c").await);
    fixture.start(first).await;
    assert!(fixture.advance([second, third], no_plan).await.unwrap().is_empty());
    assert_eq!(fixture.own().cancel_task(second).await.unwrap(), Some((TaskState::Waiting, true)));
    let advanced = fixture.advance([second], |task| {
        assert!(task.start.is_none() && matches!(task.inbox.as_slice(), [InboxItem::Cancel]), "{task:?}");
        Some(ended(&task, TaskState::Cancelled, TaskCode::Cancelled))
    });
    assert_eq!(advanced.await.unwrap().next, [third]);
    assert!(fixture.text("SELECT (started_at IS NULL)::text FROM tasks WHERE id = $1", second).await == "true");
    // The first one still runs, so the third one stays waiting, although its inbox holds a start.
    assert!(fixture.advance([third], no_plan).await.unwrap().is_empty());
    assert_eq!(fixture.end(first).await.next, [third]);
    let start = fixture.start(third).await;
    assert_eq!(start.transitions[0].messages[0].0, 3, "the cancelled one wrote nothing");
}

/// Its inbox is read, and then the task before it ends.
#[tokio::test]
async fn a_task_is_on_record_as_started_after_the_end_of_the_one_before_it() {
    let fixture = Fixture::open().await;
    let (first, second) = (fixture.submit("c").await, fixture.submit("c").await);
    fixture.start(first).await;
    let another = fixture.another_store().await;
    let mut holder = fixture.db.begin().await.unwrap();
    // Only whether a task may start is looked up there.
    sqlx::query("LOCK TABLE tombstones IN ACCESS EXCLUSIVE MODE").execute(&mut *holder).await.unwrap();
    let waiting = [second];
    let starts = advance(&another, &waiting, true, |task| Some(started(&task)));
    let ends = async {
        fixture.waits_for_lock().await;
        fixture.end(first).await;
        holder.rollback().await.unwrap();
    };
    let (advanced, ()) = tokio::join!(starts, ends);
    assert_eq!(advanced.unwrap().tasks(), [second]);
    let times = "SELECT max(started_at) >= min(finished_at) FROM tasks";
    assert!(sqlx::query_scalar::<_, bool>(times).fetch_one(&fixture.db).await.unwrap());
}

#[tokio::test]
async fn a_cancel_of_a_waiting_task_that_may_start_does_not_start_it() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    fixture.own().cancel_task(task).await.unwrap();
    let advanced = fixture.advance([task], |task| {
        assert!(task.start.is_none() && task.inbox.len() == 2, "{task:?}");
        Some(ended(&task, TaskState::Cancelled, TaskCode::Cancelled))
    });
    assert_eq!(advanced.await.unwrap().tasks(), [task]);
    assert_eq!(fixture.inbox().await, 0);
}

#[tokio::test]
async fn a_late_item_is_consumed_without_effect() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    fixture.start(task).await;
    fixture.end(task).await;
    assert_eq!(fixture.own().cancel_task(task).await.unwrap(), Some((TaskState::Cancelled, false)));
    assert_eq!(fixture.inbox().await, 0, "an ended task gets no cancel");
    let late = "INSERT INTO task_inbox (task_id, kind) VALUES ($1, 'cancel'), ($2, 'cancel')";
    let gone = TaskId::generate();
    sqlx::query(late).bind(task.0).bind(gone.0).execute(&fixture.db).await.unwrap();
    let due = fixture.store.due_tasks(10, &[]).await.unwrap();
    assert_eq!(due.len(), 2);
    assert!(fixture.advance(&due, no_plan).await.unwrap().is_empty());
    assert_eq!(fixture.inbox().await, 0);
    assert_eq!(fixture.own().cancel_task(gone).await.unwrap(), None);
}

#[tokio::test]
async fn a_start_of_an_ended_task_moves_to_the_next() {
    let fixture = Fixture::open().await;
    let (first, second) = (fixture.submit("c").await, fixture.submit("c").await);
    fixture.start(first).await;
    assert!(fixture.advance([second], no_plan).await.unwrap().is_empty());
    fixture.end(first).await;
    // As if the end of the first had started a task that ended at the same time.
    let told = "UPDATE task_inbox SET task_id = $1 WHERE task_id = $2";
    let moved = sqlx::query(told).bind(first.0).bind(second.0).execute(&fixture.db).await.unwrap();
    assert_eq!(moved.rows_affected(), 1);
    assert!(fixture.advance([first], no_plan).await.unwrap().is_empty());
    assert_eq!(fixture.store.due_tasks(10, &[]).await.unwrap(), [second]);
    fixture.start(second).await;
}
