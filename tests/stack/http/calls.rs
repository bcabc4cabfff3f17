//! Calls over HTTP.

use std::collections::BTreeSet;

use redial_proto::ToolEffect;
use redial_test_stack::{Stack, ToolEvent, scripted_tool, unique_path, until};
use redial_tools::Tool;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::client::{Answer, Http};

#[tokio::test]
async fn a_call_is_submitted_waited_for_and_read() {
    let mut stack = Stack::start().await;
    stack.work(vec![Tool::echo()]).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);

    let body = json!({"tool": "echo", "arguments": {"n": 1}, "key": "order-17"});
    let first = http.post("/v1/calls", &body).await;
    let location = first.headers["location"].to_str().unwrap().to_owned();
    let accepted = first.must(202);
    assert_eq!(location, format!("/v1/calls/{}", accepted["call"].as_str().unwrap()));
    assert_eq!(accepted["status"], "accepted");

    let request = http.request(Method::GET, &location).header("prefer", "wait=30");
    let ended = Answer::of(request.send().await.unwrap()).await;
    assert_eq!(ended.headers["preference-applied"], "wait=30");
    let view = ended.must(200);
    assert_eq!(
        (&view["state"], &view["output"], &view["tool"]),
        (&"succeeded".into(), &json!({"n": 1}), &"echo".into())
    );
    assert_eq!(view["attempts_made"][0]["attempt"], 1);

    let again = http.post_with("/v1/calls", &body, &[("prefer", "wait=5")]).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    let first_again = again.must(200);
    for field in ["call", "state", "output", "attempts_made", "submitted_at"] {
        assert_eq!(first_again[field], view[field], "the first answer again");
    }
    assert_eq!(http.get(&location).await.must(200), view);
    stack.finish().await;
}

#[tokio::test]
async fn a_call_is_shown_with_everything_on_record() {
    let mut stack = Stack::start().await;
    let mut tool = scripted_tool("tool", ToolEffect::Keyed, &stack.ledger);
    tool.spec.parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    stack.work(vec![tool]).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    let body = json!({
        "tool": "tool", "arguments": {"n": "2", "fail": "business_rule"}, "key": "k", "conversation": "trip",
    });
    let ended = http.post_with("/v1/calls", &body, &[("prefer", "wait=30")]).await.must(200);
    let path = format!("/v1/calls/{}", ended["call"].as_str().unwrap());
    let edited = json!({"arguments": {"n": 3}});
    let again = http.post_with(&format!("{path}/redrive"), &edited, &[("prefer", "wait=30")]).await.must(200);
    let record = http.get(&path).await.must(200);
    for (field, value) in [
        ("arguments", json!({"n": 2, "fail": "business_rule"})),
        ("effect", "keyed".into()),
        ("pool", "default".into()),
        ("key", "k".into()),
        ("conversation", "trip".into()),
        ("class", "business_rule".into()),
        ("redriven_as", again["call"].clone()),
        ("undeclared", json!(["/fail"])),
        ("cancel_requested", false.into()),
    ] {
        assert_eq!(record[field], value, "{field} of {record}");
    }
    let repair = &record["repairs"][0];
    assert_eq!((&repair["path"], &repair["before"]), (&json!("/n"), &json!("\"2\"")), "{record}");
    assert!(record["deadline_at"].is_string() && record.get("redrive_of").is_none(), "{record}");
    let new = http.get(&format!("/v1/calls/{}", again["call"].as_str().unwrap())).await.must(200);
    assert_eq!((&new["redrive_of"], &new["arguments"]), (&ended["call"], &json!({"n": 3})), "{new}");
    let chinese = http.get(&format!("{path}?language=zh")).await.must(200)["feedback"].to_string();
    assert_ne!(chinese, record["feedback"].to_string());
    assert!(!chinese.is_ascii(), "{chinese}");
    stack.finish().await;
}

