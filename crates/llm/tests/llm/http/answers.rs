//! Responses of providers, and the replies that they become.

use redial_proto::{Finish, ReplyCall, limits::MAX_REPLY};
use redial_testkit::{Reply, ScriptedHttp};
use serde_json::{Value, json};

use super::{KEY, ask, asked, model, path, stream};

#[tokio::test]
async fn a_request_carries_key_headers_and_body() {
    for (provider, key) in [("openai", "authorization"), ("anthropic", "x-api-key"), ("react", "authorization")] {
        let server = ScriptedHttp::start().await;
        server.script(path(provider), [Reply::json("{\"choices\":[],\"content\":[]}")]);
        model(&server, provider, "stream = false").ask(&asked(), |_| ()).await.unwrap();
        let request = server.arrived(1).await;
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", path(provider)));
        assert_eq!(request.header(key).unwrap().trim_start_matches("Bearer "), KEY);
        assert_eq!(request.header("x-team"), Some("team-canary"));
        assert_eq!(request.header("anthropic-version").is_some(), provider == "anthropic");
        assert_eq!(request.header("content-type"), Some("application/json"));
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!((&body["model"], body.get("stream")), (&json!("big"), None));
        assert_eq!(body.get("stop").is_some(), provider == "react");
    }
}

fn call(name: &str, arguments: &str) -> ReplyCall {
    ReplyCall { name: name.to_owned(), arguments: arguments.to_owned() }
}

/// Returns the alias of the second tool, as the server sees it.
async fn alias(provider: &str) -> String {
    let server = ScriptedHttp::start().await;
    server.script(path(provider), [Reply::json("{\"choices\":[],\"content\":[]}")]);
    model(&server, provider, "").ask(&asked(), |_| ()).await.unwrap();
    let body: Value = serde_json::from_slice(&server.arrived(1).await.body).unwrap();
    let tool = &body["tools"][1];
    tool["name"].as_str().or_else(|| tool["function"]["name"].as_str()).unwrap().to_owned()
}

#[tokio::test]
async fn an_openai_answer_in_pieces() {
    let events = include_str!("openai.txt").replace("ALIAS", &alias("openai").await);
    let (reply, deltas) = ask("openai", stream(&events)).await;
    let reply = reply.unwrap();
    assert_eq!(reply.calls, [call("get_weather", "{\"city\":\"Paris\"}"), call("订机票", "{}")]);
    assert_eq!((reply.text.as_deref(), reply.thought.as_deref()), (Some("I look."), Some("hm")));
    let end = (reply.finish, reply.usage.cost_micros, reply.model.as_str());
    assert_eq!(end, (Finish::ToolCalls, Some(70), "big-2026"));
    assert!(deltas.iter().all(|delta| delta.turn == 3));
    let pieces: Vec<_> = deltas.iter().map(|delta| (delta.thought.as_str(), delta.text.as_str())).collect();
    assert_eq!(pieces, [("hm", ""), ("", "I "), ("", "look.")]);
}

#[tokio::test]
async fn an_anthropic_answer_in_pieces() {
    let alias = alias("anthropic").await;
    let events = include_str!("anthropic.txt");
    let (reply, deltas) = ask("anthropic", stream(&events.replace("ALIAS", &alias))).await;
    let reply = reply.unwrap();
    assert_eq!(reply.calls, [call("get_weather", "{\"city\":\"Par"), call("订机票", "{}")]);
    let end = (reply.text.as_deref(), reply.finish, reply.usage.cost_micros);
    assert_eq!(end, (Some("I look."), Finish::Length, Some(70)));
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "sig"});
    assert_eq!(reply.provider, Some(json!({"kind": "anthropic", "thinking": [thinking]})));
    let pieces: Vec<_> = deltas.iter().map(|delta| (delta.thought.as_str(), delta.text.as_str())).collect();
    assert_eq!(pieces, [("hm", ""), ("", "I "), ("", "look.")]);
}

#[tokio::test]
async fn what_is_not_told_is_estimated() {
    for kind in ["openai", "react", "anthropic"] {
        let body = match kind {
            "anthropic" => json!({"content": [{"type": "text", "text": "Answer: It rains."}]}),
            _ => json!({"choices": [{"message": {"content": "Answer: It rains."}}]}),
        };
        let usage = ask(kind, Reply::json(&body.to_string())).await.0.unwrap().usage;
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_micros), (None, None, None));
        assert_eq!(usage.estimated_output_tokens, Some(8 + 5), "17 bytes, and the message");
        assert!(usage.estimated_input_tokens > Some(20), "{usage:?}");
        assert!(usage.estimated_cost_micros.is_some(), "the model has prices: {usage:?}");
        assert_eq!(usage.counted().turns_without_price, 0);
    }
    let endless = json!({"choices": [{"message": {"content": "x".repeat(7 * MAX_REPLY / 2)}}]}).to_string();
    let usage = ask("openai", Reply::json(&endless)).await.0.unwrap().usage;
    assert!(usage.estimated_output_tokens >= Some(100_000), "what was left out was paid for: {usage:?}");
}

#[tokio::test]
async fn a_react_answer() {
    let text = "Thought: look\nAction: 订机票\nAction Input: {\"city\": \"Par";
    let body = json!({"choices": [{"message": {"content": text}, "finish_reason": "length"}]});
    let reply = ask("react", Reply::json(&body.to_string())).await.0.unwrap();
    assert_eq!(reply.calls, [call("订机票", "{\"city\": \"Par")]);
    assert_eq!((reply.thought.as_deref(), reply.text, reply.finish), (Some("look"), None, Finish::Length));
}

#[tokio::test]
async fn a_call_that_the_provider_could_not_parse_goes_back_to_the_model() {
    for (generation, thought) in [("<function=f{}>", None), ("<think>hm</think><function=f{}>", Some("hm"))] {
        let error = json!({"message": "Failed.", "code": "tool_use_failed", "failed_generation": generation});
        let reply = Reply::status(400).body(json!({"error": error}).to_string());
        let reply = ask("openai", reply).await.0.unwrap();
        assert_eq!((reply.thought.as_deref(), reply.text.as_deref()), (thought, Some("<function=f{}>")));
        assert!(reply.problem.is_some());
    }
}

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    let text = "x".repeat(MAX_REPLY + 1);
    let whole = json!({"choices": [{"message": {"content": text}}]}).to_string();
    let chunk = json!({"choices": [{"delta": {"content": "y".repeat(MAX_REPLY / 4)}}]}).to_string();
    let deep = format!("{{\"choices\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
    let thoughts =
        json!({"choices": [{"delta": {"content": format!("<think>{}", "z".repeat(MAX_REPLY))}}]}).to_string();
    let thinking = ask("openai", stream(&[thoughts.as_str(), &chunk].join("\n"))).await.0.unwrap();
    assert!(thinking.text.is_none() && thinking.thought.unwrap().starts_with("zz") && thinking.problem.is_some());
    let thoughts = json!({"choices": [{"message": {"content": "", "reasoning_content": text}}]}).to_string();
    let thinking = ask("openai", Reply::json(&thoughts)).await.0.unwrap();
    assert!(thinking.text.is_none() && thinking.thought.unwrap().starts_with("xx") && thinking.problem.is_some());
    for reply in [Reply::json(&whole), stream(&[chunk.as_str(); 6].join("\n")), Reply::json(&deep)] {
        let reply = ask("openai", reply).await.0.unwrap();
        assert!(reply.problem.is_some() && serde_json::to_string(&reply).unwrap().len() < 5000, "{reply:?}");
    }
}
