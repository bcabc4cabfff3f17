//! Damaged messages: what dispatchers and workers read of each other and of users is read or refused, without a panic.

#[path = "../../tests/shared/damaged.rs"]
mod strategy;

use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};

use self::strategy::damaged;
use crate::{
    AgentRef, AgentSpec, ClaimReply, ClaimRequest, ControlMessage, Delta, Heartbeat, HeartbeatReply, Job, Registration,
    ReleaseRequest, Report, ReportBatch, Submission, SubmitBatch, TaskSubmission, TurnReply, TurnRequest, limits,
};

/// True if a message is read and what it holds is good.
type Decoder = fn(&[u8]) -> bool;

const MESSAGES: [(Decoder, &str); 18] = [
    (read::<Job>, r#"{"call":"01a1f847531074f8a38521cea4297f44","attempt":4294967295,"tool":"订机票","bytes":120}"#),
    (
        reports,
        r#"{"worker":"box-1a2b3c","reports":[
        {"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1,"duration_ms":12,"output":{"a":[1,null,1e400000,"\u0000\ud800"]}},
        {"call":"01a1f847-5310-74f8-a385-21cea4297f45","attempt":2,"duration_ms":0,"output":null},
        {"call":"01a1f847-5310-74f8-a385-21cea4297f46","attempt":3,"duration_ms":9,"error":{"class":"invalid_arguments",
         "message":"no","details":[{"path":"/date","rule":"format","sent":"明天","allowed":"YYYY-MM-DD","hint":"2026-11-20"}],
         "retry_after_ms":5000,"effect_possible":false}}]}"#,
    ),
    (reports, r#"{"worker":"w","reports":[1,"x",{"call":1},{"output":1,"error":{"class":"timeout","message":""}}]}"#),
    (
        read::<ClaimRequest>,
        r#"{"claim":"5f0c9a52-7a3c-4a53-8f5f-0b1d0f2c9b11","worker":"box-1a2b3c","not_after":"2026-11-20T12:00:00Z","jobs":[
        {"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1,"tool":"a"},
        {"call":"01a1f847-5310-74f8-a385-21cea4297f45","attempt":2,"tool":"a"}]}"#,
    ),
    (
        read::<Heartbeat>,
        r#"{"worker":"box-1a2b3c","running":[{"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1,
        "claim":"5f0c9a52-7a3c-4a53-8f5f-0b1d0f2c9b11"}],"slots":8,"draining":true}"#,
    ),
    (
        read::<ReleaseRequest>,
        r#"{"worker":"box-1a2b3c","jobs":[{"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1,
        "claim":"5f0c9a52-7a3c-4a53-8f5f-0b1d0f2c9b11"}]}"#,
    ),
    (
        read::<Submission>,
        r#"{"tool":"get_weather","arguments":{"location":"Paris","days":2},"key":"k-1","conversation":"c",
        "timeout_ms":5000,"retry":{"max_attempts":3,"initial_ms":100,"factor":2.5,"cap_ms":1000,"deadline_ms":60000},"notify":true}"#,
    ),
    (
        submissions,
        r#"{"calls":[{"tool":"a","arguments":{}},{"tool":"b","arguments":"{\"x\":1,}","key":"k"},{"tool":"c"},7]}"#,
    ),
    (
        task,
        r#"{"input":"订一张机票","agent":{"model":"small","fallback_model":"large","system":"be brief",
        "tools":["get_*","book_flight","*a*b*"],"policy":"fallback","max_corrections":3,"fallback_after":0,"cut_off":"continue","language":"zh",
        "budgets":{"turns":5,"corrections":2,"tool_calls":9,"tokens":1000,"cost_usd":0.5,"seconds":60},
        "context_tokens":2000,"result_bytes":300,"max_tokens":100,"temperature":0.5,"templates":{"timeout.message":"{tool} is slow"}},
        "conversation":"c-1","key":"k"}"#,
    ),
    (task, r#"{"input":"hello","agent":"clerk"}"#),
    (
        read::<TurnReply>,
        r#"{"text":"I look","thought":"hm","calls":[{"name":"get_weather","arguments":"{\"city\":1}"}],
        "finish":"tool_calls","problem":"cut off","usage":{"input_tokens":3,"output_tokens":4,"cost_micros":5},
        "model":"m","provider":{"kind":"anthropic","thinking":[]}}"#,
    ),
    (
        read::<TurnReply>,
        r#"{"calls":[{"name":"t","arguments":"{}"}],"finish":"length","call_cut_off":true,
        "usage":{"output_tokens":4,"estimated_input_tokens":9,"estimated_cost_micros":5}}"#,
    ),
    (
        read::<TurnRequest>,
        r#"{"task":"01a1f847-5310-74f8-a385-21cea4297f44","turn":1,"messages":[
        {"role":"system","content":"s"},{"role":"user","content":"u","by_redial":true},
        {"role":"assistant","calls":[{"id":"c2_1","tool":"t","arguments":"{}"}],"thought":"x"},
        {"role":"tool","content":"{}","call_id":"c2_1","tool":"t","class":"timeout"}],
        "tools":[{"name":"t","parameters":{"type":"object"},"polling":true,"repairs":false}],
        "language":"zh","max_tokens":9,"temperature":1.0,"trimmed":{"tokens":1,"shortened":2,"left_out":3}}"#,
    ),
    (read::<Delta>, r#"{"turn":2,"attempt":1,"text":"a","thought":"b"}"#),
    (
        read::<ClaimReply>,
        r#"{"lease_ms":15000,"grants":[{"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1,"tool":"t",
        "arguments":{"a":"\ud83d\ude00"},"timeout_ms":1000,"effect":"keyed","idempotency_key":"k","tenant":"t","conversation":"c",
        "task":"01a1f847-5310-74f8-a385-21cea4297f45","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}]}"#,
    ),
    (
        read::<HeartbeatReply>,
        r#"{"lost":[{"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1,"claim":"5f0c9a52-7a3c-4a53-8f5f-0b1d0f2c9b11"}],
        "cancelled":[],"register":true,"at":"2026-11-20T12:00:00Z","lease_ms":15000}"#,
    ),
    (
        read::<ControlMessage>,
        r#"{"ingested":[{"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1,
        "claim":"5f0c9a52-7a3c-4a53-8f5f-0b1d0f2c9b11"}],"cancelled":[]}"#,
    ),
    (
        registration,
        r##"{"worker":"box-1a2b3c","started_at":"2026-11-20T12:00:00Z","slots":8,"version":"0.1.0","tools":[
        {"name":"get_weather","description":"The weather.","parameters":{"type":"object","properties":{
         "city":{"type":"string","pattern":"^[A-Z]+$"},"days":{"type":"integer","minimum":1},"when":{"$ref":"#/$defs/date"}},
         "required":["city"],"$defs":{"date":{"type":"string","format":"date"}}},"effect":"read","pool":"default",
         "timeout_ms":30000,"retry":{"initial_ms":500,"factor":2.0,"cap_ms":60000,"max_attempts":6,"deadline_ms":3600000},
         "polling":true,"sequential":false,"repairs":true}]}"##,
    ),
];

