//! A gateway as a process of its own: how it starts, how it stops, and what it takes of clients that do not read.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use redial_proto::{Submission, ToolEffect};
use redial_testkit::{Process, Stack, arguments, scripted_tool, unique_path, until};
use serde_json::{Value, json};

use super::sse::{Sse, gateway_process, memory};

fn client() -> reqwest::Client {
    redial_telemetry::install_crypto();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

#[tokio::test]
async fn after_sigterm_waits_and_streams_end_and_the_call_goes_on() {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("tool", ToolEffect::Read, &stack.ledger)]).await;
    let (gateway, url) = gateway_process(&stack).await;
    let hold = unique_path("hold");
    let call = stack.accepted(&Submission::new("tool", arguments(json!({"n": 1, "hold": hold})))).await;
    let path = format!("/v1/calls/{call}");
    let mut stream = Sse::open(&url, &format!("{path}/events"), None).await;
    stream.next_of("state").await;
    let waits = tokio::spawn(client().get(format!("{url}{path}")).header("prefer", "wait=60").send());
    until("the request and the stream wait", async || {
        let page = client().get(format!("{url}/metrics")).send().await.ok()?.text().await.ok()?;
        page.lines().any(|line| line == "redial_gateway_waiting 2").then_some(())
    })
    .await;
    gateway.terminate();
    let answer = waits.await.unwrap().unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["location"]), (202, &path.parse().unwrap()));
    while stream.next().await.is_some() {}
    assert!(gateway.ended().await.success(), "{}", gateway.output());
    std::fs::write(&hold, "").unwrap();
    stack.wait_for_end(call).await;
    stack.finish().await;
}

#[tokio::test]
async fn where_others_reach_it_a_gateway_needs_tokens() {
    let stack = Stack::start().await;
    let gateway = Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
        command.args(["gateway", "--listen", "0.0.0.0:0", "--without-token"]);
        command.args(["--nats-url", stack.servers.nats_url(), "--database-url", stack.servers.database_url()]);
    });
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

/// Lines, none of them a submission, so that no database is in the way.
const LINES: usize = 400_000;
/// Lines of a piece of the body.
const PIECE: usize = 500;

#[tokio::test]
async fn of_a_client_that_does_not_read_no_more_lines_are_taken() {
    let stack = Stack::start().await;
    let (gateway, url) = gateway_process(&stack).await;
    let taken = Arc::new(AtomicUsize::new(0));
    let piece = format!("{{\"wrong\": \"{}\"}}\n", "x".repeat(80)).repeat(PIECE);
    let counted = taken.clone();
    let pieces = stream::iter(0..LINES / PIECE).map(move |_| {
        counted.fetch_add(PIECE, Ordering::Relaxed);
        Ok::<_, io::Error>(piece.clone())
    });
    let request = client().post(format!("{url}/v1/calls")).header("content-type", "application/x-ndjson");
    let answer = request.body(reqwest::Body::wrap_stream(pieces)).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    // It stands still once everything between them is full.
    let mut last = 0;
    until("no more is taken", async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = taken.load(Ordering::Relaxed);
        (std::mem::replace(&mut last, now) == now).then_some(())
    })
    .await;
    assert!(last < LINES, "all {last} lines were taken though nothing was read");
    let most = memory(&gateway, "VmHWM");
    assert!(most < 150 * 1024, "{most} kB");
    let (mut answers, mut rest) = (0, Vec::new());
    let mut body = answer.bytes_stream();
    while let Some(piece) = body.next().await {
        rest.extend_from_slice(&piece.unwrap());
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            assert!(answers % 1_000 != 0 || serde_json::from_slice::<Value>(&line).unwrap()["status"] == "rejected");
            answers += 1;
        }
    }
    assert_eq!(answers, LINES, "then each line is answered");
    stack.finish().await;
}
