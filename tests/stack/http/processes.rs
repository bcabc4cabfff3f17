//! A gateway as a process of its own: how it starts, how it stops, and what it takes of clients that do not read.

use redial_proto::{Submission, ToolEffect};
use redial_test_stack::{Stack, arguments, unique_path};
use serde_json::json;

use super::{
    access::waiting,
    client::Http,
    sse::{Sse, gateway_process},
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
