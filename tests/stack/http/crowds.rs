//! Many streams and waiting requests on one gateway.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use redial_proto::{RetryOverride, Submission, ToolEffect};
use redial_testkit::{Stack, arguments, scripted_tool, unique_path, until};
use redial_tools::Tool;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    client::Http,
    sse::{gateway_process, memory},
};

/// Calls that are waited for.
const CALLS: usize = 50;
/// Streams, and as many waiting requests.
const EACH: usize = 1_000;

async fn ask(address: &str, path: &str, header: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{header}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn wait(address: &str, path: &str) -> TcpStream {
    ask(address, path, "Prefer: wait=60\r\n").await
}

/// The answer to a wait, which is sent again each time its minute is over, or the database is too busy.
async fn waited(mut wait_of: TcpStream, address: String, path: String) -> String {
    loop {
        let mut answer = String::new();
        wait_of.read_to_string(&mut answer).await.unwrap();
        if !["HTTP/1.1 202", "HTTP/1.1 503"].iter().any(|again| answer.starts_with(again)) {
            return answer;
        }
        wait_of = wait(&address, &path).await;
    }
}

#[tokio::test]
async fn a_thousand_streams_and_a_thousand_waits_take_little_memory() {
    let mut stack = Stack::start_leasing(Duration::from_mins(1)).await;
    stack.work(vec![scripted_tool("tool", ToolEffect::Read, &stack.ledger)]).await;
    let (gateway, url) = gateway_process(&stack).await;
    let address = url.strip_prefix("http://").unwrap();
    let hold = unique_path("hold");
    // Two minutes would not do on a slow machine.
    let retry = RetryOverride { deadline_ms: Some(900_000), ..RetryOverride::default() };
    let submission =
        |n| Submission { retry: Some(retry), ..Submission::new("tool", arguments(json!({"n": n, "hold": hold}))) };
    let calls = stack.call_all(&(0..CALLS).map(submission).collect::<Vec<_>>()).await;
    let (mut streams, mut waits) = (Vec::new(), Vec::new());
    for n in 0..EACH {
        let call = calls[n % CALLS];
        let mut stream = ask(address, &format!("/v1/calls/{call}/events"), "").await;
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        streams.push(stream);
    }
    for n in 0..EACH {
        let call = calls[n % CALLS];
        let path = format!("/v1/calls/{call}");
        let first = wait(address, &path).await;
        waits.push(tokio::spawn(waited(first, address.to_owned(), path)));
    }
    redial_telemetry::install_crypto();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    until("all streams are open, and the requests wait", async || {
        let page = http.get(format!("{url}/metrics")).send().await.ok()?.text().await.ok()?;
        let count = |name: &str| -> usize {
            page.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or_default()
        };
        // Each stream waits for its call, too. Where all of them took minutes to open, some waits are being sent again.
        let (streams, waiting) = (count("redial_gateway_streams "), count("redial_gateway_waiting "));
        (streams == EACH && waiting >= 2 * EACH - EACH / 10).then_some(())
    })
    .await;
    std::fs::write(&hold, "").unwrap();
    for (mut stream, wait) in streams.into_iter().zip(waits) {
        let mut events = String::new();
        stream.read_to_string(&mut events).await.unwrap();
        let answer = wait.await.unwrap();
        assert!(events.contains("id: end\nevent: end\ndata: {") && events.contains("id: 1.ended"), "{events}");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"state\":\"succeeded\""), "{answer}");
    }
    let most = memory(&gateway, "VmHWM");
    eprintln!("{EACH} streams and as many waits: {most} kB at most");
    assert!(most < 150 * 1024, "{most} kB");
    stack.finish().await;
}

/// Sends a wait again each time its minute is over, and counts that.
async fn waits_on(wait: RequestBuilder, again: Arc<AtomicUsize>) -> StatusCode {
    loop {
        let status = wait.try_clone().unwrap().send().await.unwrap().status();
        if status != StatusCode::ACCEPTED {
            return status;
        }
        again.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_hundred_waits_for_a_thousand_calls_read_only_what_has_ended() {
    const WAITS: usize = 100;
    const WAITED: usize = 1_000;
    let mut stack = Stack::start().await;
    stack.work(vec![Tool::echo()]).await;
    stack.stop_workers().await;
    stack.leaves_calls();
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    let calls: Vec<Submission> = (0..WAITED).map(|n| Submission::new("echo", arguments(json!({"n": n})))).collect();
    let calls = stack.call_all(&calls).await;
    let read = async || -> i64 {
        let rows =
            r"SELECT sum(idx_tup_fetch + seq_tup_read)::bigint FROM pg_stat_user_tables WHERE relname LIKE 'calls\_%'";
        sqlx::query_scalar(rows).fetch_one(stack.db()).await.unwrap()
    };
    let (wait, again) = (json!({"calls": calls}), Arc::new(AtomicUsize::new(0)));
    let wait = || http.request(Method::POST, "/v1/calls/wait").json(&wait).header("prefer", "wait=60");
    let waits: Vec<_> = (0..WAITS).map(|_| tokio::spawn(waits_on(wait(), Arc::clone(&again)))).collect();
    let line = format!("redial_gateway_waiting {}", WAITS * WAITED);
    until(&line, async || http.get("/metrics").await.text.lines().any(|one| one == line).then_some(())).await;
    until("they have looked", async || (read().await >= i64::try_from(WAITS * WAITED).unwrap()).then_some(())).await;
    let before = read().await;
    for call in &calls[..20] {
        http.post(&format!("/v1/calls/{call}/cancel"), &json!({})).await.must(200);
        let any = json!({"calls": [call], "until": "any"});
        http.post_with("/v1/calls/wait", &any, &[("prefer", "wait=30")]).await.must(200);
    }
    // Nothing is on record of what is not read; each of these lets the waits go on.
    for _ in 0..20 {
        http.get(&format!("/v1/calls/{}", calls[0])).await.must(200);
    }
    let after = read().await;
    eprintln!("{} rows were read while 20 calls ended", after - before);
    // The gateway itself looks at all calls from time to time, and each wait at its beginning.
    let allowed = 400_000 + i64::try_from(again.load(Ordering::Relaxed) * WAITED).unwrap();
    assert!(after - before < allowed, "{before} {after} {allowed}");
    assert!(waits.iter().all(|wait| !wait.is_finished()), "they wait for all");
    waits.iter().for_each(tokio::task::JoinHandle::abort);
    drop(gateway);
    stack.finish().await;
}
