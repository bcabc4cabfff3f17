//! Functions of the client over HTTP.

use redial_test_stack::Stack;
use serde_json::json;

use super::{
    client::Http,
    model::{asks, model, says},
};

#[tokio::test]
async fn a_function_is_answered_over_http() {
    let mut stack = Stack::start().await;
    stack.play_models(vec![model("small", [asks([("ask", json!({}))]), says("Done.")])]).await;
    let http = Http::open(&stack).await;
    let task = json!({"input": "Go.", "agent": {"model": "small"}, "functions": [{"name": "ask"}]});
    let task = http.post("/v1/tasks", &task).await.must(202)["task"].as_str().unwrap().to_owned();
    let waits = format!("/v1/calls?task={task}&state=client_wait");
    let waits = http.until(&waits, |list| list["calls"] != json!([])).await;
    let call = waits["calls"][0]["call"].as_str().unwrap();
    let path = format!("/v1/calls/{call}/answer");
    let wrong = http.post(&path, &json!({})).await.problem(422, "invalid_value");
    assert!(wrong.contains("either output or error"), "{wrong}");
    // `null` is an answer.
    for _ in 0..2 {
        assert_eq!(http.post(&path, &json!({"output": null})).await.must(200)["state"], "succeeded");
    }
    http.post(&path, &json!({"output": 1})).await.problem(409, "wrong_state");
    let ended = http.wait(&format!("/v1/tasks/{task}"), 30).await.must(200);
    assert_eq!(ended["answer"], "Done.");
    stack.finish().await;
}
