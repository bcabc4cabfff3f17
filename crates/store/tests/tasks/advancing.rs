//! What one advance sees and writes.

use redial_proto::{Language, Message, MessageCall, Role, TaskCode, TaskState};
use redial_store::{InboxItem, StoreError, TaskChange, TaskRow};
use serde_json::json;

use crate::desk::{By, Desk, answered, ended, nobody_asks, started, stepped};

#[tokio::test]
async fn a_task_starts_with_all_that_a_decision_needs() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    let mut seen = Vec::new();
    let advanced = desk.advance([task], |row| {
        seen.push(row.clone());
        Some(started(&row))
    });
    let advanced = advanced.await.unwrap();
    assert_eq!((advanced[0].change.id, advanced[0].next, advanced[0].stop.len()), (task, None, 0));
    let [row] = seen.as_slice() else { panic!("decided {} times", seen.len()) };
    assert_eq!((row.id, row.state, row.language, row.last_step), (task, TaskState::Waiting, Language::Zh, 0));
    assert_eq!((row.input.as_str(), row.agent.as_deref(), row.progress.as_deref()), ("你好", Some("helper"), None));
    assert!(matches!(row.inbox.as_slice(), [InboxItem::Start]), "{:?}", row.inbox);
    let start = row.start.as_ref().unwrap();
    assert_eq!((start.next_seq, &start.system, &start.carried), (1, &None, &None));
    assert!(row.now > row.submitted_at && row.messages.is_empty());
    assert_eq!((desk.state(task).await, desk.inbox().await), (TaskState::Running, 0));
}

#[tokio::test]
async fn the_whole_state_is_written_and_read_again() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    desk.start(task).await;
    desk.store.cancel_task(task).await.unwrap();
    let mut seen = Vec::new();
    let advanced = desk.advance([task], |row| {
        seen.push(row.clone());
        let change = ended(&row, TaskState::Failed, TaskCode::NoAnswer);
        Some(TaskChange { message: Some("why\0".to_owned()), answer: Some("so\0".to_owned()), ..change })
    });
    advanced.await.unwrap();
    assert_eq!(seen[0].last_step, 1);
    assert_eq!(seen[0].progress, Some(format!(r#"{{"of": "{task}"}}"#)));
    let texts: Vec<&str> = seen[0].messages.iter().map(|stored| stored.message.content.as_str()).collect();
    assert_eq!(texts, ["Be kind.", "你好"]);
    let view = desk.store.task_report(task, 0, 1_000_000).await.unwrap().unwrap().task;
    assert_eq!((view.state, view.code), (TaskState::Failed, Some(TaskCode::NoAnswer)));
    assert_eq!((view.message.as_deref(), view.answer.as_deref()), (Some("why\u{fffd}"), Some("so\u{fffd}")));
    assert_eq!((view.turns, view.tool_calls, view.corrections), (1, 2, 3));
    let usage = view.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_micros), (4, 5, 6));
}

#[tokio::test]
async fn messages_of_every_kind_come_back_as_they_were() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    let call = |id: &str| MessageCall { id: id.to_owned(), tool: "t".into(), arguments: "{\"a\": \0 no json".into() };
    let asks = Message {
        calls: vec![call("c2_1"), call("c2_2")],
        thought: Some("hm".to_owned()),
        provider: Some(json!({"signature": "\u{0}\\ud800", "big": 1e300})),
        ..Message::text(Role::Assistant, "")
    };
    let result = Message {
        call_id: Some("c2_1".to_owned()),
        tool: Some("t".to_owned()),
        class: Some(redial_proto::ErrorClass::Timeout),
        ..Message::text(Role::Tool, r#"["\ud800", "\u0000", 1e400000]"#)
    };
    let nudge = Message { by_redial: true, ..Message::text(Role::User, "answer\0now") };
    let written = vec![(1, asks.clone()), (2, result.clone()), (4, nudge.clone())];
    let change = |row: TaskRow| Some(stepped(&row, TaskState::Running, written.clone()));
    desk.advance([task], change).await.unwrap();
    desk.store.cancel_task(task).await.unwrap();
    let mut seen = Vec::new();
    let read = desk.advance([task], |row| {
        seen = row.messages;
        None
    });
    read.await.unwrap();
    let clean = Message { content: "answer\u{fffd}now".to_owned(), ..nudge };
    let messages: Vec<_> = seen.iter().map(|stored| (stored.seq, &stored.message)).collect();
    assert_eq!(messages, [(1, &asks), (2, &result), (4, &clean)]);
    assert!(seen.iter().all(|stored| stored.task == task));
}

