//! Calls over HTTP.

use std::collections::BTreeSet;

use redial_proto::ToolEffect;
use redial_test_stack::{Stack, ToolEvent, scripted_tool, unique_path, until};
use redial_tools::Tool;
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Answer, Http};

#[tokio::test]
async fn a_call_is_submitted_waited_for_and_read() {
    let stack = Stack::with_echo().await;
    let http = Http::open(&stack).await;

    let (body, key) = (json!({"tool": "echo", "arguments": {"n": 1}}), ("idempotency-key", "order-17"));
    let first = http.post_with("/v1/calls", &body, &[key]).await;
    let location = first.headers["location"].to_str().unwrap().to_owned();
    let accepted = first.must(202);
    assert_eq!(location, format!("/v1/calls/{}", accepted["call"].as_str().unwrap()));
    assert_eq!(accepted["status"], "accepted");

    let ended = http.wait(&location, 30).await;
    assert_eq!(ended.headers["preference-applied"], "wait=30");
    let view = ended.must(200);
    assert_eq!(
        (&view["state"], &view["output"], &view["tool"]),
        (&"succeeded".into(), &json!({"n": 1}), &"echo".into())
    );
    assert_eq!(view["attempts_made"][0]["attempt"], 1);

    let again = http.post_with("/v1/calls", &body, &[key, ("prefer", "wait=5")]).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    let first_again = again.must(200);
    let other = http.post_with("/v1/calls", &json!({"tool": "echo", "arguments": {"n": 2}}), &[key]).await;
    other.problem(422, "idempotency_conflict");
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
    let http = Http::open(&stack).await;
    let body = json!({
        "tool": "tool", "arguments": {"n": "2", "fail": "business_rule"}, "key": "k", "conversation": "trip",
    });
    let ended = http.ended("/v1/calls", &body).await;
    let path = format!("/v1/calls/{}", ended["call"].as_str().unwrap());
    let again = http.ended(&format!("{path}/redrive"), &json!({"arguments": {"n": 3}})).await;
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
async fn a_wait_says_what_is_known_and_ends_with_any_or_all() {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("slow", ToolEffect::Read, &stack.ledger), Tool::echo()]).await;
    let http = Http::open(&stack).await;
    let hold = unique_path("hold");
    let slow = json!({"tool": "slow", "arguments": {"n": 1, "hold": hold}});
    let answer = http.post_with("/v1/calls", &slow, &[("prefer", "wait=1")]).await;
    assert_eq!(answer.headers["retry-after"], "0");
    let path = format!("/v1/calls/{}", answer.must(202)["call"].as_str().unwrap());
    let again = http.wait(&path, 1).await;
    let header = |name: &str| again.headers[name].to_str().unwrap();
    assert_eq!((header("retry-after"), header("location")), ("0", path.as_str()));
    again.must(202);

    let list = json!([{"tool": "echo", "arguments": {"n": 1}}, slow, {"tool": "echo", "argument": {}}]);
    let results = http.post("/v1/calls", &list).await.must(200)["results"].clone();
    assert_eq!(results[2]["status"], "rejected", "each is read on its own");
    assert!(results[2]["error"]["message"].as_str().unwrap().contains("argument"), "{results}");
    let calls = [&results[0]["call"], &results[1]["call"]];
    let any = http.ended("/v1/calls/wait", &json!({"calls": calls, "until": "any"})).await;
    assert_eq!((&any["calls"][0]["ended"], &any["calls"][1]["ended"]), (&true.into(), &false.into()));
    let all = json!({"calls": calls});
    assert_eq!(http.post("/v1/calls/wait", &all).await.must(202)["done"], false);
    // Without an event, which only whoever submits and waits gets: the database is looked at.
    let (waited, ()) = tokio::join!(http.ended("/v1/calls/wait", &all), async { std::fs::write(&hold, "").unwrap() });
    let ended = calls.map(|call| json!({"call": call, "state": "succeeded", "ended": true}));
    assert_eq!(waited, json!({"done": true, "calls": ended}));
    let unknown = json!({"calls": ["01a20236-ac46-7781-a3d0-49c0fb4d6170"]});
    let detail = http.post("/v1/calls/wait", &unknown).await.problem(404, "call_not_found");
    assert!(detail.contains("01a20236-ac46-7781-a3d0-49c0fb4d6170"));
    stack.drained(std::time::Duration::from_mins(1)).await;
    stack.finish().await;
}

