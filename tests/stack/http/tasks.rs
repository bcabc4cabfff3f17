//! Tasks over HTTP.

use redial_test_stack::Stack;
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::client::{Answer, Http};

#[tokio::test]
async fn a_task_is_submitted_waited_for_and_read() {
    let mut stack = Stack::start().await;
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("models.toml");
    std::fs::write(folder.path().join("script.toml"), "[[rule]]\ntext = \"Hello.\"\n").unwrap();
    std::fs::write(&models, "[models.small]\nprovider = \"script\"\nscript = \"script.toml\"\n").unwrap();
    stack.serve_models(&models).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    let task = json!({"input": "Say hello.", "agent": {"model": "small"}, "key": "hello-17"});
    let answer = http.post("/v1/tasks", &task).await;
    let location = answer.headers["location"].to_str().unwrap().to_owned();
    let accepted = answer.must(202);
    assert_eq!(location, format!("/v1/tasks/{}", accepted["task"].as_str().unwrap()));
    let request = http.request(Method::GET, &location).header("prefer", "wait=30");
    let view = Answer::of(request.send().await.unwrap()).await.must(200);
    assert_eq!((&view["state"], &view["answer"]), (&"succeeded".into(), &"Hello.".into()));
    let again = http.post_with("/v1/tasks", &task, &[("prefer", "wait=5")]).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.must(200), view);
    let report = http.get(&format!("{location}/steps?after_step=1")).await.must(200);
    assert_eq!(report["steps"][0]["step"], 2);
    let wrong = http.post("/v1/tasks", &json!({"input": "x", "agent": "nobody"})).await;
    wrong.problem(StatusCode::UNPROCESSABLE_ENTITY, "unknown_agent");
    http.get("/v1/tasks/01a20236-ac46-7781-a3d0-49c0fb4d6170").await.problem(StatusCode::NOT_FOUND, "task_not_found");
    stack.finish().await;
}
