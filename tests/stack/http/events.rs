//! Streams of events of calls and tasks: what is durable comes once, whatever dies in between.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use redial_proto::{
    AgentRef, AgentSpec, Budgets, Delta, Finish, ReplyCall, TaskId, TaskSubmission, ToolEffect, TurnReply, TurnRequest,
};
use redial_test_stack::{Stack, unique_path};
use redial_tools::{Context, Tool};
use reqwest::StatusCode;
use serde_json::json;

use super::{
    client::{Answer, Http},
    sse::{Event, Sse, gateway_process},
};

const TURNS: u32 = 10;
const CALLS: u32 = 100;
const KILLS: u32 = 3;

/// A model that asks for many calls in each turn, and answers in the end: not before readers have lost this many gateways.
fn busy_model(kills: &Arc<AtomicU32>) -> Tool {
    let kills = Arc::clone(kills);
    Tool::new("busy", move |request: TurnRequest| turn(request, Arc::clone(&kills)))
}

async fn turn(request: TurnRequest, kills: Arc<AtomicU32>) -> TurnReply {
    while kills.load(Ordering::Relaxed) < (request.turn / 3).min(KILLS) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    if request.turn > TURNS {
        return TurnReply { text: Some("Done.".to_owned()), ..TurnReply::default() };
    }
    let call = |n| ReplyCall { name: "echo".to_owned(), arguments: json!({"n": request.turn * 1_000 + n}).to_string() };
    TurnReply { calls: (0..CALLS).map(call).collect(), finish: Finish::ToolCalls, ..TurnReply::default() }
}

fn task(model: &str) -> TaskSubmission {
    let budgets = Budgets { turns: 100, tool_calls: 10_000, ..Budgets::default() };
    let agent = AgentSpec { tools: vec!["*".into()], budgets, ..AgentSpec::new(model) };
    TaskSubmission::new("Go.", AgentRef::Inline(Box::new(agent)))
}

/// The ids that the record says, in order.
async fn ids_on_record(stack: &Stack, task: TaskId) -> Vec<String> {
    let of = format!("FROM task_steps WHERE task_id = '{task}' ORDER BY n");
    let rows: Vec<(i32, i32)> = stack.rows(&format!("SELECT n, jsonb_array_length(to_jsonb(decisions)) {of}")).await;
    let ids = rows.iter().flat_map(|(n, decisions)| (0..=*decisions).map(move |i| format!("{n}.{i}")));
    ids.chain(["end".to_owned()]).collect()
}

#[tokio::test]
async fn every_event_comes_once_while_gateways_are_killed() {
    let mut stack = Stack::with_echo().await;
    let kills = Arc::new(AtomicU32::new(0));
    stack.play_models(vec![busy_model(&kills)]).await;
    let mut gateways = vec![gateway_process(&stack).await, gateway_process(&stack).await];
    let task = stack.task(&task("busy")).await;
    let path = format!("/v1/tasks/{task}/events");
    let mut seen = Vec::<Event>::new();
    while seen.last().is_none_or(|last| last.name != "end") {
        let (process, url) = gateways.remove(0);
        let after = seen.last().and_then(|last| last.id.clone());
        let mut stream = Sse::open(&url, &path, after.as_deref()).await;
        let until = seen.len() + 700;
        while seen.len() < until
            && let Some(event) = stream.next().await
        {
            seen.extend(event.id.is_some().then_some(event));
        }
        process.kill().await;
        kills.fetch_add(1, Ordering::Relaxed);
        // What had arrived before.
        while let Some(event) = stream.next().await {
            seen.extend(event.id.is_some().then_some(event));
        }
        gateways.push(gateway_process(&stack).await);
    }
    let ids: Vec<String> = seen.iter().map(|event| event.id.clone().unwrap()).collect();
    assert_eq!(ids, ids_on_record(&stack, task).await, "no gap, no duplicate, in order");
    assert!(kills.load(Ordering::Relaxed) >= KILLS, "{} events", ids.len());
    let messages = seen.iter().filter(|event| event.name == "message");
    let seqs: Vec<u64> = messages.clone().map(|message| message.data["seq"].as_u64().unwrap()).collect();
    let written = usize::try_from(TURNS * (CALLS + 1) + 2).unwrap();
    assert_eq!(seqs.len(), written, "each message");
    assert!(messages.clone().all(|message| message.data["role"].is_string() && message.data["task"] == json!(task)));
    let end = seen.last().unwrap();
    assert_eq!((&end.data["state"], &end.data["answer"]), (&"succeeded".into(), &"Done.".into()));
    stack.finish().await;
}

