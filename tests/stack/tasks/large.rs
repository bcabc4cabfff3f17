//! Results of several MB, of many tasks at once.

use redial_proto::ToolSpec;
use redial_test_stack::{Stack, until};
use redial_tools::Tool;
use serde_json::json;

use super::script::{Always, Model, agent, calls, says, task};

#[tokio::test]
async fn large_results_of_many_tasks_reach_their_models_and_are_read_on_in() {
    let mut stack = Stack::start().await;
    // Two of them are more than a transaction takes, and one is more than is read of a turn in a claim.
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(3 << 20));
    let model = Model::new("small", |request| {
        Ok(match request.turn {
            1 => calls([("look", json!({"n": 1})), ("look", json!({"n": 2}))]),
            2 => calls(["c2_1", "c2_2"].map(|id| ("read_result", json!({"call_id": id, "offset": 2_000_000})))),
            _ => says("read"),
        })
    });
    stack.play_models(vec![model.tool()]).await;
    stack.work(vec![Tool::from_handler(ToolSpec::named("look"), Always(large))]).await;
    let mut tasks = Vec::new();
    for _ in 0..4 {
        tasks.push(stack.task(&task("Read them.", agent("small", &["look"]))).await);
    }
    let state = "SELECT state FROM tasks WHERE id = $1 AND finished_at IS NOT NULL";
    for task in tasks {
        let ended =
            async || sqlx::query_scalar::<_, String>(state).bind(task.0).fetch_optional(stack.db()).await.unwrap();
        assert_eq!(until("the task has ended", ended).await, "succeeded");
    }
    let pieces = r#"SELECT count(*) FROM messages WHERE tool = 'read_result' AND content LIKE '%"offset":2000000%'"#;
    assert_eq!(sqlx::query_scalar::<_, i64>(pieces).fetch_one(stack.db()).await.unwrap(), 8);
    let second = model.asked(2);
    assert_eq!(second.trimmed.shortened, 2);
    assert!(serde_json::to_string(&second).unwrap().len() < 80_000);
    stack.finish().await;
}
