//! Tasks are put on record once.

use redial_proto::{TaskId, TaskState};
use redial_store::{NewTask, StoreError, SubmittedTask};
use uuid::Uuid;

use crate::desk::{Desk, hour_before, new_task, started};

fn keyed(key: &str, content: u128) -> NewTask {
    NewTask { key: Some(key.to_owned()), content: Some(Uuid::from_u128(content)), ..new_task("c") }
}

#[tokio::test]
async fn the_same_batch_twice_is_written_once() {
    let desk = Desk::open().await;
    let batch = [new_task("a"), new_task("b"), keyed("k", 1)];
    for _ in 0..2 {
        assert_eq!(desk.store.submit_tasks(&batch).await.unwrap(), vec![SubmittedTask::Written; 3]);
    }
    assert_eq!(desk.count("SELECT count(*) FROM tasks WHERE state = 'waiting'").await, 3);
    assert_eq!(desk.count("SELECT count(*) FROM task_inbox WHERE kind = 'start'").await, 3);
    let due = desk.store.due_tasks(10).await.unwrap();
    assert_eq!(due.len(), 3);
    assert!(batch.iter().all(|task| due.contains(&task.id)));
    assert_eq!(desk.store.due_tasks(2).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_key_finds_the_first_task_in_its_tenant_only() {
    let desk = Desk::open().await;
    let first = keyed("k", 1);
    desk.store.submit_tasks(std::slice::from_ref(&first)).await.unwrap();
    desk.start(first.id).await;
    let elsewhere = NewTask { tenant: "other".to_owned(), ..keyed("k", 3) };
    let batch = [NewTask { conversation: "d".to_owned(), ..keyed("k", 2) }, elsewhere, keyed("l", 4), keyed("l", 5)];
    let results = desk.store.submit_tasks(&batch).await.unwrap();
    let existing = |id: TaskId, state, content| SubmittedTask::Existing {
        id,
        conversation: "c".to_owned(),
        state,
        content: Some(Uuid::from_u128(content)),
    };
    let expected = [
        existing(first.id, TaskState::Running, 1),
        SubmittedTask::Written,
        SubmittedTask::Written,
        existing(batch[2].id, TaskState::Waiting, 4),
    ];
    assert_eq!(results, expected);
    assert_eq!(desk.count("SELECT count(*) FROM tasks").await, 3);
}

#[tokio::test]
async fn what_text_columns_cannot_hold_does_no_harm() {
    let desk = Desk::open().await;
    let spec = r#"{"model": "small", "system": "a\u0000b\ud800"}"#;
    let task = NewTask { input: "a\0b".to_owned(), spec: spec.to_owned(), ..new_task("c") };
    desk.store.submit_tasks(std::slice::from_ref(&task)).await.unwrap();
    let mut seen = Vec::new();
    let advanced = desk.advance([task.id], |row| {
        seen.push((row.input.clone(), row.spec.clone()));
        Some(started(&row))
    });
    advanced.await.unwrap();
    assert_eq!(seen, [("a\u{fffd}b".to_owned(), spec.to_owned())]);
    let model: String = sqlx::query_scalar("SELECT model FROM task_history").fetch_one(&desk.db).await.unwrap();
    assert_eq!(model, "small");
}

#[tokio::test]
async fn an_agent_without_a_model_is_refused_by_name() {
    let desk = Desk::open().await;
    let task = NewTask { spec: "{}".to_owned(), ..new_task("c") };
    let error = desk.store.submit_tasks(std::slice::from_ref(&task)).await.unwrap_err();
    assert!(matches!(&error, StoreError::BadData(what) if what.contains("model")), "{error}");
    assert_eq!(desk.inbox().await, 0);
}

#[tokio::test]
async fn ended_tasks_never_change() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    desk.start(task).await;
    desk.end(task).await;
    let change = sqlx::query("UPDATE tasks SET answer = 'no' WHERE id = $1").bind(task.0).execute(&desk.db).await;
    let message = change.unwrap_err().to_string();
    assert!(message.contains("has ended as cancelled: ended tasks never change"), "{message}");
    let row = desk.store.task_report(task, 0, 1_000_000).await.unwrap().unwrap().task;
    assert!(row.finished_at > row.started_at && row.started_at > Some(hour_before(row.submitted_at)));
}
