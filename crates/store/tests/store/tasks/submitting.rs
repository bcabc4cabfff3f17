//! Tasks are put on record once.

use redial_proto::{TaskId, TaskState};
use redial_records::NewTask;
use redial_store::SubmittedTask;
use uuid::Uuid;

use crate::fixture::{Fixture, hour_before, new_task, started};

fn keyed(key: &str, content: u128) -> NewTask {
    NewTask { key: Some(key.to_owned()), content: Some(Uuid::from_u128(content)), ..new_task("c") }
}

#[tokio::test]
async fn the_same_batch_twice_is_written_once() {
    let fixture = Fixture::open().await;
    let batch = [new_task("a"), new_task("b"), keyed("k", 1)];
    for _ in 0..2 {
        assert_eq!(fixture.store.submit_tasks(&batch).await.unwrap(), vec![SubmittedTask::Written; 3]);
    }
    assert_eq!(fixture.count("SELECT count(*) FROM tasks WHERE state = 'waiting'").await, 3);
    assert_eq!(fixture.count("SELECT count(*) FROM task_inbox WHERE kind = 'start'").await, 3);
    let due = fixture.store.due_tasks(10, &[]).await.unwrap();
    assert_eq!(due.len(), 3);
    assert!(batch.iter().all(|task| due.contains(&task.id)));
    assert_eq!(fixture.store.due_tasks(2, &[]).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_key_finds_the_first_task_in_its_tenant_only() {
    let fixture = Fixture::open().await;
    let first = keyed("k", 1);
    fixture.store.submit_tasks(std::slice::from_ref(&first)).await.unwrap();
    fixture.start(first.id).await;
    let elsewhere = NewTask { tenant: "other".to_owned(), ..keyed("k", 3) };
    let batch = [NewTask { conversation: "d".to_owned(), ..keyed("k", 2) }, elsewhere, keyed("l", 4), keyed("l", 5)];
    let results = fixture.store.submit_tasks(&batch).await.unwrap();
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
    assert_eq!(fixture.count("SELECT count(*) FROM tasks").await, 3);
}

#[tokio::test]
async fn nul_characters_in_texts_are_harmless() {
    let fixture = Fixture::open().await;
    let spec = r#"{"model": "small", "system": "a\u0000b\ud800"}"#;
    let task =
        NewTask { model: "sm\0all".to_owned(), input: "a\0b".to_owned(), spec: spec.to_owned(), ..new_task("c") };
    fixture.store.submit_tasks(std::slice::from_ref(&task)).await.unwrap();
    let mut seen = Vec::new();
    let advanced = fixture.advance([task.id], |task| {
        seen.push((task.input.clone(), task.spec.clone()));
        Some(started(&task))
    });
    advanced.await.unwrap();
    assert_eq!(seen, [("a\u{fffd}b".to_owned(), spec.to_owned())]);
    let model: String = sqlx::query_scalar("SELECT model FROM task_history").fetch_one(&fixture.db).await.unwrap();
    assert_eq!(model, "sm\u{fffd}all");
}

#[tokio::test]
async fn ended_tasks_never_change() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    fixture.start(task).await;
    fixture.end(task).await;
    let change = sqlx::query("UPDATE tasks SET answer = 'no' WHERE id = $1").bind(task.0).execute(&fixture.db).await;
    let message = change.unwrap_err().to_string();
    assert!(message.contains("has ended as cancelled: ended tasks never change"), "{message}");
    let row = fixture.own().task_report(task, 0, 1_000_000).await.unwrap().unwrap().task;
    assert!(row.finished_at > row.started_at && row.started_at > Some(hour_before(row.submitted_at)));
}
