//! One message of each kind that the processes of Redial send one another.

use std::{collections::BTreeMap, fs};

use redial_proto::{
    ApiError, CallId, CallState, ClaimId, ClaimJob, ClaimReply, ClaimRequest, Code, ContractRange, ControlMessage,
    Delta, DeltaPosition, ErrorClass, Failure, FieldError, Finish, Grant, GrantRef, Heartbeat, HeartbeatReply, Job,
    JobRef, Language, Message, MessageCall, Pack, PackedJob, Registered, Registration, ReleaseReply, ReleaseRequest,
    ReplyCall, Report, ReportBatch, RetryPolicy, ReturnedPack, Role, TaskId, TaskNotice, TaskState, ToolEffect,
    ToolOffer, ToolSpec, Trimmed, TurnReply, TurnRequest, WholeText, WorkerId, tolerant, webhook::Delivery,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::to_raw_value};
use uuid::Uuid;

use crate::{folders, own_folder, updates};

/// Fields of samples that this version does not read any more, each as `<message>/<path>`.
const UNREAD: [&str; 0] = [];

/// A message as this version writes it, and how it reads one: what it would write of it.
struct Sample {
    name: &'static str,
    written: String,
    read: fn(&str) -> Result<Value, serde_json::Error>,
}

fn sample<T: Serialize + DeserializeOwned>(name: &'static str, message: &T) -> Sample {
    let read = |json: &str| as_written(&serde_json::from_str::<T>(json)?);
    Sample { name, written: serde_json::to_string_pretty(message).unwrap() + "\n", read }
}

/// A message with parts that users fill in, read as the dispatchers read it.
fn with_parts_of_users<T: Serialize + DeserializeOwned>(name: &'static str, message: &T) -> Sample {
    Sample { read: |json| as_written(&tolerant::from_str::<T>(json)?), ..sample(name, message) }
}

fn as_written<T: Serialize>(message: &T) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&serde_json::to_string(message)?)
}

impl Sample {
    /// Reads a message; panics if anything of it is lost.
    fn check(&self, json: &str, of: &str) {
        let read = (self.read)(json).unwrap_or_else(|error| panic!("{of} cannot be read any more: {error}"));
        let lost = lost(&serde_json::from_str(json).unwrap(), &read, self.name);
        let lost: Vec<_> = lost.iter().filter(|path| !UNREAD.contains(&path.as_str())).collect();
        assert!(lost.is_empty(), "{of} is read without {lost:?}");
    }
}

/// The paths of fields whose values are not in what was read. New ones may be there.
fn lost(sample: &Value, read: &Value, path: &str) -> Vec<String> {
    match (sample, read) {
        (Value::Object(fields), Value::Object(read)) => {
            let of_field = |(name, value)| {
                let path = format!("{path}/{name}");
                read.get(name).map_or_else(|| vec![path.clone()], |read| lost(value, read, &path))
            };
            fields.iter().flat_map(of_field).collect()
        }
        (Value::Array(items), Value::Array(read)) if items.len() == read.len() => {
            let pairs = items.iter().zip(read).enumerate();
            pairs.flat_map(|(n, (item, read))| lost(item, read, &format!("{path}/{n}"))).collect()
        }
        _ if sample == read => Vec::new(),
        _ => vec![path.to_owned()],
    }
}

const CALL: CallId = CallId(Uuid::from_u128(0x01a2_0236_ac46_7781_a3d0_49c0_fb4d_6170));
const TASK: TaskId = TaskId(Uuid::from_u128(0x01a2_0236_ac46_7781_a3d0_49c0_fb4d_6171));
const CLAIM: ClaimId = ClaimId(Uuid::from_u128(0x9f1c_22aa_4d4e_4b0e_8a11_0102_0304_0506));
const NOW: &str = "2026-11-26T08:00:00Z";

fn worker() -> WorkerId {
    "tools-0123456789ab".parse().unwrap()
}

fn grant_ref() -> GrantRef {
    GrantRef { call: CALL, attempt: 1, claim: CLAIM }
}

fn failure() -> Failure {
    let rule = FieldError {
        path: "/seats".to_owned(),
        rule: "maximum".to_owned(),
        sent: Some(json!(9)),
        allowed: "at most 5".to_owned(),
        hint: Some("book twice".to_owned()),
    };
    let failure = Failure::new(ErrorClass::InvalidArguments, "too many seats").with_details(vec![rule]);
    failure.retry_after_ms(1000).with_diagnostics("exit code 2").without_effect()
}

fn tool() -> ToolSpec {
    ToolSpec {
        description: "Books a trip.".to_owned(),
        parameters: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
        effect: ToolEffect::Keyed,
        retry: RetryPolicy { max_attempts: 3, ..RetryPolicy::default() },
        sequential: true,
        ..ToolSpec::named("book")
    }
}

