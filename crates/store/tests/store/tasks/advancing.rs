//! What one transaction over tasks reads and writes.

use redial_proto::{Language, Message, MessageCall, Role, TaskCode, TaskId, TaskState};
use redial_records::{InboxItem, TaskOutcome, TaskStatus, TaskTransition};
use redial_store::StoreError;
use serde_json::json;

use crate::fixture::{Fixture, Locked, advance, answered, ended, no_plan, started, stepped};

#[tokio::test]
async fn a_task_starts_with_all_that_a_decision_needs_and_what_is_decided_is_read_again() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    let mut seen = Vec::new();
    let advanced = fixture.advance([task], |task| {
        seen.push(task.clone());
        Some(started(&task))
    });
    let advanced = advanced.await.unwrap();
    assert_eq!((advanced.tasks(), advanced.next), (vec![task], Vec::new()));
    let [row] = seen.as_slice() else { panic!("planned {} times", seen.len()) };
    assert_eq!((row.id, row.state, row.language, row.last_step), (task, TaskState::Waiting, Language::Zh, 0));
    assert_eq!((row.input.as_str(), row.progress.as_deref()), ("你好", None));
    assert_eq!(fixture.text("SELECT agent FROM tasks WHERE id = $1", task).await, "helper");
    assert!(matches!(row.inbox.as_slice(), [InboxItem::Start]), "{:?}", row.inbox);
    let start = row.start.as_ref().unwrap();
    assert_eq!((start.next_seq, &start.system, &start.carried), (1, &None, &None));
    let submitted_at = fixture.own().task_report(task, 0, 1_000_000).await.unwrap().unwrap().task.submitted_at;
    assert!(row.read_at > submitted_at && row.messages.is_empty());
    assert_eq!((fixture.state(task).await, fixture.inbox().await), (TaskState::Running, 0));

    // The whole state is written, and read again.
    fixture.own().cancel_task(task).await.unwrap();
    let mut seen = Vec::new();
    let advanced = fixture.advance([task], |task| {
        seen.push(task.clone());
        let (state, code) = (TaskState::Failed, TaskCode::NoAnswer);
        let (message, answer) = (Some("why\0".to_owned()), Some("so\0".to_owned()));
        let status = TaskStatus::Ended(TaskOutcome { state, code, message, answer });
        Some(TaskTransition { status, ..ended(&task, state, code) })
    });
    advanced.await.unwrap();
    assert_eq!(seen[0].last_step, 1);
    assert_eq!(seen[0].progress, Some(format!(r#"{{"of": "{task}"}}"#)));
    let texts: Vec<&str> = seen[0].messages.iter().map(|stored| stored.message.content.as_str()).collect();
    assert_eq!(texts, ["Be kind.", "你好"]);
    let view = fixture.own().task_report(task, 0, 1_000_000).await.unwrap().unwrap().task;
    assert_eq!((view.state, view.code), (TaskState::Failed, Some(TaskCode::NoAnswer)));
    assert_eq!((view.message.as_deref(), view.answer.as_deref()), (Some("why\u{fffd}"), Some("so\u{fffd}")));
    assert_eq!((view.turns, view.tool_calls, view.corrections), (1, 2, 3));
    let usage = view.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_micros), (4, 5, Some(6)));
    let estimated = (usage.estimated_input_tokens, usage.estimated_output_tokens, usage.estimated_cost_micros);
    assert_eq!((estimated, usage.turns_without_price), ((1, 2, 3), 1));
}

#[tokio::test]
async fn messages_of_every_kind_come_back_as_they_were() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
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
    let plan = |task: Locked| Some(stepped(&task, written.clone()));
    fixture.advance([task], plan).await.unwrap();
    fixture.own().cancel_task(task).await.unwrap();
    let mut seen = Vec::new();
    let read = fixture.advance([task], |task| {
        seen = task.messages;
        None
    });
    read.await.unwrap();
    let clean = Message { content: "answer\u{fffd}now".to_owned(), ..nudge };
    let messages: Vec<_> = seen.iter().map(|stored| (stored.seq, &stored.message)).collect();
    assert_eq!(messages, [(1, &asks), (2, &result), (4, &clean)]);
    assert!(seen.iter().all(|stored| stored.task == task));
}

#[tokio::test]
async fn no_transition_leaves_the_inbox_a_transition_empties_it_and_a_task_wakes_in_time() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    assert!(fixture.advance([task], |_| None).await.unwrap().is_empty());
    assert_eq!((fixture.inbox().await, fixture.state(task).await), (1, TaskState::Waiting));
    assert_eq!(fixture.store.due_tasks(10, &[]).await.unwrap(), [task]);
    fixture.start(task).await;
    assert_eq!(fixture.inbox().await, 0);
    assert!(fixture.advance([task], no_plan).await.unwrap().is_empty());
    assert_eq!(fixture.store.due_tasks(10, &[]).await.unwrap(), []);
    // It wakes when its time has come.
    sqlx::query("UPDATE tasks SET wake_at = clock_timestamp()").execute(&fixture.db).await.unwrap();
    assert_eq!(fixture.store.due_tasks(10, &[]).await.unwrap(), [task]);
    let advanced = fixture.advance([task], |task| {
        assert!(task.inbox.is_empty() && task.wake_at.is_some_and(|at| at <= task.read_at));
        Some(answered(&task))
    });
    assert_eq!(advanced.await.unwrap().tasks(), [task]);
    assert_eq!(fixture.state(task).await, TaskState::Succeeded);
    assert_eq!(fixture.store.due_tasks(10, &[]).await.unwrap(), []);
}

