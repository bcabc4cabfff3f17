//! Tasks that cannot be advanced, and what others notice of them.

use redial_proto::{TaskId, TaskState};
use redial_store::Purpose;
use redial_test_stack::{Stack, until};

use super::script::{Model, new_task, says};

/// A stack whose tasks are answered, with tasks on record that no dispatcher has seen. Messages of conversations that begin
/// with `bad` make Postgres do something, which the sequence `tries` counts.
async fn stack_with(conversations: &[String], when_bad: &str) -> (Stack, Vec<TaskId>) {
    let mut stack = Stack::start().await;
    let model = Model::new("small", |_| Ok(says("done")));
    stack.play_models(vec![model.tool()]).await;
    stack.stop_dispatchers().await;
    let bad = format!(
        "CREATE SEQUENCE tries;
         CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM nextval('tries'); {when_bad}; RETURN NEW; END $$;
         CREATE TRIGGER bad BEFORE INSERT ON messages
             FOR EACH ROW WHEN (NEW.conversation LIKE 'bad%') EXECUTE FUNCTION bad()"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(bad)).execute(stack.db()).await.unwrap();
    let tasks: Vec<_> = conversations.iter().map(|conversation| new_task(conversation)).collect();
    // One by one: the first waits for the longest time.
    let store = stack.store(Purpose::Dispatch).await;
    for task in &tasks {
        store.submit_tasks(std::slice::from_ref(task)).await.unwrap();
    }
    (stack, tasks.into_iter().map(|task| task.id).collect())
}

async fn tries(stack: &Stack) -> i64 {
    sqlx::query_scalar("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM tries")
        .fetch_one(stack.db())
        .await
        .unwrap()
}

async fn tried(stack: &Stack, times: i64) {
    until("it was tried again", async || (tries(stack).await >= times).then_some(())).await;
}

async fn waiting(stack: &Stack) -> i64 {
    let waiting = "SELECT count(*) FROM tasks WHERE state = 'waiting'";
    sqlx::query_scalar(waiting).fetch_one(stack.db()).await.unwrap()
}

async fn cure(stack: &Stack) {
    sqlx::raw_sql("DROP TRIGGER bad ON messages").execute(stack.db()).await.unwrap();
}

async fn succeed(stack: &Stack, tasks: &[TaskId]) {
    for task in tasks {
        assert_eq!(stack.task_ended(*task).await.task.state, TaskState::Succeeded);
    }
}

fn names(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{name} {n}")).collect()
}

/// What Postgres says when a statement takes too long.
const TIMEOUT: &str = "RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = 'query_canceled'";

#[tokio::test]
async fn a_batch_that_takes_too_long_is_divided_until_the_task_that_does_is_alone() {
    let conversations = [names("good", 4), names("bad", 1), names("fine", 4)].concat();
    let (mut stack, tasks) = stack_with(&conversations, TIMEOUT).await;
    stack.dispatch().await;
    succeed(&stack, &tasks[..4]).await;
    succeed(&stack, &tasks[5..]).await;
    cure(&stack).await;
    succeed(&stack, &tasks[4..5]).await;
    stack.finish().await;
}

#[tokio::test]
async fn failing_tasks_at_the_head_do_not_keep_the_others_from_their_turn() {
    let conversations = [names("bad", 70), names("good", 2)].concat();
    let (mut stack, tasks) = stack_with(&conversations, "RAISE EXCEPTION 'no'").await;
    stack.dispatch().await;
    succeed(&stack, &tasks[70..]).await;
    cure(&stack).await;
    succeed(&stack, &tasks[..70]).await;
    stack.finish().await;
}

#[tokio::test]
async fn a_failing_task_is_tried_again_less_and_less_often() {
    let (mut stack, tasks) = stack_with(&names("bad", 1), "RAISE EXCEPTION 'no'").await;
    stack.dispatch().await;
    // Its inbox gets more items meanwhile, and it is woken by each cancel. Between the tries are 1, 2 and 4 s.
    let began = "SELECT clock_timestamp()";
    let before: chrono::DateTime<chrono::Utc> = sqlx::query_scalar(began).fetch_one(stack.db()).await.unwrap();
    tried(&stack, 4).await;
    let after: chrono::DateTime<chrono::Utc> = sqlx::query_scalar(began).fetch_one(stack.db()).await.unwrap();
    assert!(after - before > chrono::TimeDelta::seconds(5), "{before} to {after}");
    cure(&stack).await;
    succeed(&stack, &tasks).await;
    stack.finish().await;
}

#[tokio::test]
async fn a_batch_is_not_divided_when_the_connection_is_lost() {
    let conversations = [names("good", 3), names("bad", 1)].concat();
    let (mut stack, tasks) = stack_with(&conversations, "PERFORM pg_terminate_backend(pg_backend_pid())").await;
    stack.dispatch().await;
    // Divided, the good ones would be advanced after the first few.
    tried(&stack, 12).await;
    assert_eq!(waiting(&stack).await, 4);
    cure(&stack).await;
    succeed(&stack, &tasks).await;
    stack.finish().await;
}

#[tokio::test]
async fn tasks_that_cannot_be_read_do_not_keep_the_others_from_their_turn() {
    let conversations = [names("odd", 70), names("good", 2)].concat();
    let (mut stack, tasks) = stack_with(&conversations, "NULL").await;
    let break_them = "ALTER TABLE tasks DROP CONSTRAINT tasks_language_check;
                      UPDATE tasks SET language = 'xx' WHERE conversation LIKE 'odd%'";
    sqlx::raw_sql(break_them).execute(stack.db()).await.unwrap();
    stack.dispatch().await;
    succeed(&stack, &tasks[70..]).await;
    let repair = "UPDATE tasks SET language = 'en' WHERE language = 'xx'";
    sqlx::raw_sql(repair).execute(stack.db()).await.unwrap();
    succeed(&stack, &tasks[..70]).await;
    stack.finish().await;
}

/// Messages that this version cannot read: an older one of a conversation.
#[tokio::test]
async fn a_conversation_that_cannot_be_read_does_not_stop_the_others() {
    let conversations = [names("good", 2), names("odd", 1)].concat();
    let (mut stack, tasks) = stack_with(&conversations, "NULL").await;
    let odd = "INSERT INTO messages (tenant, conversation, seq, task_id, at, role, content, calls)
               VALUES ('default', 'odd 0', 1, $1, now(), 'assistant', 'Hm.', '{}')";
    sqlx::query(odd).bind(tasks[2].0).execute(stack.db()).await.unwrap();
    stack.dispatch().await;
    succeed(&stack, &tasks[..2]).await;
    let repair = "UPDATE messages SET calls = '[]' WHERE calls::text = '{}'";
    sqlx::raw_sql(repair).execute(stack.db()).await.unwrap();
    succeed(&stack, &tasks[2..]).await;
    stack.finish().await;
}