#[tokio::test]
async fn no_change_leaves_the_inbox_and_a_change_empties_it() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    assert!(desk.advance([task], |_| None).await.unwrap().is_empty());
    assert_eq!((desk.inbox().await, desk.state(task).await), (1, TaskState::Waiting));
    assert_eq!(desk.store.due_tasks(10).await.unwrap(), [task]);
    desk.start(task).await;
    assert_eq!(desk.inbox().await, 0);
    assert!(desk.advance([task], nobody_asks).await.unwrap().is_empty());
    assert_eq!(desk.store.due_tasks(10).await.unwrap(), []);
}

#[tokio::test]
async fn what_postgres_refuses_leaves_everything_but_the_other_tasks_go_on() {
    let desk = Desk::open().await;
    let (good, bad, other) = (desk.submit("a").await, desk.submit("b").await, desk.submit("c").await);
    let decide = |row: TaskRow| {
        let progress = if row.id == bad { "no json" } else { "{}" };
        Some(TaskChange { progress: progress.to_owned(), ..started(&row) })
    };
    let advanced = desk.advance([good, bad, other], decide).await.unwrap();
    assert_eq!(advanced.iter().map(|one| one.change.id).collect::<Vec<_>>(), [good, other]);
    assert_eq!(desk.state(bad).await, TaskState::Waiting);
    assert_eq!(desk.count("SELECT count(*) FROM messages WHERE conversation = 'b'").await, 0);
    assert_eq!(desk.store.due_tasks(10).await.unwrap(), [bad]);
    let error = desk.advance([bad], decide).await.unwrap_err();
    assert!(matches!(&error, StoreError::Sql(_)) && !error.is_transient(), "{error}");
}

#[tokio::test]
async fn two_messages_at_one_place_and_two_answers_to_one_call_are_refused() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    let text = || Message::text(Role::User, "x");
    let answer = || Message { call_id: Some("c1_1".into()), tool: Some("t".into()), ..Message::text(Role::Tool, "{}") };
    for messages in [vec![(1, text()), (1, text())], vec![(1, answer()), (2, answer())]] {
        let decide = |row: TaskRow| Some(stepped(&row, TaskState::Running, messages.clone()));
        desk.advance([task], decide).await.unwrap_err();
        assert_eq!((desk.state(task).await, desk.inbox().await), (TaskState::Waiting, 1));
    }
}

#[tokio::test]
async fn a_change_of_another_task_is_refused() {
    let desk = Desk::open().await;
    let (one, two) = (desk.submit("a").await, desk.submit("b").await);
    let error = desk.advance([one], |row| Some(TaskChange { id: two, ..started(&row) })).await.unwrap_err();
    assert!(error.to_string().contains("decided about task"), "{error}");
    assert_eq!((desk.state(two).await, desk.inbox().await), (TaskState::Waiting, 2));
}

#[tokio::test]
async fn a_task_wakes_when_its_time_has_come_and_not_before() {
    let desk = Desk::open().await;
    let task = desk.submit("c").await;
    desk.start(task).await;
    assert!(desk.advance([task], nobody_asks).await.unwrap().is_empty());
    sqlx::query("UPDATE tasks SET wake_at = clock_timestamp()").execute(&desk.db).await.unwrap();
    assert_eq!(desk.store.due_tasks(10).await.unwrap(), [task]);
    let advanced = desk.advance([task], |row| {
        assert!(row.inbox.is_empty() && row.wake_at.is_some_and(|at| at <= row.now));
        Some(answered(&row))
    });
    assert_eq!(advanced.await.unwrap().len(), 1);
    assert_eq!(desk.state(task).await, TaskState::Succeeded);
    assert_eq!(desk.store.due_tasks(10).await.unwrap(), []);
}

#[tokio::test]
async fn a_locked_task_is_left_to_whoever_works_on_it() {
    let desk = Desk::open().await;
    let (locked, free) = (desk.submit("a").await, desk.submit("b").await);
    let mut holder = desk.db.begin().await.unwrap();
    sqlx::query("SELECT FROM tasks WHERE id = $1 FOR UPDATE").bind(locked.0).execute(&mut *holder).await.unwrap();
    let advanced =
        desk.store.advance(&[locked, free], false, 1_000, &mut By(|row: TaskRow| Some(started(&row)))).await.unwrap();
    assert_eq!(advanced.iter().map(|one| one.change.id).collect::<Vec<_>>(), [free]);
    holder.rollback().await.unwrap();
    desk.start(locked).await;
}
