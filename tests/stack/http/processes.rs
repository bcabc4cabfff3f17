//! A gateway as a process of its own: how it starts, how it stops, and what it takes of clients that do not read.

use redial_proto::{ApiToken, Submission, ToolEffect, UserRole};
use redial_test_stack::{Stack, arguments, token, unique_path};
use serde_json::{Value, json};

use super::{
    access::waiting,
    client::Http,
    sse::{Sse, gateway_process, gateway_process_with},
};

#[tokio::test]
async fn after_sigterm_waits_and_streams_end_and_the_call_goes_on() {
    let stack = Stack::with_tool(ToolEffect::Read).await;
    let (gateway, url) = gateway_process(&stack).await;
    let hold = unique_path("hold");
    let call = stack.accepted(&Submission::new("tool", arguments(json!({"n": 1, "hold": hold})))).await;
    let path = format!("/v1/calls/{call}");
    let mut stream = Sse::open(&url, &format!("{path}/events"), None).await;
    stream.next_of("state").await;
    let (http, to) = (Http::at(&url), path.clone());
    let waits = tokio::spawn(async move { http.wait(&to, 60).await });
    waiting(&Http::at(&url), 2).await;
    gateway.terminate();
    let answer = waits.await.unwrap();
    assert_eq!((answer.status, &answer.headers["location"]), (202, &path.parse().unwrap()));
    while stream.next().await.is_some() {}
    assert!(stream.comment.contains("this gateway stops"), "it ends before the process: {}", stream.comment);
    assert!(gateway.ended().await.success(), "{}", gateway.output());
    std::fs::write(&hold, "").unwrap();
    stack.wait_for_end(call).await;
    stack.finish().await;
}

#[tokio::test]
async fn where_others_reach_it_a_gateway_needs_tokens() {
    let stack = Stack::start().await;
    let arguments = ["--listen", "0.0.0.0:0", "--without-token"];
    let gateway = stack.process(env!("CARGO_BIN_EXE_redial"), "gateway", &arguments);
    assert_eq!(gateway.ended().await.code(), Some(2), "{}", gateway.output());
    let said = gateway.output();
    assert!(said.contains("a gateway that listens on 0.0.0.0:0 asks for tokens; only on 127.0.0.1"), "{said}");
    stack.finish().await;
}

#[tokio::test]
async fn a_gateway_opens_as_many_files_as_the_system_allows() {
    let stack = Stack::start().await;
    let (gateway, _) = gateway_process(&stack).await;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", gateway.pid())).unwrap();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let files: Vec<&str> = files.split_whitespace().collect();
    assert_eq!(files[0], files[1], "the soft limit is the hard one");
    stack.finish().await;
}

/// The lines of a log with this message.
fn lines(log: &str, message: &str) -> Vec<Value> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line.to_string().contains(message)).collect()
}

#[tokio::test]
async fn the_log_has_a_line_for_each_request_if_wanted_and_one_for_each_peer_whose_tokens_were_refused() {
    let stack = Stack::start().await;
    let (gateway, url) = gateway_process_with(&stack, &["--access-log"]).await;
    let http = Http::at(&url);
    let reader = token(&stack.user("acme", "alice").await, &[UserRole::Read]).await;
    let answered = http.with_token(&reader.text()).get("/v1/calls/01a20236-ac46-7781-a3d0-49c0fb4d6170").await;
    let unknown = ApiToken::of_random(&[7; 40]);
    for _ in 0..3 {
        assert_eq!(http.with_token(&unknown.text()).get("/v1/calls").await.status, 401);
    }
    let quiet = gateway_process(&stack).await;
    Http::at(&quiet.1).get("/v1/calls").await.must(200);
    for (process, _) in [&(gateway, url), &quiet] {
        process.terminate();
        assert!(process.ended().await.success(), "{}", process.output());
        let log = process.output();
        if process.pid() == quiet.0.pid() {
            assert!(!log.contains("Answered a request") && !log.contains("Refused tokens"), "{log}");
            continue;
        }
        let requests = lines(&log, "Answered a request");
        assert_eq!(requests.len(), 4, "{log}");
        let text = requests[0].to_string();
        let id = answered.headers["x-request-id"].to_str().unwrap();
        for part in [id, "acme", reader.id.as_str(), "/v1/calls/{id}", "404"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(requests[1].to_string().contains("401"), "{}", requests[1]);
        let refused = lines(&log, "Refused tokens of a peer");
        assert_eq!(refused.len(), 1, "{log}");
        let text = refused[0].to_string();
        for part in ["127.0.0.1", "unknown 3", unknown.id.as_str(), "WARN"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    stack.finish().await;
}
