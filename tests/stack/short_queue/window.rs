//! The window: NATS holds a few jobs, Postgres the rest.

use redial_engine::window::LEAST;

use super::fixture::{LONG, busy, count, jobs, steady, submit, tool, waiting};

#[tokio::test]
async fn a_pool_that_does_not_move_fills_its_window_and_no_more() {
    let mut stack = steady().await;
    stack.dispatch().await;
    let release = redial_test_stack::unique_path("release");
    busy(&mut stack, "stuck", "slow", &release).await;
    stack.work(vec![tool(&stack, "good")]).await;
    submit(&stack, "slow", 3 * LEAST).await;
    // At most a window for each dispatcher, however late they see what the other one published.
    let bound = 2 * LEAST;
    let published = jobs(&stack, "slow").await;
    assert!(published <= bound && published > 0, "{published} jobs are on the stream");
    assert!(waiting(&stack, "slow").await > 0);
    // Others do not wait for it.
    submit(&stack, "good", 500).await;
    count(&stack, "good", "succeeded", 500).await;
    assert!(jobs(&stack, "slow").await <= bound);
    std::fs::write(&release, "").unwrap();
    stack.drained(LONG).await;
    stack.finish().await;
}
