//! Tasks that cannot be advanced, and what others notice of them.

use redial_proto::{TaskId, TaskState};
use redial_store::Purpose;
use redial_test_stack::Stack;
use redial_tools::{Tool, ToolError};
use serde_json::{Value, json};

use crate::new_task::new_task;

/// A stack whose tasks are answered, with tasks on record that no dispatcher has seen.
async fn stack_with(conversations: &[String]) -> (Stack, Vec<TaskId>) {
    let mut stack = Stack::start().await;
    let model = Tool::new("small", |_: Value| async { Ok::<_, ToolError>(json!({"text": "done"})) });
    stack.play_models(vec![model]).await;
    stack.stop_dispatchers().await;
    let tasks: Vec<_> = conversations.iter().map(|conversation| new_task(conversation)).collect();
    // One by one: the first waits for the longest time.
    let store = stack.store(Purpose::Dispatch).await;
    for task in &tasks {
        store.submit_tasks(std::slice::from_ref(task)).await.unwrap();
    }
    (stack, tasks.into_iter().map(|task| task.id).collect())
}

/// From now on messages of conversations that begin with `bad` make Postgres do something, which the sequence `tries` counts.
fn when_bad(what: &str) -> String {
    format!(
        "CREATE SEQUENCE tries;
         CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM nextval('tries'); {what}; RETURN NEW; END $$;
         CREATE TRIGGER bad BEFORE INSERT ON messages
             FOR EACH ROW WHEN (NEW.conversation LIKE 'bad%') EXECUTE FUNCTION bad()"
    )
}

const CURE: &str = "DROP TRIGGER bad ON messages";

async fn succeed(stack: &Stack, tasks: &[TaskId]) {
    for task in tasks {
        assert_eq!(stack.task_ended(*task).await.task.state, TaskState::Succeeded);
    }
}

fn names(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{name} {n}")).collect()
}

#[tokio::test]
async fn a_batch_that_takes_too_long_is_divided_until_the_task_that_does_is_alone() {
    let conversations = [names("good", 4), names("bad", 1), names("fine", 4)].concat();
    let (mut stack, tasks) = stack_with(&conversations).await;
    // What Postgres says when a statement takes too long.
    let timeout = "RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = 'query_canceled'";
    stack.execute(&when_bad(timeout)).await;
    stack.dispatch().await;
    succeed(&stack, &tasks[..4]).await;
    succeed(&stack, &tasks[5..]).await;
    stack.execute(CURE).await;
    succeed(&stack, &tasks[4..5]).await;
    stack.finish().await;
}

/// More of them than one batch holds, all before the others.
#[tokio::test]
async fn failing_tasks_at_the_head_do_not_keep_the_others_from_their_turn() {
    let unreadable_row = "ALTER TABLE tasks DROP CONSTRAINT tasks_language_check;
                          UPDATE tasks SET language = 'xx' WHERE conversation LIKE 'bad%'";
    let unreadable_message =
        "INSERT INTO messages (tenant, conversation, seq, task_id, at, role, content, calls)
         SELECT 'default', conversation, 1, id, now(), 'assistant', 'Hm.', '{}' FROM tasks WHERE conversation LIKE 'bad%'";
    for (name, breaks, cure) in [
        ("writing fails", when_bad("RAISE EXCEPTION 'no'"), CURE),
        ("an unreadable task", unreadable_row.to_owned(), "UPDATE tasks SET language = 'en' WHERE language = 'xx'"),
        (
            "an unreadable message",
            unreadable_message.to_owned(),
            "UPDATE messages SET calls = '[]' WHERE calls::text = '{}'",
        ),
    ] {
        println!("{name}");
        let (mut stack, tasks) = stack_with(&[names("bad", 70), names("good", 2)].concat()).await;
        stack.execute(&breaks).await;
        stack.dispatch().await;
        succeed(&stack, &tasks[70..]).await;
        stack.execute(cure).await;
        succeed(&stack, &tasks[..70]).await;
        stack.finish().await;
    }
}

#[tokio::test]
async fn a_batch_is_not_divided_when_the_connection_is_lost() {
    let (mut stack, tasks) = stack_with(&[names("good", 3), names("bad", 1)].concat()).await;
    stack.execute(&when_bad("PERFORM pg_terminate_backend(pg_backend_pid())")).await;
    stack.dispatch().await;
    // Divided, the good ones would be advanced after the first few.
    stack.holds("it was tried again and again", "SELECT is_called AND last_value >= 12 FROM tries").await;
    assert_eq!(stack.count("tasks WHERE state = 'waiting'").await, 4);
    stack.execute(CURE).await;
    succeed(&stack, &tasks).await;
    stack.finish().await;
}