#[tokio::test]
async fn attempts_of_a_call_are_events_and_its_end_is_the_last() {
    let stack = Stack::with_tool(ToolEffect::Read).await;
    let (one, two) = (stack.serve_http().await, stack.serve_http().await);
    let http = Http::of(&one);
    let hold = unique_path("hold");
    let body = json!({
        "tool": "tool", "retry": {"initial_ms": 1, "cap_ms": 1},
        "arguments": {"n": 1, "hold": hold, "fail": "unavailable", "times": 2, "output": "{\n \"a\": 1\r\n}"},
    });
    let call = http.post("/v1/calls", &body).await.must(202)["call"].as_str().unwrap().to_owned();
    let path = format!("/v1/calls/{call}/events");
    let mut stream = Sse::open(&one.url, &path, None).await;
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    assert_eq!(
        (&stream.headers["cache-control"], &stream.headers["x-accel-buffering"]),
        (&"no-store".parse().unwrap(), &"no".parse().unwrap())
    );
    let state = stream.next_of("state").await;
    assert_eq!((state.id, &state.data["call"]), (None, &json!(call)));
    std::fs::write(&hold, "").unwrap();
    let first = stream.next_of("attempt").await;
    assert_eq!((first.id.as_deref(), &first.data["class"]), (Some("1.ended"), &"unavailable".into()));
    drop(stream);
    let rest = Sse::open(&two.url, &path, Some("1.ended")).await.rest().await;
    let ids: Vec<&str> = rest.iter().filter_map(|event| event.id.as_deref()).collect();
    assert_eq!(ids, ["2.ended", "3.ended", "end"], "on another gateway");
    assert_eq!(rest.last().unwrap().data["output"], json!({"a": 1}), "a result with line breaks is one line of data");
    let after = async |after: &str| http.get(&format!("{path}?after={after}")).await;
    let answer = after("end").await;
    assert_eq!((answer.status, answer.text.as_str()), (204, ""));
    assert_eq!(after("3.ended").await.text.matches("event: ").count(), 1, "only the end");
    for wrong in ["4.ended", "0.ended", "3.0", "x"] {
        let detail = after(wrong).await.problem(422, "invalid_value");
        assert!(detail.contains(wrong) && detail.contains("1.ended"), "{detail}");
    }
    let globex = stack
        .serve_http_with(|config| config.without_token = Some(("globex".parse().unwrap(), "bob".parse().unwrap())))
        .await;
    Http::of(&globex).get(&path).await.problem(404, "call_not_found");
    let task = format!("/v1/tasks/{call}/events");
    http.get(&task).await.problem(404, "task_not_found");
    stack.finish().await;
}

/// A model that writes one piece, waits for a file, writes the rest, and waits for the file [`end_of`] it.
fn writing_model(hold: PathBuf) -> Tool {
    Tool::new("writer", move |context: Context, request: TurnRequest| {
        let hold = hold.clone();
        async move {
            let write = |text: &str| {
                context.delta(Delta { turn: request.turn, text: text.to_owned(), ..Delta::default() });
            };
            write("It is ");
            exists(&hold).await;
            write("sunny.");
            exists(&end_of(&hold)).await;
            TurnReply { text: Some("It is sunny.".to_owned()), ..TurnReply::default() }
        }
    })
}

async fn exists(file: &Path) {
    while !file.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn end_of(hold: &Path) -> PathBuf {
    hold.with_extension("end")
}

#[tokio::test]
async fn the_text_so_far_comes_whole_after_a_reconnect() {
    let mut stack = Stack::start_leasing(Duration::from_secs(15)).await;
    let hold = unique_path("hold");
    stack.play_models(vec![writing_model(hold.clone())]).await;
    let (one, two) = (stack.serve_http().await, stack.serve_http().await);
    let task = stack.task(&task("writer")).await;
    let path = format!("/v1/tasks/{task}/events");
    let mut first = Sse::open(&one.url, &path, None).await;
    let turn = first.next_of("turn").await;
    let text = first.next_of("text").await;
    assert_eq!((text.id, &text.data["text"], &text.data["turn"]), (None, &"It is ".into(), &json!(1)));
    // The other gateway heard nothing of it.
    let mut second = Sse::open(&two.url, &path, turn.id.as_deref()).await;
    assert_eq!(second.next_of("text").await.data["text"], "It is ");
    std::fs::write(&hold, "").unwrap();
    for stream in [&mut first, &mut second] {
        let event = stream.next().await.unwrap();
        assert_eq!((event.name.as_str(), &event.data["text"]), ("delta", &"sunny.".into()));
    }
    // Once the end is on record, what is written is not told any more.
    std::fs::write(end_of(&hold), "").unwrap();
    for stream in [&mut first, &mut second] {
        assert_eq!(stream.next_of("message").await.data["content"], "It is sunny.");
        assert_eq!(stream.next_of("end").await.id.as_deref(), Some("end"));
        assert_eq!(stream.next().await, None);
    }
    let ended = Sse::ask(&one.url, &path, Some(("last-event-id", "end"))).await;
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    for wrong in ["99.0", "1.99", "2", "start"] {
        let answer = Answer::read(Sse::ask(&one.url, &path, Some(("last-event-id", wrong))).await).await;
        let detail = answer.problem(422, "invalid_value");
        assert!(detail.contains(wrong) && detail.contains("3.0"), "{detail}");
    }
    stack.finish().await;
}
