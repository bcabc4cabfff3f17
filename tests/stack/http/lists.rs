//! Lists over HTTP, and what is done with what they show.

use redial_proto::ToolEffect;
use redial_test_stack::Stack;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    client::Http,
    model::{model, says},
};

/// All entries of a list, page by page, and how many pages it had.
async fn all(http: &Http, path: &str, name: &str) -> (Vec<Value>, usize) {
    let (mut entries, mut token, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = http.get(&format!("{path}&page_token={token}")).await.must(200);
        entries.extend(page[name].as_array().unwrap().iter().cloned());
        pages += 1;
        page["next_page_token"].as_str().unwrap().clone_into(&mut token);
        if token.is_empty() {
            return (entries, pages);
        }
    }
}

#[tokio::test]
async fn an_ended_call_runs_again_over_http() {
    let stack = Stack::with_tool(ToolEffect::Read).await;
    let http = Http::open(&stack).await;
    let call = http.ended("/v1/calls", &json!({"tool": "tool", "arguments": {"fail": "auth"}})).await;
    let path = format!("/v1/calls/{}", call["call"].as_str().unwrap());
    let view = http.ended(&format!("{path}/redrive"), &json!({"arguments": {"output": "17"}})).await;
    assert_eq!((&view["state"], &view["output"]), (&json!("succeeded"), &json!(17)));
    let again = http.send(Method::POST, &format!("{path}/redrive")).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.must(202)["call"], view["call"], "without a body: as it was");
    let cancelled = http.send(Method::POST, &format!("{path}/cancel")).await.must(200);
    assert_eq!(cancelled["state"], "failed", "it stays as it is");
    let unknown = http.post("/v1/calls/01a1f813-c80f-740d-a05c-89d86eeddd01/redrive", &json!({})).await;
    unknown.problem(404, "call_not_found");

    // All that failed, by filter.
    for n in 0..5 {
        http.ended("/v1/calls", &json!({"tool": "tool", "arguments": {"fail": "auth", "n": n}})).await;
    }
    let body = json!({"filter": {"tool": "tool", "class": "auth"}, "rate": 1000});
    let answer = http.post_with("/v1/redrives", &body, &[("idempotency-key", "r1")]).await;
    let location = answer.headers["location"].to_str().unwrap().to_owned();
    let created = answer.must(202);
    let done = http.until(&location, |view| view["state"] == "done").await;
    assert_eq!((&done["matched"], &done["redriven"]), (&json!(5), &json!(5)), "{done}");
    let again = http.post_with("/v1/redrives", &body, &[("idempotency-key", "r1")]).await.must(202);
    assert_eq!(again, done, "the same request is the same redrive");
    assert_eq!(http.get("/v1/redrives").await.must(200)["redrives"][0]["redrive"], created["redrive"]);
    assert_eq!(http.send(Method::POST, &format!("{location}/cancel")).await.must(200)["state"], "done");
    http.get("/v1/redrives/01a1f813-c80f-740d-a05c-89d86eeddd01").await.problem(404, "redrive_not_found");
    let wrong = http.post("/v1/redrives", &json!({"filter": {}})).await;
    assert!(wrong.problem(422, "invalid_value").contains("one of these is needed"));

    let actions = http.get("/v1/actions?verb=redrives.create").await.must(200);
    let action = &actions["actions"][0];
    assert_eq!((&action["door"], &action["result"], &action["changed"]), (&json!("http"), &json!("done"), &json!(0)));
    stack.drained(std::time::Duration::from_secs(25)).await;
    stack.finish().await;
}

