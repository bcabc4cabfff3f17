//! Large bodies and answers: few are in memory at a time, and who waits or listens holds none.

use std::time::Duration;

use futures_util::{StreamExt as _, future, stream};
use redial_proto::ToolEffect;
use redial_testkit::{Stack, scripted_tool, unique_path, until};
use redial_tools::Tool;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    client::{Answer, Http},
    sse::{gateway_process, memory},
};

/// One more than a token may have.
const TURNS: usize = 3;

fn large(hold: &std::path::Path) -> Value {
    json!({"tool": "slow", "arguments": {"hold": hold, "output": json!("x".repeat(1_200_000)).to_string()}})
}

#[tokio::test]
async fn who_waits_for_a_large_call_keeps_nobody_from_reading_it() {
    let mut stack = Stack::start_leasing(Duration::from_mins(1)).await;
    stack.work(vec![scripted_tool("slow", ToolEffect::Read, &stack.ledger)]).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    let hold = unique_path("hold");
    let accepted = http.post("/v1/calls", &large(&hold)).await.must(202);
    let path = format!("/v1/calls/{}", accepted["call"].as_str().unwrap());
    let wait = async || {
        let request = http.request(Method::GET, &path).header("prefer", "wait=60");
        Answer::of(request.send().await.unwrap()).await
    };
    let reads = async {
        let waits = format!("redial_gateway_waiting {TURNS}");
        until(&waits, async || http.get("/metrics").await.text.contains(&waits).then_some(())).await;
        // Each of them has looked.
        for _ in 0..TURNS {
            let record = http.get(&path).await.must(200);
            assert!(record["arguments"]["output"].as_str().is_some_and(|text| text.len() > 1_200_000));
            assert_ne!(record["state"], "succeeded");
        }
        std::fs::write(&hold, "").unwrap();
    };
    // Those that wait do not end before.
    let (waited, ()) = future::join(future::join_all((0..TURNS).map(|_| wait())), reads).await;
    for answer in waited {
        assert_eq!(answer.must(200)["state"], "succeeded");
    }
    stack.finish().await;
}

/// A stream of calls whose lines come from the sender.
fn lines(url: &str) -> (mpsc::UnboundedSender<String>, RequestBuilder) {
    redial_telemetry::install_crypto();
    let (sender, pieces) = mpsc::unbounded_channel::<String>();
    let pieces = stream::unfold(pieces, async |mut pieces| Some((Ok::<_, String>(pieces.recv().await?), pieces)));
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.post(format!("{url}/v1/calls")).header("content-type", "application/x-ndjson");
    (sender, request.body(reqwest::Body::wrap_stream(pieces)))
}

#[tokio::test]
async fn a_stream_of_calls_holds_a_large_line_until_it_is_submitted() {
    let mut stack = Stack::start_leasing(Duration::from_mins(1)).await;
    stack.work(vec![Tool::echo()]).await;
    let gateway = stack.serve_http().await;
    let http = Http::of(&gateway);
    let line = json!({"tool": "echo", "arguments": {"text": "x".repeat(1_200_000)}}).to_string() + "\n";
    let mut open = Vec::new();
    for _ in 0..TURNS {
        let (sender, request) = lines(&gateway.url);
        for half in [&line[..line.len() / 2], &line[line.len() / 2..]] {
            sender.send(half.to_owned()).unwrap();
        }
        let mut answers = request.send().await.unwrap().bytes_stream();
        let answer = answers.next().await.unwrap().unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["status"], "accepted", "{answer}");
        open.push((sender, answers, answer["call"].clone()));
    }
    for (sender, answers, call) in &mut open {
        http.get(&format!("/v1/calls/{}", call.as_str().unwrap())).await.must(200);
        // All of them were open meanwhile, and go on.
        sender.send(json!({"tool": "echo", "arguments": {}}).to_string() + "\n").unwrap();
        let answer: Value = serde_json::from_slice(&answers.next().await.unwrap().unwrap()).unwrap();
        assert_eq!(answer["status"], "accepted", "{answer}");
    }
    drop(open);
    stack.drained(Duration::from_mins(2)).await;
    stack.finish().await;
}

/// A line that is wrong is not submitted, so that no database is in the way.
#[tokio::test]
async fn a_stream_of_calls_keeps_nothing_of_a_large_line() {
    let stack = Stack::start().await;
    let (gateway, url) = gateway_process(&stack).await;
    let (line, before) = (format!("{}\n{{\"tool\": ", "x".repeat(15 << 20)), memory(&gateway, "VmRSS"));
    let mut open = Vec::new();
    for _ in 0..12 {
        let (sender, request) = lines(&url);
        sender.send(line.clone()).unwrap();
        let mut answers = request.send().await.unwrap().bytes_stream();
        let answer: Value = serde_json::from_slice(&answers.next().await.unwrap().unwrap()).unwrap();
        assert_eq!(answer["status"], "rejected", "{answer}");
        open.push((sender, answers));
    }
    let more = memory(&gateway, "VmRSS").saturating_sub(before);
    assert!(more < 60 * 1024, "{more} kB");
    stack.finish().await;
}
