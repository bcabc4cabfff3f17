//! Tasks with all that a timeline needs of them, and arguments that are checked before they run.

use redial_proto::ToolEffect;
use redial_test_stack::{Stack, scripted_tool};
use serde_json::json;

use super::{
    client::Http,
    model::{asks, model, says},
};

#[tokio::test]
async fn a_task_is_submitted_waited_for_and_told_with_its_attempts_its_turns_and_its_replay() {
    let mut stack = Stack::start().await;
    let fails_once = ("tool", json!({"n": 1, "fail": "unavailable", "times": 1}));
    stack.work(vec![scripted_tool("tool", ToolEffect::Keyed, &stack.ledger)]).await;
    stack.play_models(vec![model("small", [asks([fails_once, ("nothing", json!({}))]), says("Done.")])]).await;
    let http = Http::open(&stack).await;
    let body = json!({"input": "Do it.", "agent": {"model": "small", "tools": ["*"]}, "key": "do-17"});
    let answer = http.post("/v1/tasks", &body).await;
    let base = answer.headers["location"].to_str().unwrap().to_owned();
    let task = answer.must(202)["task"].as_str().unwrap().to_owned();
    assert_eq!(base, format!("/v1/tasks/{task}"));
    let view = http.wait(&base, 60).await.must(200);
    assert_eq!((&view["state"], &view["answer"]), (&"succeeded".into(), &"Done.".into()));
    let again = http.post_with("/v1/tasks", &body, &[("prefer", "wait=5")]).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.must(200), view);
    let wrong = http.post("/v1/tasks", &json!({"input": "x", "agent": "nobody"})).await;
    wrong.problem(422, "unknown_agent");
    let first = http.get(&format!("{base}/calls?page_size=2")).await.must(200);
    assert_eq!((&first["calls"][0]["call_index"], &first["calls"][1]["call_index"]), (&0.into(), &1.into()));
    let call = &first["calls"][1];
    assert_eq!((&call["tool"], &call["ran"], &call["attempts"]), (&"tool".into(), &"again_same_key".into(), &2.into()));
    assert_eq!(call["attempts_made"][0]["class"], "unavailable");
    assert!(call["attempts_made"][0]["retry_at"].is_string() && call["attempts_made"][1]["ended_at"].is_string());
    assert_eq!(call["arguments"]["fail"], "unavailable");
    let token = first["next_page_token"].as_str().unwrap();
    let next = http.get(&format!("{base}/calls?page_size=2&page_token={token}")).await.must(200);
    let (turn, index) = (&next["calls"][0]["turn"], &next["calls"][0]["call_index"]);
    assert!(turn.as_u64() > Some(1) || index.as_u64() > Some(1), "{next}");
    let later = http.get(&format!("{base}/calls?from_turn=2")).await.must(200);
    assert_eq!((&later["calls"][0]["turn"], &later["calls"][0]["call_index"]), (&2.into(), &0.into()), "{later}");
    let id = call["call"].as_str().unwrap();
    let record = http.get(&format!("/v1/calls/{id}")).await.must(200);
    assert_eq!((&record["turn"], &record["call_index"], &record["ran"]), (&1.into(), &1.into(), &call["ran"]));
    let steps = http.get(&format!("{base}/steps")).await.must(200)["steps"].as_array().unwrap().clone();
    let last = http.get(&format!("{base}/steps?last=2")).await.must(200);
    assert_eq!(last["steps"].as_array().unwrap().as_slice(), &steps[steps.len() - 2..]);
    assert_eq!(http.get(&format!("{base}/steps?after_step=1")).await.must(200)["steps"][0]["step"], 2);
    assert_eq!(http.get(&format!("{base}/steps?last=1000")).await.must(200)["steps"].as_array().unwrap(), &steps);
    for wrong in ["steps?last=0", "steps?last=1001", "steps?last=-1"] {
        http.get(&format!("{base}/{wrong}")).await.problem(422, "invalid_value");
    }
    assert_eq!(http.get(&format!("{base}/spec")).await.must(200)["spec"]["model"], "small");
    let seen = http.get(&format!("{base}/turns/1")).await.must(200);
    assert_eq!((&seen["model"], &seen["messages"][0]["content"]), (&"small".into(), &"Do it.".into()));
    assert_eq!(seen["reply"]["calls"][1]["name"], "nothing");
    http.get(&format!("{base}/turns/99")).await.problem(404, "not_found");
    http.get(&format!("{base}/turns/x")).await.problem(422, "invalid_value");
    let replay = http.get(&format!("{base}/replay")).await.must(200);
    assert_eq!((&replay["identical"], &replay["difference_count"]), (&true.into(), &0.into()));
    let record = http.get(&format!("{base}/record")).await;
    assert!(record.headers["content-disposition"].to_str().unwrap().contains(&task));
    assert_eq!(record.must(200)["task"], task);
    let nobody = "/v1/tasks/01a20236-ac46-7781-a3d0-49c0fb4d6170";
    for part in ["", "/calls", "/spec", "/turns/1", "/replay", "/record"] {
        http.get(&format!("{nobody}{part}")).await.problem(404, "task_not_found");
    }
    stack.finish().await;
}

#[tokio::test]
async fn arguments_are_checked_and_nothing_runs() {
    let mut stack = Stack::start().await;
    let mut tool = scripted_tool("count", ToolEffect::Read, &stack.ledger);
    tool.spec.parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    stack.work(vec![tool]).await;
    let http = Http::open(&stack).await;
    let check = async |arguments: &str| {
        let body: serde_json::Value = serde_json::from_str(&format!("{{\"arguments\": {arguments}}}")).unwrap();
        http.post("/v1/tools/count/check", &body).await.must(200)
    };
    assert_eq!(check("{\"n\": 1}").await["valid"], true);
    let repaired = check("{\"n\": \"2\"}").await;
    assert_eq!((&repaired["valid"], &repaired["arguments"]["n"]), (&true.into(), &2.into()));
    assert_eq!(repaired["repairs"][0]["kind"], "type");
    let wrong = check("{\"n\": \"two\"}").await;
    assert_eq!((&wrong["valid"], &wrong["errors"][0]["path"]), (&false.into(), &"/n".into()));
    http.post("/v1/tools/nothing/check", &json!({"arguments": {}})).await.problem(404, "not_found");
    assert_eq!(stack.count("calls").await, 0);
    stack.finish().await;
}
