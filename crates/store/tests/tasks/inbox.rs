//! What comes in is decided once, and never lost.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use redial_proto::{TaskCode, TaskId, TaskState};
use redial_store::{InboxItem, TaskChange, TaskRow};

use crate::desk::{By, Desk, ended, nobody_asks, stepped};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_item_is_consumed_once_by_whoever_comes_first() {
    let desk = Arc::new(Desk::open().await);
    let task = desk.submit("c").await;
    desk.start(task).await;
    let seen = Arc::new(AtomicU32::new(0));
    let lanes = (0..4).map(|_| {
        let (desk, seen) = (desk.clone(), seen.clone());
        tokio::spawn(async move {
            for _ in 0..10 {
                desk.store.cancel_task(task).await.unwrap();
                let advanced = desk.advance([task], |row| {
                    let turns = u32::try_from(row.inbox.len()).unwrap();
                    Some(TaskChange { turns, ..stepped(&row, TaskState::Running, Vec::new()) })
                });
                // Counted after the commit: a decision that was rolled back does not count.
                for one in advanced.await.unwrap() {
                    seen.fetch_add(one.change.turns, Ordering::SeqCst);
                }
            }
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.unwrap();
    }
    assert_eq!(desk.inbox().await, 0);
    assert_eq!(seen.load(Ordering::SeqCst), 40);
    let steps = desk.count("SELECT count(*) FROM task_steps").await;
    assert_eq!(desk.count("SELECT last_step::bigint FROM tasks").await, steps);
}

#[tokio::test]
async fn a_waiting_task_can_be_cancelled_and_the_next_one_is_told() {
    let desk = Desk::open().await;
    let (first, second, third) = (desk.submit("c").await, desk.submit("c").await, desk.submit("c").await);
    desk.start(first).await;
    assert!(desk.advance([second, third], nobody_asks).await.unwrap().is_empty());
    assert_eq!(desk.store.cancel_task(second).await.unwrap(), Some(TaskState::Waiting));
    let advanced = desk.advance([second], |row| {
        assert!(row.start.is_none() && matches!(row.inbox.as_slice(), [InboxItem::Cancel]), "{row:?}");
        Some(ended(&row, TaskState::Cancelled, TaskCode::Cancelled))
    });
    assert_eq!(advanced.await.unwrap()[0].next, Some(third));
    assert!(desk.text("SELECT (started_at IS NULL)::text FROM tasks WHERE id = $1", second).await == "true");
    // The first one still runs, so the third one, though told, waits on.
    assert!(desk.advance([third], nobody_asks).await.unwrap().is_empty());
    assert_eq!(desk.end(first).await.next, Some(third));
    let start = desk.start(third).await;
    assert_eq!(start.change.messages[0].0, 3, "the cancelled one wrote nothing");
}

#[tokio::test]
async fn a_cancel_of_a_waiting_task_that_may_start_does_not_start_it() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    desk.store.cancel_task(task).await.unwrap();
    let advanced = desk.advance([task], |row| {
        assert!(row.start.is_none() && row.inbox.len() == 2, "{row:?}");
        Some(ended(&row, TaskState::Cancelled, TaskCode::Cancelled))
    });
    assert_eq!(advanced.await.unwrap().len(), 1);
    assert_eq!(desk.inbox().await, 0);
}

#[tokio::test]
async fn what_comes_too_late_is_consumed_without_effect() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    desk.start(task).await;
    desk.end(task).await;
    assert_eq!(desk.store.cancel_task(task).await.unwrap(), Some(TaskState::Cancelled));
    assert_eq!(desk.inbox().await, 0, "an ended task gets no cancel");
    let late = "INSERT INTO task_inbox (task_id, kind) VALUES ($1, 'cancel'), ($2, 'cancel')";
    let gone = TaskId::generate();
    sqlx::query(late).bind(task.0).bind(gone.0).execute(&desk.db).await.unwrap();
    let due = desk.store.due_tasks(10).await.unwrap();
    assert_eq!(due.len(), 2);
    assert!(desk.advance(&due, nobody_asks).await.unwrap().is_empty());
    assert_eq!(desk.inbox().await, 0);
    assert_eq!(desk.store.cancel_task(gone).await.unwrap(), None);
}

#[tokio::test]
async fn a_start_that_an_ended_task_gets_goes_to_the_next() {
    let desk = Desk::open().await;
    let (first, second) = (desk.submit("c").await, desk.submit("c").await);
    desk.start(first).await;
    assert!(desk.advance([second], nobody_asks).await.unwrap().is_empty());
    desk.end(first).await;
    // As if the end of the first had told a task that ended meanwhile.
    let told = "UPDATE task_inbox SET task_id = $1 WHERE task_id = $2";
    let moved = sqlx::query(told).bind(first.0).bind(second.0).execute(&desk.db).await.unwrap();
    assert_eq!(moved.rows_affected(), 1);
    assert!(desk.advance([first], nobody_asks).await.unwrap().is_empty());
    assert_eq!(desk.store.due_tasks(10).await.unwrap(), [second]);
    desk.start(second).await;
}

#[tokio::test]
async fn an_item_that_cannot_be_read_holds_up_its_own_task_only() {
    let desk = Desk::open().await;
    let (task, other) = (desk.submit("a").await, desk.submit("b").await);
    desk.start(task).await;
    // A call that is not on record.
    let item = "INSERT INTO task_inbox (task_id, kind, call_id) VALUES ($1, 'ended', gen_random_uuid())";
    sqlx::query(item).bind(task.0).execute(&desk.db).await.unwrap();
    desk.store.cancel_task(task).await.unwrap();
    let decide = |row: TaskRow| Some(crate::desk::started(&row));
    let advanced = desk.store.advance(&[task, other], true, 1_000, &mut By(decide)).await.unwrap();
    assert_eq!(advanced.iter().map(|one| one.change.id).collect::<Vec<_>>(), [other]);
    assert_eq!(desk.inbox().await, 2, "what follows the unreadable item stays, too");
}
