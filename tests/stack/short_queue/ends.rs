//! Every call ends.

use redial_proto::{CallState, ErrorClass, Submission, ToolEffect};
use redial_testkit::{arguments, scripted_tool};
use serde_json::json;

use super::fixture::{LONG, count, steady, submit, submit_down, tool, without_workers};

/// The worker does not end the attempt, and goes on renewing its lease.
async fn overdue(effect: ToolEffect) -> redial_proto::CallView {
    let mut stack = steady().await;
    stack.work(vec![scripted_tool("stuck", effect, &stack.ledger)]).await;
    let never = redial_testkit::unique_path("never");
    let orders = arguments(json!({"hold": never}));
    let retry = serde_json::from_value(json!({"max_attempts": 1})).unwrap();
    let call = stack.accepted(&Submission { retry: Some(retry), ..Submission::new("stuck", orders) }).await;
    count(&stack, "stuck", "running", 1).await;
    // As if the attempt had begun an hour ago.
    let earlier = "UPDATE calls SET started_at = started_at - interval '1 h' WHERE id = $1";
    sqlx::query(earlier).bind(call.0).execute(stack.db()).await.unwrap();
    let view = stack.ended(call).await;
    // Its tool is stopped, too.
    redial_testkit::until("the tool is stopped", async || {
        stack.ledger.entries().iter().any(|entry| entry.event == redial_testkit::ToolEvent::Stopped).then_some(())
    })
    .await;
    stack.finish().await;
    view
}

#[tokio::test]
async fn an_attempt_that_its_worker_does_not_end_is_ended_by_the_dispatcher() {
    let view = overdue(ToolEffect::Read).await;
    assert_eq!((view.state, view.class), (CallState::Failed, Some(ErrorClass::Timeout)));
    let message = view.message.unwrap();
    assert!(message.contains("did not end within 30000 ms, and its worker did not stop it"), "{message}");
    let view = overdue(ToolEffect::Unsafe).await;
    assert_eq!((view.state, view.class), (CallState::Unknown, Some(ErrorClass::Timeout)));
}

#[tokio::test]
async fn what_is_due_does_not_wait_for_a_backlog_that_reached_its_deadline() {
    let mut stack = steady().await;
    without_workers(&mut stack, |stack| tool(stack, "gone")).await;
    stack.work(vec![tool(&stack, "down")]).await;
    let calls = submit(&stack, "gone", 15_000).await;
    let down = redial_testkit::unique_path("down");
    std::fs::write(&down, "").unwrap();
    submit_down(&stack, &down, 1, LONG).await;
    count(&stack, "down", "retry_wait", 1).await;
    stack.stop_dispatchers().await;
    std::fs::remove_file(&down).unwrap();
    // The retry is due long after the deadlines, and everything has been for a while.
    let late =
        "UPDATE calls SET wake_at = now() - interval '1 h', deadline_at = now() - interval '1 h' WHERE tool = 'gone'";
    sqlx::query(late).execute(stack.db()).await.unwrap();
    sqlx::query("UPDATE calls SET wake_at = now() - interval '1 s' WHERE tool = 'down'")
        .execute(stack.db())
        .await
        .unwrap();
    // All of these ends together take some seconds: longer than NATS may stand still while the retry is published.
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    PERFORM pg_sleep(0.001) WHERE random() < 0.3;
                    RETURN NEW;
                END $$;
                CREATE TRIGGER slow BEFORE UPDATE ON calls FOR EACH ROW
                    WHEN (NEW.tool = 'gone' AND NEW.state = 'failed') EXECUTE FUNCTION slow()";
    sqlx::raw_sql(slow).execute(stack.db()).await.unwrap();
    stack.dispatch().await;
    count(&stack, "gone", "failed", i64::try_from(calls.len()).unwrap()).await;
    count(&stack, "down", "succeeded", 1).await;
    let before = "SELECT (SELECT published_at FROM calls WHERE tool = 'down')
                       < (SELECT max(finished_at) FROM calls WHERE tool = 'gone')";
    assert!(sqlx::query_scalar::<_, bool>(before).fetch_one(stack.db()).await.unwrap(), "the retry runs first");
    stack.finish().await;
}