#[tokio::test]
async fn a_refused_task_changes_nothing_and_the_others_continue() {
    let fixture = Fixture::open().await;
    let (good, bad, other) = (fixture.submit("a").await, fixture.submit("b").await, fixture.submit("c").await);
    let decide = |task: Locked| {
        let progress = if task.id == bad { "no json" } else { "{}" };
        Some(TaskTransition { progress: progress.to_owned(), ..started(&task) })
    };
    let error = fixture.advance([good, bad, other], decide).await.unwrap_err();
    assert!(matches!(&error, StoreError::Sql(_)) && !error.is_transient(), "{error}");
    assert_eq!((fixture.state(good).await, fixture.inbox().await), (TaskState::Waiting, 3), "all or nothing");
    for task in [good, other] {
        assert_eq!(fixture.advance([task], decide).await.unwrap().tasks(), [task]);
    }
    assert_eq!(fixture.state(bad).await, TaskState::Waiting);
    assert_eq!(fixture.count("SELECT count(*) FROM messages WHERE conversation = 'b'").await, 0);
    assert_eq!(fixture.store.due_tasks(10, &[]).await.unwrap(), [bad]);
    let error = fixture.advance([bad], decide).await.unwrap_err();
    assert!(matches!(&error, StoreError::Sql(_)) && !error.is_transient(), "{error}");
}

#[tokio::test]
async fn two_messages_at_one_place_two_answers_to_one_call_and_a_transition_of_another_task_are_refused() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    let text = || Message::text(Role::User, "x");
    let answer = || Message { call_id: Some("c1_1".into()), tool: Some("t".into()), ..Message::text(Role::Tool, "{}") };
    for messages in [vec![(1, text()), (1, text())], vec![(1, answer()), (2, answer())]] {
        let decide = |task: Locked| Some(stepped(&task, messages.clone()));
        fixture.advance([task], decide).await.unwrap_err();
        assert_eq!((fixture.state(task).await, fixture.inbox().await), (TaskState::Waiting, 1));
    }
    let other = fixture.submit("other").await;
    let decide = |task: Locked| Some(TaskTransition { task: other, ..started(&task) });
    let error = fixture.advance([task], decide).await.unwrap_err();
    assert!(error.to_string().contains("which is not locked"), "{error}");
    assert_eq!((fixture.state(other).await, fixture.inbox().await), (TaskState::Waiting, 2));
}

#[tokio::test]
async fn a_locked_task_is_left_to_the_transaction_that_locked_it() {
    let fixture = Fixture::open().await;
    let (locked, free) = (fixture.submit("a").await, fixture.submit("b").await);
    let mut holder = fixture.db.begin().await.unwrap();
    sqlx::query("SELECT FROM tasks WHERE id = $1 FOR UPDATE").bind(locked.0).execute(&mut *holder).await.unwrap();
    let advanced = advance(&fixture.store, &[locked, free], false, |task| Some(started(&task))).await.unwrap();
    assert_eq!(advanced.tasks(), [free]);
    holder.rollback().await.unwrap();
    fixture.start(locked).await;
}

#[tokio::test]
async fn due_tasks_behind_those_that_are_left_out_are_found() {
    let fixture = Fixture::open().await;
    let mut tasks = Vec::new();
    for n in 0..5 {
        tasks.push(fixture.submit(&format!("c{n}")).await);
    }
    // A task can have so many items that they fill what is looked at.
    let items = "INSERT INTO task_inbox (task_id, kind, at)
        SELECT $1, 'start', now() - interval '1 day' FROM generate_series(1, 100)";
    let oldest = "UPDATE task_inbox SET id = DEFAULT WHERE task_id <> $1";
    sqlx::query(items).bind(tasks[0].0).execute(&fixture.db).await.unwrap();
    sqlx::query(oldest).bind(tasks[0].0).execute(&fixture.db).await.unwrap();
    let due = async |limit, except: &[TaskId]| fixture.store.due_tasks(limit, except).await.unwrap();
    assert_eq!(due(2, &[]).await, [tasks[0]]);
    assert_eq!(due(2, &tasks[..1]).await, tasks[1..3]);
    assert_eq!(due(9, &tasks[..3]).await, tasks[3..]);
    sqlx::raw_sql("UPDATE tasks SET wake_at = now() - interval '5 s'").execute(&fixture.db).await.unwrap();
    assert_eq!(due(9, &tasks[..3]).await.len(), 2);
}

#[tokio::test]
async fn a_task_that_cannot_be_read_is_an_error_of_its_own() {
    let fixture = Fixture::open().await;
    let (good, row, item) = (fixture.submit("a").await, fixture.submit("b").await, fixture.submit("c").await);
    let call = "INSERT INTO task_inbox (task_id, kind, call_id) VALUES ($1, 'ended', gen_random_uuid())";
    sqlx::query(call).bind(item.0).execute(&fixture.db).await.unwrap();
    let broken = "ALTER TABLE tasks DROP CONSTRAINT tasks_language_check;
                  UPDATE tasks SET language = 'xx' WHERE conversation = 'b'";
    sqlx::raw_sql(broken).execute(&fixture.db).await.unwrap();
    for unreadable in [row, item] {
        let error = fixture.store.lock_tasks(&[good, unreadable], true).await.unwrap_err();
        assert!(error.is_unreadable(), "{error}");
    }
    let mut locked = fixture.store.lock_tasks(&[good], true).await.unwrap();
    assert!(locked.take_records().iter().any(|record| record.id == good));
}
