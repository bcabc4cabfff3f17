//! Lists and searches over HTTP.

use redial_proto::{ToolEffect, UserRole};
use redial_test_stack::{Stack, scripted_tool, token};
use redial_tools::Tool;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::client::{Answer, Http};

/// All entries of a list, page by page, and how many pages it had.
async fn all(http: &Http, path: &str, name: &str) -> (Vec<Value>, usize) {
    let (mut entries, mut token, mut pages) = (Vec::new(), String::new(), 0);
    let separator = if path.contains('?') { '&' } else { '?' };
    loop {
        let page = http.get(&format!("{path}{separator}page_token={token}")).await.must(200);
        entries.extend(page[name].as_array().unwrap().iter().cloned());
        pages += 1;
        page["next_page_token"].as_str().unwrap().clone_into(&mut token);
        if token.is_empty() {
            return (entries, pages);
        }
        assert!(pages < 1_000, "the list does not end");
    }
}

#[tokio::test]
async fn calls_are_listed_and_searched() {
    let mut stack = Stack::start().await;
    stack.work(vec![Tool::echo(), scripted_tool("tool", ToolEffect::Read, &stack.ledger)]).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    let mut ids = Vec::new();
    for n in 0..25 {
        let city = if n % 5 == 0 { "Paris" } else { "Rome" };
        let body = json!({"tool": "echo", "arguments": {"city": city, "n": n}, "conversation": format!("c{}", n % 2),
                          "key": format!("k{n}")});
        let view = http.post_with("/v1/calls", &body, &[("prefer", "wait=30")]).await.must(200);
        ids.push(view["call"].as_str().unwrap().to_owned());
    }
    let body = json!({"tool": "tool", "arguments": {"fail": "auth"}});
    let failed = http.post_with("/v1/calls", &body, &[("prefer", "wait=30")]).await.must(200);
    assert_eq!(failed["state"], "failed");

    let (calls, pages) = all(&http, "/v1/calls?page_size=7", "calls").await;
    let listed: Vec<&str> = calls.iter().map(|call| call["call"].as_str().unwrap()).collect();
    let mut wanted: Vec<&str> = ids.iter().map(String::as_str).collect();
    wanted.push(failed["call"].as_str().unwrap());
    wanted.reverse();
    assert_eq!(listed, wanted, "each once, newest first");
    assert_eq!(pages, 4);
    for (query, count) in [
        ("tool=echo", 25),
        ("not_tool=echo", 1),
        ("state=failed", 1),
        ("not_state=failed", 25),
        ("not_state=failed&not_state=succeeded", 0),
        ("class=auth", 1),
        ("not_class=auth", 25),
        ("conversation=c1", 12),
        ("key=k3", 1),
        ("argument=/city%3DParis", 5),
        ("output=/city%3DParis&argument=/n%3D10", 1),
        ("contains=Rome&page_size=3", 20),
        ("since=2020-01-01T00:00:00Z&until=2021-01-01T00:00:00Z", 0),
        ("since=2020-01-01T00:00:00Z", 26),
        ("worker=nobody", 0),
        ("task=01a1f813-c80f-740d-a05c-89d86eeddd01", 0),
    ] {
        assert_eq!(all(&http, &format!("/v1/calls?{query}"), "calls").await.0.len(), count, "{query}");
    }
    let page = http.get("/v1/calls?contains=Rome&page_size=2").await.must(200);
    assert_eq!((&page["searched"]["complete"], page["calls"].as_array().unwrap().len()), (&json!(false), 2));
    assert!(page["searched"]["back_to"].is_string());

    wrong_queries_say_what_is_allowed(&http, page["next_page_token"].as_str().unwrap()).await;
    stack.finish().await;
}