fn all() -> Vec<Sample> {
    let mut all = of_jobs();
    all.extend(of_reports());
    all.extend(of_models());
    all
}

fn of_jobs() -> Vec<Sample> {
    let (job_ref, at) = (JobRef { call: CALL, attempt: 1 }, Some(NOW.parse().unwrap()));
    let pack = Pack { tool: "book".to_owned(), jobs: vec![PackedJob { call: CALL, attempt: 2, bytes: 17 }] };
    let grant = Grant {
        call: CALL,
        attempt: 1,
        tool: "book".to_owned(),
        arguments: to_raw_value(&json!({"city": "Paris"})).unwrap(),
        apart: false,
        timeout_ms: 30_000,
        effect: ToolEffect::Keyed,
        idempotency_key: CALL.to_string(),
        tenant: "acme".to_owned(),
        conversation: Some("trip-9".to_owned()),
        task: Some(TASK),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
    };
    let claim = ClaimRequest {
        claim: CLAIM,
        worker: worker(),
        jobs: vec![ClaimJob { call: CALL, attempt: 1, tool: "book".to_owned() }],
        payloads: true,
        returned: vec![ReturnedPack { consumer: "default".to_owned(), pack: pack.clone() }],
    };
    let registration = Registration {
        worker: worker(),
        started_at: NOW.parse().unwrap(),
        slots: 16,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        contract: ContractRange::OURS,
        host: Some("desk".to_owned()),
        packs: true,
        tools: vec![tool()],
        other_tools: BTreeMap::from([("look".to_owned(), "default".to_owned())]),
    };
    let registered = Registered {
        contract: redial_proto::CONTRACT,
        consumers: BTreeMap::from([("default".to_owned(), "default+2".to_owned())]),
        waiting: BTreeMap::from([("book".to_owned(), vec!["its effect is laxer".to_owned()])]),
    };
    vec![
        sample("job", &Job { call: CALL, attempt: 1, tool: "book".to_owned(), bytes: 17 }),
        sample("pack", &pack),
        sample("claim_request", &claim),
        sample("claim_reply", &ClaimReply { lease_ms: 15_000, grants: vec![grant] }),
        with_parts_of_users("registration", &registration),
        sample("registered", &registered),
        sample(
            "heartbeat",
            &Heartbeat { worker: worker(), running: vec![job_ref], after: at, slots: 16, draining: true },
        ),
        sample(
            "heartbeat_reply",
            &HeartbeatReply { lost: vec![job_ref], cancelled: vec![job_ref], register: true, at },
        ),
        sample("release_request", &ReleaseRequest { worker: worker(), jobs: vec![grant_ref()] }),
        sample("release_reply", &ReleaseReply { released: 1 }),
    ]
}

fn of_reports() -> Vec<Sample> {
    let report = |output: Option<Value>, error: Option<Failure>| Report {
        call: CALL,
        attempt: 1,
        claim: CLAIM,
        duration_ms: 12,
        output: output.map(|output| to_raw_value(&output).unwrap()),
        error,
    };
    let (success, failed) = (report(Some(json!({"booked": true})), None), report(None, Some(failure())));
    let reports = vec![to_raw_value(&success).unwrap(), to_raw_value(&failed).unwrap()];
    let job_ref = JobRef { call: CALL, attempt: 1 };
    vec![
        sample("report_of_success", &success),
        sample("report_of_failure", &failed),
        sample("report_batch", &ReportBatch { worker: worker(), reports }),
        sample("control_message", &ControlMessage { ingested: vec![job_ref], cancelled: vec![job_ref] }),
        sample("api_error", &ApiError::new(Code::Unavailable, "try again")),
        sample("task_notice", &TaskNotice { task: TASK, step: 3, state: TaskState::Running }),
        sample("cancel_reply", &redial_proto::CancelReply { state: CallState::Running }),
    ]
}

/// What a model is shown: it asked for a call that was answered.
fn shown() -> Vec<Message> {
    let call = MessageCall { id: "c2_1".to_owned(), tool: "book".to_owned(), arguments: "{}".to_owned() };
    let asked =
        Message { thought: Some("Book it.".to_owned()), calls: vec![call], ..Message::text(Role::Assistant, "") };
    let answer = Message {
        call_id: Some("c2_1".to_owned()),
        tool: Some("book".to_owned()),
        class: Some(ErrorClass::BusinessRule),
        ..Message::text(Role::Tool, "sold out")
    };
    vec![Message::text(Role::System, "Be brief."), Message::text(Role::User, "Paris"), asked, answer]
}

