//! A tool is down for a while, and calls of it wait.

use std::time::Duration;

use redial_proto::{CallId, CallState};
use redial_testkit::{Stack, unique_path, until, until_within};
use serde_json::json;

use super::fixture::{LONG, busy, count, jobs, states, steady, submit, submit_down, tool};

#[tokio::test]
async fn the_waiting_calls_of_a_tool_that_was_down_all_succeed_once_it_is_back() {
    let mut stack = steady().await;
    stack.work(vec![tool(&stack, "down"), tool(&stack, "good")]).await;
    let down = unique_path("down");
    std::fs::write(&down, "").unwrap();
    // At one retry a second, which is what a tool gets that is down, most would reach their deadline.
    submit_down(&stack, &down, 2_000, Duration::from_mins(2)).await;
    until_within(LONG, "most calls wait for a retry", async || (held_back(&stack, "down").await > 1_500).then_some(()))
        .await;
    // Others do not notice.
    submit(&stack, "good", 500).await;
    count(&stack, "good", "succeeded", 500).await;
    // What is observed is judged once a second.
    until("the tool is known to be down", async || {
        let down = "SELECT failing_since IS NOT NULL AND per_second = 1 FROM retry_budgets WHERE tool = 'down'";
        sqlx::query_scalar(down).fetch_one(stack.db()).await.unwrap_or(false).then_some(())
    })
    .await;
    std::fs::remove_file(&down).unwrap();
    stack.drained(LONG).await;
    assert_eq!(states(&stack, "down", CallState::Succeeded.as_str()).await, 2_000);
    stack.finish().await;
}

/// How many retries of a tool wait in the backlog.
async fn held_back(stack: &Stack, tool: &str) -> i64 {
    let count = "SELECT count(*) FROM calls WHERE tool = $1 AND backlog_at IS NOT NULL AND backlog_retry";
    sqlx::query_scalar(count).bind(tool).fetch_one(stack.db()).await.unwrap()
}

/// How many jobs of a call were published.
async fn published(stack: &Stack, call: CallId) -> i32 {
    let count = sqlx::query_scalar("SELECT publish_no FROM calls WHERE id = $1").bind(call.0);
    count.fetch_one(stack.db()).await.unwrap()
}

#[tokio::test]
async fn ten_thousand_waiting_retries_are_in_nobodys_way_and_none_is_lost() {
    const MANY: u64 = 10_000;
    let mut stack = steady().await;
    stack.work(vec![tool(&stack, "down"), tool(&stack, "good")]).await;
    let (down, release) = (unique_path("down"), unique_path("release"));
    std::fs::write(&down, "").unwrap();
    busy(&mut stack, "busy", "slow", &release).await;
    submit_down(&stack, &down, MANY, Duration::from_hours(1)).await;
    until_within(LONG, "most calls wait for a retry", async || (held_back(&stack, "down").await > 9_000).then_some(()))
        .await;

    submit(&stack, "good", 500).await;
    count(&stack, "good", "succeeded", 500).await;
    // The job of a call of another pool is lost. The sweeper looks at it when it is due, which is now.
    let lost = submit(&stack, "slow", 1).await[0];
    until("its job is on the stream", async || (jobs(&stack, "slow").await == 1).then_some(())).await;
    let purged = json!({"filter": "redial.jobs.busy.slow"});
    assert_eq!(stack.raw_nats().await.jetstream("STREAM.PURGE.JOBS", &purged).await["purged"], 1);
    let due = "UPDATE calls SET wake_at = clock_timestamp() WHERE id = $1";
    sqlx::query(due).bind(lost.0).execute(stack.db()).await.unwrap();
    until("its job is published again", async || (published(&stack, lost).await == 2).then_some(())).await;
    std::fs::write(&release, "").unwrap();
    assert!(held_back(&stack, "down").await > 9_000);

    // As if the tool had done so many calls a second before, and the deadlines were over soon after the outage.
    let usual = "UPDATE retry_budgets SET usual_rate = 1000 WHERE tool = 'down'";
    sqlx::query(usual).execute(stack.db()).await.unwrap();
    std::fs::remove_file(&down).unwrap();
    until_within(LONG, "the tool recovers", async || {
        let recovers = "SELECT recovering_since IS NOT NULL FROM retry_budgets WHERE tool = 'down'";
        sqlx::query_scalar(recovers).fetch_one(stack.db()).await.unwrap_or(false).then_some(())
    })
    .await;
    let deadlines = "UPDATE calls SET deadline_at = clock_timestamp() + interval '8 s', wake_at = clock_timestamp() + interval '8 s'
                     WHERE tool = 'down' AND backlog_at IS NOT NULL";
    sqlx::query(deadlines).execute(stack.db()).await.unwrap();
    stack.drained(LONG).await;
    assert_eq!(states(&stack, "down", CallState::Succeeded.as_str()).await, 10_000);
    stack.finish().await;
}

/// What is observed is judged once a second, and the last thing that happens may be within it.
#[tokio::test]
async fn a_tool_that_succeeded_last_does_not_count_as_failing() {
    let mut stack = steady().await;
    stack.work(vec![tool(&stack, "down")]).await;
    let down = unique_path("down");
    let health = async |what: &str| {
        let health = format!("SELECT {what} FROM retry_budgets WHERE tool = 'down'");
        sqlx::query_scalar::<_, bool>(sqlx::AssertSqlSafe(health)).fetch_one(stack.db()).await.unwrap_or(false)
    };
    for _ in 0..3 {
        std::fs::write(&down, "").unwrap();
        submit_down(&stack, &down, 1, LONG).await;
        until("the tool is failing", async || health("failing_since IS NOT NULL").await.then_some(())).await;
        std::fs::remove_file(&down).unwrap();
        stack.drained(LONG).await;
        until("the tool is not failing", async || health("failing_since IS NULL").await.then_some(())).await;
    }
    stack.finish().await;
}