/// `token`: of another list.
async fn wrong_queries_say_what_is_allowed(http: &Http, token: &str) {
    for (query, says) in [
        (format!("calls?contains=Paris&page_token={token}").as_str(), "page_token is not of this list"),
        ("calls?page_token=x", "page_token is not of this list"),
        ("calls?tool=a%00b", "U+0000"),
        ("calls?tool=a&tool=b", "tool is given 2 times"),
        ("calls?since=2h", "since is \"2h\"; allowed: a time with its zone"),
        ("calls?since=%2B200000-01-01T00:00:00Z", "allowed: 1970 to 9999"),
        ("calls?until=0001-01-01T00:00:00Z", "allowed: 1970 to 9999"),
        ("calls?page_size=x", "page_size is \"x\"; allowed: a whole number"),
        ("calls?page_size=1001", "allowed: 1 to 1000"),
        ("calls?argument=city", "allowed: POINTER=VALUE"),
        ("calls?tool=echo&model=small", "allowed: one of them"),
        ("calls?state=gone", "state is \"gone\"; allowed: ready, running, "),
        ("calls?look_ms=9", "look_ms is 9; allowed: 10 to 2000"),
        ("calls?not_effect=bad", "allowed: read"),
        ("calls?toool=echo", "unknown parameter \"toool\"; allowed: tool, not_tool, "),
        ("tasks?code=bad", "allowed: "),
        ("tasks?not_state=bad", "allowed: "),
        ("events/missed?since=-200000-01-01T00:00:00Z", "since"),
        ("events?after=-200000-01-01T00:00:00Z", "after"),
        ("tasks/01a20236-ac46-7781-a3d0-49c0fb4d6170/steps?since=3", "after_step"),
    ] {
        let problem = http.get(&format!("/v1/{query}")).await;
        let detail = problem.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_value");
        assert!(detail.contains(says), "{query}: {detail}");
    }
}

#[tokio::test]
async fn an_ended_call_runs_again_over_http() {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("tool", ToolEffect::Read, &stack.ledger)]).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    let failing = json!({"tool": "tool", "arguments": {"fail": "auth"}});
    let call = http.post_with("/v1/calls", &failing, &[("prefer", "wait=30")]).await.must(200);
    let path = format!("/v1/calls/{}/redrive", call["call"].as_str().unwrap());
    let edited = json!({"arguments": {"output": "17"}});
    let view = http.post_with(&path, &edited, &[("prefer", "wait=30")]).await.must(200);
    assert_eq!((&view["state"], &view["output"]), (&json!("succeeded"), &json!(17)));
    let again = Answer::of(http.request(Method::POST, &path).send().await.unwrap()).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.must(202)["call"], view["call"], "without a body: as it was");
    let cancel = format!("/v1/calls/{}/cancel", call["call"].as_str().unwrap());
    let request = http.request(Method::POST, &cancel);
    assert_eq!(Answer::of(request.send().await.unwrap()).await.must(200)["state"], "failed", "it stays as it is");
    let unknown = http.post("/v1/calls/01a1f813-c80f-740d-a05c-89d86eeddd01/redrive", &json!({})).await;
    unknown.problem(StatusCode::NOT_FOUND, "call_not_found");

    // All that failed, by filter.
    for n in 0..5 {
        let body = json!({"tool": "tool", "arguments": {"fail": "auth", "n": n}});
        http.post_with("/v1/calls", &body, &[("prefer", "wait=30")]).await.must(200);
    }
    let body = json!({"filter": {"tool": "tool", "class": "auth"}, "rate": 1000});
    let answer = http.post_with("/v1/redrives", &body, &[("idempotency-key", "r1")]).await;
    let location = answer.headers["location"].to_str().unwrap().to_owned();
    let created = answer.must(202);
    let done = redial_test_stack::until("the redrive is done", async || {
        let view = http.get(&location).await.must(200);
        (view["state"] == "done").then_some(view)
    })
    .await;
    assert_eq!((&done["matched"], &done["redriven"]), (&json!(5), &json!(5)), "{done}");
    let again = http.post_with("/v1/redrives", &body, &[("idempotency-key", "r1")]).await.must(202);
    assert_eq!(again, done, "the same request is the same redrive");
    assert_eq!(http.get("/v1/redrives").await.must(200)["redrives"][0]["redrive"], created["redrive"]);
    let cancel = http.request(Method::POST, &format!("{location}/cancel")).send().await.unwrap();
    assert_eq!(Answer::of(cancel).await.must(200)["state"], "done");
    http.get("/v1/redrives/01a1f813-c80f-740d-a05c-89d86eeddd01")
        .await
        .problem(StatusCode::NOT_FOUND, "redrive_not_found");
    let wrong = http.post("/v1/redrives", &json!({"filter": {}})).await;
    assert!(wrong.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_value").contains("one of these is needed"));

    let actions = http.get("/v1/actions?verb=redrives.create").await.must(200);
    let action = &actions["actions"][0];
    assert_eq!((&action["door"], &action["result"], &action["changed"]), (&json!("http"), &json!("done"), &json!(0)));
    stack.drained(std::time::Duration::from_secs(25)).await;
    stack.finish().await;
}