#[tokio::test]
async fn what_was_accepted_is_never_answered_with_an_error_that_invites_to_send_it_again() {
    let mut stack = Stack::start_own().await;
    stack.work(vec![scripted_tool("slow", ToolEffect::Read, &stack.ledger)]).await;
    let http = Http::open(&stack).await;
    let hold = unique_path("hold");
    // An outage of minutes is possible on a machine in full use.
    let retry = json!({"deadline_ms": 900_000});
    let body = json!({"tool": "slow", "arguments": {"n": 1, "hold": hold}, "retry": retry});
    let request = http.request(Method::POST, "/v1/calls").json(&body).header("prefer", "wait=5");
    let waits = tokio::spawn(request.send());
    stack.ledger.reaches(ToolEvent::Started, 1).await;
    stack.servers.kill_postgres().await;
    let answer = Answer::read(waits.await.unwrap().unwrap()).await;
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
async fn a_stream_of_calls_is_answered_line_by_line() {
    let stack = Stack::with_echo().await;
    let http = Http::open(&stack).await;
    let line = |n: usize| match n {
        700 => "{not json".to_owned(),
        701 => format!("{}1{}", "[".repeat(200), "]".repeat(200)),
        _ => json!({"tool": "echo", "arguments": {"n": n}}).to_string(),
    };
    let body: String = (0..2_500).map(|n| line(n) + if n % 7 == 0 { "\r\n\n" } else { "\n" }).collect();
    let request = http.request(Method::POST, "/v1/calls").header("content-type", "application/x-ndjson").body(body);
    let answer = Answer::of(request).await;
    assert_eq!((answer.status, answer.headers["content-type"].as_bytes()), (200, &b"application/x-ndjson"[..]));
    let results: Vec<Value> = answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 2_500);
    assert_eq!(results[700]["error"]["code"], "invalid_message");
    assert_eq!(results[701]["error"]["code"], "too_large");
    let calls: BTreeSet<&str> = results.iter().filter_map(|result| result["call"].as_str()).collect();
    assert_eq!(calls.len(), 2_498);
    stack.drained(std::time::Duration::from_mins(1)).await;
    stack.finish().await;
}

#[tokio::test]
async fn a_refused_call_is_a_problem_that_a_model_can_read() {
    let mut stack = Stack::start().await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let mut tool = Tool::echo();
    tool.spec.parameters = schema;
    stack.work(vec![tool]).await;
    let http = Http::open(&stack).await;
    let answer = http.post("/v1/calls", &json!({"tool": "echo", "arguments": {"n": "two"}})).await;
    answer.problem(422, "invalid_arguments");
    let error = &answer.body["errors"][0];
    assert_eq!((&error["pointer"], &error["rule"], &error["sent"]), (&"/n".into(), &"type".into(), &"two".into()));
    assert!(error["allowed"].as_str().unwrap().contains("integer"), "{error}");
    assert_eq!(answer.body["feedback"]["status"], "error");
    let call = answer.body["call"].as_str().unwrap();
    assert_eq!(http.get(&format!("/v1/calls/{call}")).await.must(200)["state"], "refused", "it is on record");
    let answer = http.post("/v1/calls", &json!({"tool": "ecko", "arguments": {}})).await;
    let detail = answer.problem(422, "unknown_tool");
    assert!(detail.contains("echo"), "{detail}");
    stack.finish().await;
}