fn of_models() -> Vec<Sample> {
    let offer = ToolOffer {
        name: "book".to_owned(),
        description: "Books a trip.".to_owned(),
        parameters: tool().parameters,
        version: "1".to_owned(),
        polling: true,
        sequential: true,
        repairs: false,
    };
    let request = TurnRequest {
        task: TASK,
        turn: 2,
        messages: shown(),
        tools: vec![offer],
        language: Language::Zh,
        max_tokens: Some(100),
        temperature: Some(0.5),
        trimmed: Trimmed { tokens: 40, shortened: 1, left_out: 2 },
    };
    let reply = TurnReply {
        text: Some("Booked.".to_owned()),
        thought: Some("Done.".to_owned()),
        calls: vec![ReplyCall { name: "book".to_owned(), arguments: "{}".to_owned() }],
        finish: Finish::ToolCalls,
        problem: Some("two answers".to_owned()),
        call_cut_off: true,
        model: "small-1".to_owned(),
        provider: Some(json!({"signature": "s"})),
        ..TurnReply::default()
    };
    let delta = Delta {
        turn: 2,
        attempt: 1,
        text: "Boo".to_owned(),
        thought: "D".to_owned(),
        after: Some(DeltaPosition { text: 3, thought: 1 }),
        whole: Some(WholeText { text: "Boo".to_owned(), thought: "D".to_owned() }),
    };
    let delivery = Delivery {
        webhook: Uuid::from_u128(5),
        url: "https://example.com/hook".to_owned(),
        event: "evt_1".to_owned(),
        key: "key-1".to_owned(),
        version: 2,
        previous_until: Some(NOW.parse().unwrap()),
        body: to_raw_value(&json!({"type": "call.failed"})).unwrap(),
    };
    vec![
        sample("turn_request", &request),
        sample("turn_reply", &reply),
        sample("delta", &delta),
        sample("webhook_delivery", &delivery),
    ]
}

#[test]
fn messages_of_every_version_are_read() {
    let samples = all();
    if updates() {
        let folder = own_folder().join("messages");
        fs::create_dir_all(&folder).unwrap();
        for sample in &samples {
            fs::write(folder.join(format!("{}.json", sample.name)), &sample.written).unwrap();
        }
        // The rest of the samples is being written.
        return;
    }
    for folder in folders() {
        for file in fs::read_dir(folder.join("messages")).unwrap() {
            let path = file.unwrap().path();
            let (name, json) = (path.file_stem().unwrap().to_str().unwrap(), fs::read_to_string(&path).unwrap());
            let sample = samples.iter().find(|sample| sample.name == name);
            let sample = sample.unwrap_or_else(|| panic!("{} is of no kind that this version reads", path.display()));
            sample.check(&json, &path.display().to_string());
        }
    }
    let of_first = folders()[0].join("messages");
    assert!(fs::read_dir(of_first).unwrap().count() >= 20, "the samples of the first version are complete");
}

/// Data, in which a field means what its owner wants.
const DATA: [&str; 9] =
    ["arguments", "output", "parameters", "provider", "body", "consumers", "waiting", "other_tools", "sent"];

/// Adds a field to every object of a message.
fn with_new_fields(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(with_new_fields),
        Value::Object(fields) => {
            fields
                .iter_mut()
                .filter(|(name, _)| !DATA.contains(&name.as_str()))
                .for_each(|(_, one)| with_new_fields(one));
            fields.insert("of_a_newer_version".to_owned(), json!({"a": [1]}));
        }
        _ => {}
    }
}

#[test]
fn fields_that_a_newer_version_adds_are_ignored_in_every_message() {
    for sample in all() {
        let mut message: Value = serde_json::from_str(&sample.written).unwrap();
        with_new_fields(&mut message);
        let json = message.to_string();
        assert!(json.contains("of_a_newer_version"));
        let read = (sample.read)(&json).unwrap_or_else(|error| panic!("{}: {error}", sample.name));
        let lost = lost(&serde_json::from_str(&sample.written).unwrap(), &read, sample.name);
        assert!(lost.is_empty(), "{lost:?}");
    }
}

#[test]
fn a_field_that_is_dropped_renamed_or_changed_is_lost() {
    let sample = json!({"job": {"call": 1, "tool": "t"}, "jobs": [{"bytes": 7}, {"bytes": null}]});
    let renamed = json!({"job": {"call": 2, "name": "t"}, "jobs": [{"bytes": 7, "new": 1}, {}]});
    assert_eq!(lost(&sample, &renamed, "pack"), ["pack/job/call", "pack/job/tool", "pack/jobs/1/bytes"]);
    assert_eq!(lost(&sample, &sample, "pack"), Vec::<String>::new());
}