#[tokio::test]
async fn what_else_a_tenant_has_is_listed() {
    let mut stack = Stack::start().await;
    stack.work(vec![Tool::echo()]).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    let tools = http.get("/v1/tools").await.must(200);
    assert_eq!((&tools["tools"][0]["name"], &tools["tools"][0]["served"]), (&json!("echo"), &json!(true)), "{tools}");
    assert_eq!(http.get("/v1/tools/echo").await.must(200)["name"], "echo");
    http.get("/v1/tools/none").await.problem(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(http.get("/v1/agents").await.must(200), json!({"agents": [], "next_page_token": ""}));
    assert_eq!(http.get("/v1/workers").await.must(200)["workers"][0]["tools"], json!(["echo"]));
    assert_eq!(http.get("/v1/conversations").await.must(200)["conversations"], json!([]));
    http.get("/v1/conversations/none/messages").await.problem(StatusCode::NOT_FOUND, "not_found");
    let wrong = http.get("/v1/conversations/a%00b/messages").await;
    assert!(wrong.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_value").contains("without control characters"));
    assert_eq!(http.get("/v1/tasks").await.must(200)["tasks"], json!([]));
    let view = http.post_with("/v1/calls", &json!({"tool": "echo", "arguments": {}}), &[("prefer", "wait=30")]).await;
    view.must(200);
    let stats = http.get("/v1/statistics").await.must(200);
    assert_eq!((&stats["groups"][0]["tool"], &stats["groups"][0]["succeeded"]), (&json!("echo"), &json!(1)), "{stats}");
    let wrong = http.get("/v1/statistics?since=2030-01-01T00:00:00Z").await;
    wrong.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_value");

    let intake = stack.intake(redial_proto::subjects::Intake::Calls);
    stack.queue().put(&intake, &json!({"tool": "echo", "argument": 1})).await.unwrap();
    let rejected = redial_test_stack::until("it is rejected", async || {
        let list = http.get("/v1/rejected").await.must(200);
        list["rejected"].as_array().unwrap().first().cloned()
    })
    .await;
    assert_eq!(rejected["code"], "invalid_message", "{rejected}");
    assert_eq!(http.get(&format!("/v1/rejected/{}", rejected["id"])).await.must(200), rejected);
    http.get("/v1/rejected/999999").await.problem(StatusCode::NOT_FOUND, "not_found");
    stack.finish().await;
}

#[tokio::test]
async fn conversations_are_listed_read_and_erased() {
    let mut stack = Stack::start().await;
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("models.toml");
    std::fs::write(folder.path().join("script.toml"), "[[rule]]\ntext = \"Hello.\"\n").unwrap();
    std::fs::write(&models, "[models.small]\nprovider = \"script\"\nscript = \"script.toml\"\n").unwrap();
    stack.serve_models(&models).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    for (n, conversation) in ["a", "b/ü", "c", "b/ü"].into_iter().enumerate() {
        let task =
            json!({"input": format!("Say hello {n}."), "agent": {"model": "small"}, "conversation": conversation});
        let view = http.post_with("/v1/tasks", &task, &[("prefer", "wait=30")]).await.must(200);
        assert_eq!(view["state"], "succeeded");
    }
    let (conversations, _) = all(&http, "/v1/conversations?page_size=2", "conversations").await;
    let names: Vec<&str> = conversations.iter().map(|one| one["conversation"].as_str().unwrap()).collect();
    assert_eq!(names, ["b/ü", "c", "a"], "each once, by its newest task");
    assert_eq!((&conversations[0]["messages"], &conversations[1]["messages"]), (&json!(4), &json!(2)));
    let (tasks, pages) = all(&http, "/v1/tasks?page_size=3", "tasks").await;
    assert_eq!((tasks.len(), pages), (4, 2));
    assert_eq!(all(&http, "/v1/tasks?conversation=b/%C3%BC", "tasks").await.0.len(), 2);
    assert_eq!(all(&http, "/v1/tasks?state=failed", "tasks").await.0.len(), 0);
    let path = "/v1/conversations/b%2F%C3%BC";
    let first = http.get(&format!("{path}/messages?page_size=1")).await.must(200);
    let token = first["next_page_token"].as_str().unwrap();
    let foreign = http.get(&format!("/v1/conversations/a/messages?page_token={token}")).await;
    foreign.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_value");
    let (messages, pages) = all(&http, &format!("{path}/messages?page_size=3"), "messages").await;
    let read: Vec<(i64, &str)> =
        messages.iter().map(|one| (one["seq"].as_i64().unwrap(), one["content"].as_str().unwrap())).collect();
    assert_eq!(read, [(1, "Say hello 1."), (2, "Hello."), (3, "Say hello 3."), (4, "Hello.")]);
    assert_eq!(pages, 2);
    let cancel = http.request(Method::POST, &format!("/v1/tasks/{}/cancel", tasks[0]["task"].as_str().unwrap()));
    assert_eq!(Answer::of(cancel.send().await.unwrap()).await.must(200)["state"], "succeeded", "it stays as it is");

    let erased = Answer::of(http.request(Method::DELETE, path).send().await.unwrap()).await.must(200);
    assert_eq!((&erased["done"], &erased["counts"]["tasks"]), (&json!(true), &json!(2)), "{erased}");
    http.get(&format!("{path}/messages")).await.problem(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(all(&http, "/v1/conversations", "conversations").await.0.len(), 2);
    stack.finish().await;
}

#[tokio::test]
async fn lists_are_within_the_tenant_of_the_token() {
    let mut stack = Stack::start().await;
    stack.work(vec![Tool::echo()]).await;
    let gateway = stack.serve_http_with(|_| {}).await;
    let http = Http::of(&gateway);
    let (alice, bob) = (stack.user("acme", "alice").await, stack.user("globex", "bob").await);
    let acme = http.with_token(&token(&alice, &UserRole::ALL).await.text());
    let globex = http.with_token(&token(&bob, &UserRole::ALL).await.text());
    for n in 0..3 {
        let body = json!({"tool": "echo", "arguments": {"n": n, "who": "acme"}, "conversation": "c"});
        acme.post_with("/v1/calls", &body, &[("prefer", "wait=30")]).await.must(200);
    }
    let body = json!({"tool": "echo", "arguments": {"who": "globex"}, "conversation": "c"});
    let own = globex.post_with("/v1/calls", &body, &[("prefer", "wait=30")]).await.must(200);
    for query in ["", "tool=echo", "conversation=c", "contains=who", "not_tool=none", "state=succeeded"] {
        let list = globex.get(&format!("/v1/calls?{query}")).await.must(200);
        let calls = list["calls"].as_array().unwrap();
        assert_eq!((calls.len(), &calls[0]["call"]), (1, &own["call"]), "{query}");
        assert_eq!(list["searched"]["calls"], 1, "{query}: nobody learns how many calls others have");
    }
    let actions = globex.get("/v1/actions").await.must(200);
    assert!(actions["actions"].as_array().unwrap().iter().all(|action| action["user"] == "bob"), "{actions}");
    let stats = globex.get("/v1/statistics").await.must(200);
    assert_eq!(stats["groups"][0]["calls"], 1, "{stats}");
    globex.get("/v1/workers").await.problem(StatusCode::FORBIDDEN, "forbidden");
    let token_of_acme = acme.get("/v1/calls?page_size=1").await.must(200)["next_page_token"].clone();
    let stolen = globex.get(&format!("/v1/calls?page_token={}", token_of_acme.as_str().unwrap())).await;
    stolen.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_value");
    stack.finish().await;
}