#[tokio::test]
async fn what_else_a_tenant_has_is_listed() {
    let stack = Stack::with_echo().await;
    let http = Http::open(&stack).await;
    let tools = http.get("/v1/tools").await.must(200);
    assert_eq!((&tools["tools"][0]["name"], &tools["tools"][0]["served"]), (&json!("echo"), &json!(true)), "{tools}");
    assert_eq!(http.get("/v1/tools/echo").await.must(200)["name"], "echo");
    http.get("/v1/tools/none").await.problem(404, "not_found");
    assert_eq!(http.get("/v1/agents").await.must(200), json!({"agents": [], "next_page_token": ""}));
    assert_eq!(http.get("/v1/workers").await.must(200)["workers"][0]["tools"], json!(["echo"]));
    assert_eq!(http.get("/v1/conversations").await.must(200)["conversations"], json!([]));
    http.get("/v1/conversations/none/messages").await.problem(404, "not_found");
    let wrong = http.get("/v1/conversations/a%00b/messages").await;
    assert!(wrong.problem(422, "invalid_value").contains("without control characters"));
    assert_eq!(http.get("/v1/tasks").await.must(200)["tasks"], json!([]));
    http.ended("/v1/calls", &json!({"tool": "echo", "arguments": {}})).await;
    let stats = http.get("/v1/statistics").await.must(200);
    assert_eq!((&stats["groups"][0]["tool"], &stats["groups"][0]["succeeded"]), (&json!("echo"), &json!(1)), "{stats}");
    http.get("/v1/statistics?since=2030-01-01T00:00:00Z").await.problem(422, "invalid_value");

    let intake = stack.intake(redial_proto::subjects::Intake::Calls);
    stack.queue().put(&intake, &json!({"tool": "echo", "argument": 1})).await.unwrap();
    let rejected = http.until("/v1/rejected", |list| list["rejected"] != json!([])).await["rejected"][0].take();
    assert_eq!(rejected["code"], "invalid_message", "{rejected}");
    assert_eq!(http.get(&format!("/v1/rejected/{}", rejected["id"])).await.must(200), rejected);
    http.get("/v1/rejected/999999").await.problem(404, "not_found");
    stack.finish().await;
}

#[tokio::test]
async fn conversations_are_listed_read_and_erased() {
    let mut stack = Stack::start().await;
    stack.play_models(vec![model("small", [says("Hello.")])]).await;
    let http = Http::open(&stack).await;
    for (n, conversation) in ["a", "b/ü", "c", "b/ü"].into_iter().enumerate() {
        let task =
            json!({"input": format!("Say hello {n}."), "agent": {"model": "small"}, "conversation": conversation});
        assert_eq!(http.ended("/v1/tasks", &task).await["state"], "succeeded");
    }
    let (conversations, _) = all(&http, "/v1/conversations?page_size=2", "conversations").await;
    let names: Vec<&str> = conversations.iter().map(|one| one["conversation"].as_str().unwrap()).collect();
    assert_eq!(names, ["b/ü", "c", "a"], "each once, by its newest task");
    assert_eq!((&conversations[0]["messages"], &conversations[1]["messages"]), (&json!(4), &json!(2)));
    let (tasks, pages) = all(&http, "/v1/tasks?page_size=3", "tasks").await;
    assert_eq!((tasks.len(), pages), (4, 2));
    assert_eq!(all(&http, "/v1/tasks?conversation=b/%C3%BC", "tasks").await.0.len(), 2);
    let path = "/v1/conversations/b%2F%C3%BC";
    let first = http.get(&format!("{path}/messages?page_size=1")).await.must(200);
    let token = first["next_page_token"].as_str().unwrap();
    http.get(&format!("/v1/conversations/a/messages?page_token={token}")).await.problem(422, "invalid_value");
    let (messages, pages) = all(&http, &format!("{path}/messages?page_size=3"), "messages").await;
    let read: Vec<(i64, &str)> =
        messages.iter().map(|one| (one["seq"].as_i64().unwrap(), one["content"].as_str().unwrap())).collect();
    assert_eq!(read, [(1, "Say hello 1."), (2, "Hello."), (3, "Say hello 3."), (4, "Hello.")]);
    assert_eq!(pages, 2);
    let cancel = format!("/v1/tasks/{}/cancel", tasks[0]["task"].as_str().unwrap());
    assert_eq!(http.send(Method::POST, &cancel).await.must(200)["state"], "succeeded", "it stays as it is");

    let erased = http.send(Method::DELETE, path).await.must(200);
    assert_eq!((&erased["done"], &erased["counts"]["tasks"]), (&json!(true), &json!(2)), "{erased}");
    http.get(&format!("{path}/messages")).await.problem(404, "not_found");
    assert_eq!(all(&http, "/v1/conversations?", "conversations").await.0.len(), 2);
    stack.finish().await;
}
