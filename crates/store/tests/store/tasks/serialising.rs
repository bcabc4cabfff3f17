//! One task of a conversation at a time, in order, whichever dispatcher advances them.

use std::collections::HashMap;

use redial_proto::{TaskId, TaskState};
use redial_records::{NewTask, TaskStatus, TaskTransition};
use redial_testkit::until;

use crate::fixture::{Fixture, Locked, advance, answered, new_task, started};

const TASKS: usize = 12;

/// Plans a started task to be due again at once; ends it at the next plan.
fn play(task: &Locked) -> TaskTransition {
    match task.state {
        TaskState::Waiting => {
            TaskTransition { status: TaskStatus::Running { wake_at: Some(task.read_at) }, ..started(task) }
        }
        _ => answered(task),
    }
}

/// Advances what is due, as a dispatcher, until all tasks have ended. It waits for locks, as after a wake, or leaves
/// locked tasks out, as a sweep does.
async fn dispatch(fixture: &Fixture, wait: bool) {
    let store = fixture.another_store().await;
    until("all tasks have ended", async || {
        let due = store.due_tasks(8, &[]).await.unwrap();
        advance(&store, &due, wait, |task| Some(play(&task))).await.unwrap();
        let live = fixture.count("SELECT count(*) FROM tasks WHERE finished_at IS NULL").await;
        (live == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn tasks_of_a_conversation_run_one_after_the_other_however_many_dispatchers_there_are() {
    let fixture = Fixture::open().await;
    for n in 0..TASKS {
        fixture.submit(if n % 3 == 0 { "b" } else { "a" }).await;
    }
    tokio::join!(
        dispatch(&fixture, true),
        dispatch(&fixture, false),
        dispatch(&fixture, true),
        dispatch(&fixture, false)
    );
    assert_eq!(fixture.inbox().await, 0);
    assert_eq!(fixture.count("SELECT count(*) FROM tasks WHERE state = 'succeeded' AND last_step = 2").await, 12);
    let overlapping = "SELECT count(*) FROM tasks a JOIN tasks b USING (tenant, conversation)
                       WHERE a.id < b.id AND a.finished_at > b.started_at";
    assert_eq!(fixture.count(overlapping).await, 0, "each starts after the one before it has ended");
    let gaps = "SELECT count(*) FROM (SELECT seq, row_number() OVER (PARTITION BY conversation ORDER BY seq) AS n,
                    task_id, lag(task_id) OVER (PARTITION BY conversation ORDER BY seq) AS before
                FROM messages) m WHERE seq <> n OR task_id < before";
    assert_eq!(fixture.count(gaps).await, 0, "messages without gaps, in the order of the tasks");
    // A system message for each conversation, a question and an answer for each task.
    assert_eq!(fixture.count("SELECT count(*) FROM messages").await, 2 + 2 * i64::try_from(TASKS).unwrap());
}

#[tokio::test]
async fn a_follow_up_waits_for_its_turn_and_finds_what_the_first_left() {
    let fixture = Fixture::open().await;
    let (first, second) = (fixture.submit("c").await, fixture.submit("c").await);
    let mut starts = HashMap::<TaskId, _>::new();
    let mut decide = |task: Locked| {
        starts.insert(task.id, task.start.clone());
        Some(started(&task))
    };
    let due = "SELECT wake_at::text FROM tasks WHERE id = $1";
    let before = fixture.text(due, second).await;
    let advanced = fixture.advance([second, first], &mut decide).await.unwrap();
    assert_eq!(advanced.tasks(), [first], "the older one comes first");
    assert_eq!((fixture.state(second).await, fixture.inbox().await), (TaskState::Waiting, 0));
    assert!(fixture.text(due, second).await > before, "it is due again later, also without an item");
    assert_eq!(fixture.end(first).await.next, [second]);
    fixture.advance([second], &mut decide).await.unwrap();
    let start = starts[&second].clone().unwrap();
    assert_eq!((start.next_seq, start.system.as_deref()), (3, Some("Be kind.")));
    assert_eq!(start.carried, Some(format!(r#"{{"of": "{first}"}}"#)));
}

#[tokio::test]
async fn other_conversations_and_tenants_do_not_wait() {
    let fixture = Fixture::open().await;
    let elsewhere = redial_records::NewTask { tenant: "other".to_owned(), ..crate::fixture::new_task("c") };
    fixture.store.submit_tasks(std::slice::from_ref(&elsewhere)).await.unwrap();
    let tasks = [fixture.submit("c").await, fixture.submit("d").await, elsewhere.id];
    let advanced = fixture.advance(&tasks, |task| Some(started(&task))).await.unwrap();
    assert_eq!(advanced.tasks().len(), 3);
}

#[tokio::test]
async fn a_task_that_starts_beside_another_is_rolled_back_and_waits() {
    let fixture = Fixture::open().await;
    let (first, second) = (fixture.submit("c").await, fixture.submit("c").await);
    // The first is started by a transaction that the second does not see yet, and its row is not seen as an older one.
    let mut other = fixture.db.begin().await.unwrap();
    sqlx::query("DELETE FROM task_inbox WHERE task_id = $1").bind(first.0).execute(&fixture.db).await.unwrap();
    let later =
        "UPDATE tasks SET wake_at = clock_timestamp(), submitted_at = submitted_at + interval '1 h' WHERE id = $1";
    sqlx::query(later).bind(first.0).execute(&fixture.db).await.unwrap();
    let start = "UPDATE tasks SET state = 'running', started_at = clock_timestamp() WHERE id = $1";
    sqlx::query(start).bind(first.0).execute(&mut *other).await.unwrap();
    let mut decided = 0;
    let advancing = fixture.advance([second], |task| {
        decided += 1;
        Some(started(&task))
    });
    let commit = async {
        fixture.waits_for_lock().await;
        other.commit().await.unwrap();
    };
    let (advanced, ()) = tokio::join!(advancing, commit);
    assert!(advanced.unwrap().is_empty());
    assert_eq!(decided, 1, "planned once without effect, and then it had to wait");
    assert_eq!((fixture.state(second).await, fixture.inbox().await), (TaskState::Waiting, 0));
    assert_eq!(fixture.count("SELECT count(*) FROM messages").await, 0);
}

/// Makes the id of a task by a clock that is so many minutes ahead.
fn id_by_a_clock(minutes_ahead: i64) -> TaskId {
    let (id, ms) = (TaskId::generate().0.as_u128(), i128::from(minutes_ahead * 60_000));
    let ahead = u128::try_from(i128::try_from(id >> 80).unwrap() + ms).unwrap();
    TaskId(uuid::Uuid::from_u128(ahead << 80 | id & ((1 << 80) - 1)))
}

#[tokio::test]
async fn tasks_run_in_the_order_of_submission_whatever_the_clocks_of_the_dispatchers_say() {
    let fixture = Fixture::open().await;
    let clocks = [10, -5, 0, -20, 3];
    let mut tasks = Vec::new();
    for ahead in clocks {
        let task = NewTask { id: id_by_a_clock(ahead), ..new_task("c") };
        fixture.store.submit_tasks(std::slice::from_ref(&task)).await.unwrap();
        tasks.push(task.id);
    }
    assert!(!tasks.is_sorted(), "the ids say otherwise");
    for n in 0..tasks.len() {
        let advanced = fixture.advance(&tasks, |task| Some(started(&task))).await.unwrap();
        assert_eq!(advanced.tasks(), [tasks[n]], "all may be looked at, and one may start");
        assert_eq!(fixture.end(tasks[n]).await.next, tasks.get(n + 1).copied().into_iter().collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn tasks_of_one_submission_run_in_the_order_of_their_ids() {
    let fixture = Fixture::open().await;
    let batch: Vec<NewTask> = (0..4).map(|_| new_task("c")).collect();
    fixture.store.submit_tasks(&batch.iter().rev().cloned().collect::<Vec<_>>()).await.unwrap();
    for task in &batch {
        fixture.start(task.id).await;
        fixture.end(task.id).await;
    }
}