#[tokio::test]
async fn a_wait_that_is_over_says_what_is_known() {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("slow", ToolEffect::Read, &stack.ledger)]).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    let hold = unique_path("hold");
    let body = json!({"tool": "slow", "arguments": {"n": 1, "hold": hold}});
    let answer = http.post_with("/v1/calls", &body, &[("prefer", "wait=1")]).await;
    assert_eq!(answer.headers["retry-after"], "0");
    let call = answer.must(202)["call"].as_str().unwrap().to_owned();
    let path = format!("/v1/calls/{call}");
    let again = Answer::of(http.request(Method::GET, &path).header("prefer", "wait=1").send().await.unwrap()).await;
    let header = |name: &str| again.headers[name].to_str().unwrap();
    assert_eq!((header("retry-after"), header("location")), ("0", path.as_str()));
    assert_eq!(again.must(202)["call"], call);
    until("the tool runs", async || {
        (http.get(&format!("/v1/calls/{call}")).await.must(200)["state"] == "running").then_some(())
    })
    .await;
    // Without an event, which only whoever submits and waits gets: the database is looked at.
    let wait = json!({"calls": [call], "until": "any"});
    let waiting = http.post_with("/v1/calls/wait", &wait, &[("prefer", "wait=30")]);
    let (waited, ()) = tokio::join!(waiting, async { std::fs::write(&hold, "").unwrap() });
    assert_eq!(waited.must(200), json!({"done": true, "calls": [{"call": call, "state": "succeeded", "ended": true}]}));
    stack.finish().await;
}

#[tokio::test]
async fn what_was_accepted_is_never_answered_with_an_error_that_invites_to_send_it_again() {
    let mut stack = Stack::start_own().await;
    stack.work(vec![scripted_tool("slow", ToolEffect::Read, &stack.ledger)]).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    let hold = unique_path("hold");
    // An outage of minutes is possible on a machine in full use.
    let retry = json!({"deadline_ms": 900_000});
    let body = json!({"tool": "slow", "arguments": {"n": 1, "hold": hold}, "retry": retry});
    let request = http.request(Method::POST, "/v1/calls").json(&body).header("prefer", "wait=5");
    let waits = tokio::spawn(request.send());
    stack.ledger.reaches(ToolEvent::Started, 1).await;
    stack.servers.kill_postgres().await;
    let answer = Answer::of(waits.await.unwrap().unwrap()).await;
    assert_eq!(answer.headers["preference-applied"], "wait=5");
    let location = answer.headers["location"].to_str().unwrap().to_owned();
    answer.must(202);
    stack.servers.start_postgres().await;
    std::fs::write(&hold, "").unwrap();
    let ended = async || {
        let call = http.get(&location).await;
        call.body["finished_at"].is_string().then_some(call)
    };
    let ended = until("the call has ended", ended).await;
    assert_eq!(ended.body["state"], "succeeded", "{}", ended.text);
    assert_eq!(stack.finish().await.calls.len(), 1);
}

#[tokio::test]
async fn any_and_all_of_a_batch_are_waited_for() {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("slow", ToolEffect::Read, &stack.ledger), Tool::echo()]).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    let hold = unique_path("hold");
    let list = json!([
        {"tool": "echo", "arguments": {"n": 1}},
        {"tool": "slow", "arguments": {"n": 2, "hold": hold}},
        {"tool": "echo", "argument": {}},
    ]);
    let results = http.post("/v1/calls", &list).await.must(200)["results"].clone();
    assert_eq!(results[2]["status"], "rejected", "each is read on its own");
    assert!(results[2]["error"]["message"].as_str().unwrap().contains("argument"), "{results}");
    let calls: Vec<&Value> = vec![&results[0]["call"], &results[1]["call"]];
    let any =
        http.post_with("/v1/calls/wait", &json!({"calls": calls, "until": "any"}), &[("prefer", "wait=30")]).await;
    let any = any.must(200);
    assert_eq!((&any["calls"][0]["ended"], &any["calls"][1]["ended"]), (&true.into(), &false.into()));
    let all = json!({"calls": calls});
    assert_eq!(http.post("/v1/calls/wait", &all).await.must(202)["done"], false);
    std::fs::write(&hold, "").unwrap();
    assert_eq!(http.post_with("/v1/calls/wait", &all, &[("prefer", "wait=30")]).await.must(200)["done"], true);
    let unknown = json!({"calls": ["01a20236-ac46-7781-a3d0-49c0fb4d6170"]});
    let detail = http.post("/v1/calls/wait", &unknown).await.problem(StatusCode::NOT_FOUND, "call_not_found");
    assert!(detail.contains("01a20236-ac46-7781-a3d0-49c0fb4d6170"));
    stack.finish().await;
}

