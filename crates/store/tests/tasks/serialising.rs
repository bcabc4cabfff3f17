//! One task of a conversation at a time, in order, whoever advances them.

use std::collections::HashMap;

use redial_proto::{TaskId, TaskState};
use redial_store::{StoreError, TaskChange, TaskRow};
use redial_testkit::until;

use crate::desk::{By, Desk, answered, nobody_asks, started};

const TASKS: usize = 12;

/// A started task asks for a look at once; the next look ends it.
fn play(row: &TaskRow) -> TaskChange {
    match row.state {
        TaskState::Waiting => TaskChange { wake_at: Some(row.now), ..started(row) },
        _ => answered(row),
    }
}

/// A dispatcher that looks at what is due until all tasks have ended. It waits for locks, as after a poke, or leaves
/// locked tasks out, as a sweep does.
async fn dispatch(desk: &Desk, wait: bool) {
    let store = desk.another_store().await;
    until("all tasks have ended", async || {
        let due = store.due_tasks(8).await.unwrap();
        store.advance(&due, wait, 1_000, &mut By(|row: TaskRow| Some(play(&row)))).await.unwrap();
        let live = desk.count("SELECT count(*) FROM tasks WHERE finished_at IS NULL").await;
        (live == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn tasks_of_a_conversation_run_one_after_the_other_however_many_dispatchers_there_are() {
    let desk = Desk::open().await;
    for n in 0..TASKS {
        desk.submit(if n % 3 == 0 { "b" } else { "a" }).await;
    }
    tokio::join!(dispatch(&desk, true), dispatch(&desk, false), dispatch(&desk, true), dispatch(&desk, false));
    assert_eq!(desk.inbox().await, 0);
    assert_eq!(desk.count("SELECT count(*) FROM tasks WHERE state = 'succeeded' AND last_step = 2").await, 12);
    let overlapping = "SELECT count(*) FROM tasks a JOIN tasks b USING (tenant, conversation)
                       WHERE a.id < b.id AND a.finished_at > b.started_at";
    assert_eq!(desk.count(overlapping).await, 0, "each starts after the one before it has ended");
    let gaps = "SELECT count(*) FROM (SELECT seq, row_number() OVER (PARTITION BY conversation ORDER BY seq) AS n,
                    task_id, lag(task_id) OVER (PARTITION BY conversation ORDER BY seq) AS before
                FROM messages) m WHERE seq <> n OR task_id < before";
    assert_eq!(desk.count(gaps).await, 0, "messages without gaps, in the order of the tasks");
    // A system message for each conversation, a question and an answer for each task.
    assert_eq!(desk.count("SELECT count(*) FROM messages").await, 2 + 2 * i64::try_from(TASKS).unwrap());
}

#[tokio::test]
async fn a_follow_up_waits_for_its_turn_and_finds_what_the_first_left() {
    let desk = Desk::open().await;
    let (first, second) = (desk.submit("c").await, desk.submit("c").await);
    let mut starts = HashMap::<TaskId, _>::new();
    let mut decide = |row: TaskRow| {
        starts.insert(row.id, row.start.clone());
        Some(started(&row))
    };
    let advanced = desk.store.advance(&[second, first], true, 1_000, &mut By(&mut decide)).await.unwrap();
    assert_eq!(advanced.iter().map(|one| one.change.id).collect::<Vec<_>>(), [first], "the older one comes first");
    assert_eq!((desk.state(second).await, desk.inbox().await), (TaskState::Waiting, 0));
    let later = "SELECT (wake_at > clock_timestamp())::text FROM tasks WHERE id = $1";
    assert_eq!(desk.text(later, second).await, "true", "it is looked at again, though nobody tells it");
    assert_eq!(desk.end(first).await.next, Some(second));
    desk.store.advance(&[second], true, 1_000, &mut By(&mut decide)).await.unwrap();
    let start = starts[&second].clone().unwrap();
    assert_eq!((start.next_seq, start.system.as_deref()), (3, Some("Be kind.")));
    assert_eq!(start.carried, Some(format!(r#"{{"of": "{first}"}}"#)));
}

#[tokio::test]
async fn other_conversations_and_tenants_do_not_wait() {
    let desk = Desk::open().await;
    let elsewhere = redial_store::NewTask { tenant: "other".to_owned(), ..crate::desk::new_task("c") };
    desk.store.submit_tasks(std::slice::from_ref(&elsewhere)).await.unwrap();
    let tasks = [desk.submit("c").await, desk.submit("d").await, elsewhere.id];
    let advanced = desk.advance(&tasks, |row| Some(started(&row))).await.unwrap();
    assert_eq!(advanced.len(), 3);
}

#[tokio::test]
async fn a_task_that_starts_beside_another_is_rolled_back_and_waits() {
    let desk = Desk::open().await;
    let (first, second) = (desk.submit("c").await, desk.submit("c").await);
    // The first is started by somebody whom the second does not see yet, and its row is not seen as an older one.
    let mut other = desk.db.begin().await.unwrap();
    sqlx::query("DELETE FROM task_inbox WHERE task_id = $1").bind(first.0).execute(&desk.db).await.unwrap();
    sqlx::query(
        "UPDATE tasks SET wake_at = clock_timestamp(), id = 'ffffffff-ffff-7fff-bfff-ffffffffffff' WHERE id = $1",
    )
    .bind(first.0)
    .execute(&desk.db)
    .await
    .unwrap();
    let start = "UPDATE tasks SET state = 'running', started_at = clock_timestamp() WHERE id > $1";
    sqlx::query(start).bind(second.0).execute(&mut *other).await.unwrap();
    let mut decided = 0;
    let advancing = desk.advance([second], |row| {
        decided += 1;
        Some(started(&row))
    });
    let commit = async {
        desk.waits_for_lock().await;
        other.commit().await.unwrap();
    };
    let (advanced, ()) = tokio::join!(advancing, commit);
    assert!(advanced.unwrap().is_empty());
    assert_eq!(decided, 1, "decided once in vain, and then it had to wait");
    assert_eq!((desk.state(second).await, desk.inbox().await), (TaskState::Waiting, 0));
    assert_eq!(desk.count("SELECT count(*) FROM messages").await, 0);
}

#[tokio::test]
async fn the_guard_is_a_race_to_decide_again_and_no_failure() {
    let desk = Desk::open().await;
    let (first, second) = (desk.submit("c").await, desk.submit("c").await);
    desk.start(first).await;
    let start = "UPDATE tasks SET state = 'running' WHERE id = $1";
    let refused = sqlx::query(start).bind(second.0).execute(&desk.db).await.unwrap_err();
    assert!(StoreError::from(refused).is_transient());
    assert!(desk.advance([second], nobody_asks).await.unwrap().is_empty());
}