/// What is read can be written, and read again.
fn reread<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let document: T = serde_json::from_slice(bytes).ok()?;
    let written = serde_json::to_vec(&document).unwrap();
    let again = serde_json::from_slice::<T>(&written);
    assert!(again.is_ok(), "it cannot be read again: {}", String::from_utf8_lossy(&written));
    Some(document)
}

fn read<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> bool {
    reread::<T>(bytes).is_some()
}

fn reports(bytes: &[u8]) -> bool {
    let Some(batch) = reread::<ReportBatch>(bytes) else { return false };
    let depth = |report: &Report| report.output.as_ref().map(|output| limits::json_depth(output.get()));
    let reports = batch.reports.iter().filter_map(|raw| reread::<Report>(raw.get().as_bytes()));
    reports.filter(|report| depth(report) < Some(limits::MAX_DEPTH)).all(|report| report.outcome().is_ok())
}

fn submissions(bytes: &[u8]) -> bool {
    let calls = reread::<SubmitBatch>(bytes).map(|batch| batch.calls).unwrap_or_default();
    calls.iter().filter(|call| read::<Submission>(call.get().as_bytes())).count() > 0
}

/// Patterns of tools of any form are matched, and an error of an agent has a message.
fn task(bytes: &[u8]) -> bool {
    let Some(task) = reread::<TaskSubmission>(bytes) else { return read::<AgentSpec>(bytes) };
    let AgentRef::Inline(agent) = task.agent else { return true };
    agent.offers("get_weather");
    agent.check().map_err(|error| assert!(!error.is_empty(), "an error without a message")).is_ok()
}

fn registration(bytes: &[u8]) -> bool {
    reread::<Registration>(bytes).is_some_and(|registration| registration.tools.iter().all(|tool| tool.check().is_ok()))
}

/// A decoder, and a damaged message for it.
fn decoder() -> impl Strategy<Value = (usize, Vec<u8>)> {
    (0..MESSAGES.len()).prop_flat_map(|n| (Just(n), damaged([MESSAGES[n].1])))
}

proptest! {
    // All messages share them.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 8, ..ProptestConfig::default() })]

    #[test]
    fn damaged_messages_are_read_or_refused((n, bytes) in decoder()) {
        (MESSAGES[n].0)(&bytes);
    }
}

/// Damage to what is refused anyway would test only the first line of a decoder.
#[test]
fn every_message_is_good() {
    for (decode, message) in MESSAGES {
        assert!(decode(message.as_bytes()), "{message}");
    }
}