#[tokio::test]
async fn a_stream_of_calls_is_answered_line_by_line() {
    let mut stack = Stack::start().await;
    stack.work(vec![Tool::echo()]).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    let line = |n: usize| match n {
        700 => "{not json".to_owned(),
        701 => format!("{}1{}", "[".repeat(200), "]".repeat(200)),
        _ => json!({"tool": "echo", "arguments": {"n": n}, "key": format!("k{}", n % 2_000)}).to_string(),
    };
    let body: String = (0..2_500).map(|n| line(n) + if n % 7 == 0 { "\r\n\n" } else { "\n" }).collect();
    let request = http.request(Method::POST, "/v1/calls").header("content-type", "application/x-ndjson").body(body);
    let answer = Answer::of(request.send().await.unwrap()).await;
    assert_eq!((answer.status, answer.headers["content-type"].as_bytes()), (200, &b"application/x-ndjson"[..]));
    let results: Vec<Value> = answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 2_500);
    assert_eq!(results[700]["error"]["code"], "invalid_message");
    assert_eq!(results[701]["error"]["code"], "too_large");
    for n in (0..2_000).filter(|n| ![700, 701].contains(n)) {
        let same_key = [Some(&results[n]), results.get(n + 2_000)];
        let (accepted, others): (Vec<&Value>, Vec<&Value>) =
            same_key.into_iter().flatten().partition(|result| result["status"] == "accepted");
        // Lines are written at the same time, so either of two with one key may be the first.
        assert_eq!(accepted.len(), 1, "{n}: {accepted:?} {others:?}");
        assert!(others.iter().all(|other| other["error"]["code"] == "idempotency_conflict"), "{n}: {others:?}");
    }
    let calls: BTreeSet<&str> = results.iter().filter_map(|result| result["call"].as_str()).collect();
    assert_eq!(calls.len(), 1_998);
    stack.drained(std::time::Duration::from_mins(1)).await;
    stack.finish().await;
}

#[tokio::test]
async fn equal_posts_at_once_are_one_call() {
    let mut stack = Stack::start().await;
    stack.work(vec![Tool::echo()]).await;
    let (one, two) = (stack.serve_http().await, stack.serve_http().await);
    let (one, two) = (Http::of(&one), Http::of(&two));
    let body = json!({"tool": "echo", "arguments": {"n": 1}});
    let posts = (0..50).map(|n| {
        let http = if n % 2 == 0 { &one } else { &two };
        http.post_with("/v1/calls", &body, &[("idempotency-key", "same"), ("prefer", "wait=30")])
    });
    let answers = futures_util::future::join_all(posts).await;
    let replayed = answers.iter().filter(|answer| answer.headers.contains_key("idempotent-replayed")).count();
    assert_eq!(replayed, 49, "one of them was first");
    let calls: BTreeSet<String> = answers.into_iter().map(|answer| answer.must(200)["call"].to_string()).collect();
    assert_eq!(calls.len(), 1);
    let other = json!({"tool": "echo", "arguments": {"n": 2}});
    let answer = one.post_with("/v1/calls", &other, &[("idempotency-key", "same")]).await;
    answer.problem(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_conflict");
    assert_eq!(stack.finish().await.calls.len(), 1);
}

#[tokio::test]
async fn a_refused_call_is_a_problem_that_a_model_can_read() {
    let mut stack = Stack::start().await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let mut tool = Tool::echo();
    tool.spec.parameters = schema;
    stack.work(vec![tool]).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    let answer = http.post("/v1/calls", &json!({"tool": "echo", "arguments": {"n": "two"}})).await;
    answer.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_arguments");
    let error = &answer.body["errors"][0];
    assert_eq!((&error["pointer"], &error["rule"], &error["sent"]), (&"/n".into(), &"type".into(), &"two".into()));
    assert!(error["allowed"].as_str().unwrap().contains("integer"), "{error}");
    assert_eq!(answer.body["feedback"]["status"], "error");
    let call = answer.body["call"].as_str().unwrap();
    assert_eq!(http.get(&format!("/v1/calls/{call}")).await.must(200)["state"], "refused", "it is on record");
    let answer = http.post("/v1/calls", &json!({"tool": "ecko", "arguments": {}})).await;
    let detail = answer.problem(StatusCode::UNPROCESSABLE_ENTITY, "unknown_tool");
    assert!(detail.contains("echo"), "{detail}");
    stack.finish().await;
}
