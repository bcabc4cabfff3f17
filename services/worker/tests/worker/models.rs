//! Models: calls like any other, with watchers, limits of their own and a pool of their own.

use redial_proto::{Delta, ErrorClass, Language, Message, Role, TaskId, Trimmed, subjects};
use redial_queue::Subscription;
use redial_worker::{Context, Tool, TurnReply, TurnRequest, Worker};
use serde_json::{Map, Value};

use crate::{
    dispatcher::{Dispatcher, Running, Said},
    tools, within,
};

/// A model that writes so many pieces, waits at a gate, and writes a last one.
fn writing(pieces: usize) -> (Tool, tools::Gate) {
    let (_, gate) = tools::gated("gate");
    let inner = gate.clone();
    let model = Tool::new("small", move |context: Context, _: Map<String, Value>| {
        let gate = inner.clone();
        async move {
            let piece = |text: &str| context.delta(Delta { turn: 3, text: text.to_owned(), ..Delta::default() });
            (0..pieces).for_each(|_| piece("na "));
            gate.pass().await;
            piece("batman");
            TurnReply { text: Some("whole".to_owned()), ..TurnReply::default() }
        }
    });
    (model, gate)
}

async fn next(deltas: &mut Subscription) -> Delta {
    let payload = within(5, deltas.next()).await.unwrap();
    serde_json::from_slice(&payload).unwrap()
}

#[tokio::test]
async fn watchers_see_an_answer_grow_in_few_messages() {
    let mut dispatcher = Dispatcher::start().await;
    let task = TaskId::generate();
    dispatcher.script().task = Some(task);
    let mut deltas = dispatcher.queue.subscribe(&subjects::task_deltas(task)).await.unwrap();
    dispatcher.queue.flush().await;
    let (model, gate) = writing(100);
    let chatty = Tool::new("chatty", async |context: Context, _: Map<String, Value>| {
        context.delta(Delta { text: "not for watchers".to_owned(), ..Delta::default() });
    });
    let worker = dispatcher.start_worker(Worker::new(dispatcher.config()).model(model).add(chatty)).await;
    dispatcher.submit("chatty").await;
    dispatcher.report().await;
    let job = dispatcher.submit_many("models", "model-small", 1, 2).await[0];
    // While it is being written, and all that came at once together: only a model writes for watchers.
    assert_eq!(next(&mut deltas).await, Delta { turn: 3, text: "na ".repeat(100), thought: String::new() });
    gate.open(1);
    let report = dispatcher.report().await;
    assert_eq!(report.job_ref(), job);
    let reply: TurnReply = serde_json::from_str(report.output.unwrap().get()).unwrap();
    assert_eq!(reply.text.as_deref(), Some("whole"));
    // What is left at the end is shown before the report.
    assert_eq!(next(&mut deltas).await.text, "batman");
    worker.stop().await;
}

/// Two models of one file; nobody can ask the second one, because its key is not set.
const MODELS: &str = r#"
[models.parrot]
provider = "script"
script = "rules.toml"
input_price = 1.0
concurrency = 3

[models.dear]
provider = "openai"
base_url = "http://127.0.0.1:1/v1"
model = "dear-1"
key_env = "REDIAL_TEST_KEY_THAT_IS_NOT_SET"
"#;
const RULES: &str = r#"
[[rule]]
text = "Polly wants a cracker"
chunks = 4
usage = { input_tokens = 7, output_tokens = 3 }
"#;

fn request(task: TaskId) -> TurnRequest {
    TurnRequest {
        task,
        turn: 2,
        messages: vec![Message::text(Role::User, "Who wants what?")],
        tools: Vec::new(),
        language: Language::En,
        max_tokens: None,
        temperature: None,
        trimmed: Trimmed::default(),
    }
}

#[tokio::test]
async fn the_models_of_a_file_are_asked_like_any_tool() {
    let mut dispatcher = Dispatcher::start().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rules.toml"), RULES).unwrap();
    let models = folder.path().join("models.toml");
    std::fs::write(&models, MODELS).unwrap();
    let task = TaskId::generate();
    let mut deltas = dispatcher.queue.subscribe(&subjects::task_deltas(task)).await.unwrap();
    dispatcher.queue.flush().await;
    {
        let mut script = dispatcher.script();
        (script.task, script.arguments) = (Some(task), Some(serde_json::to_value(request(task)).unwrap()));
    }
    let running = Running::start(Worker::new(dispatcher.config()).models(&models).unwrap());
    let registered = dispatcher.next(|said| if let Said::Registered(said) = said { Some(said) } else { None }).await;
    let named: Vec<_> = registered.tools.iter().map(|tool| (tool.name.as_str(), tool.pool.as_str())).collect();
    assert_eq!(named, [("model-dear", "models"), ("model-parrot", "models")]);
    assert_eq!(registered.slots, 64 + 3);

    dispatcher.submit_many("models", "model-parrot", 1, 2).await;
    let reply: TurnReply = serde_json::from_str(dispatcher.report().await.output.unwrap().get()).unwrap();
    assert_eq!(reply.text.as_deref(), Some("Polly wants a cracker"));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (7, 3));
    let mut seen = String::new();
    while seen != "Polly wants a cracker" {
        let delta = next(&mut deltas).await;
        assert_eq!(delta.turn, 2);
        seen.push_str(&delta.text);
    }

    dispatcher.submit_many("models", "model-dear", 1, 2).await;
    let error = dispatcher.report().await.error.unwrap();
    assert_eq!((error.class, error.effect_possible), (ErrorClass::Configuration, false));
    assert!(error.message.contains("REDIAL_TEST_KEY_THAT_IS_NOT_SET"), "{}", error.message);

    dispatcher.script().arguments = None;
    dispatcher.submit_many("models", "model-parrot", 1, 2).await;
    let error = dispatcher.report().await.error.unwrap();
    assert_eq!((error.class, error.effect_possible), (ErrorClass::Internal, false));
    assert!(error.message.starts_with("the arguments are no request to a model: missing field"), "{}", error.message);
    running.stop().await;
}

#[test]
fn a_wrong_file_of_models_is_named_and_the_one_of_the_deployment_is_right() {
    let worker = || Worker::new(redial_worker::WorkerConfig::default());
    let missing = worker().models("/nowhere/models.toml").err().unwrap().to_string();
    assert!(missing.starts_with("/nowhere/models.toml: "), "{missing}");
    let given = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/models.toml");
    assert!(worker().models(given).is_ok());
    // All of it is an example; without its comment signs it is one that works.
    let text = std::fs::read_to_string(given).unwrap();
    let example: Vec<&str> = text.split("#\n").nth(1).unwrap().lines().map(|line| &line[2..]).collect();
    let example = example.join("\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("models.toml");
    std::fs::write(&path, &example).unwrap();
    assert!(example.contains("[models.small]"), "{example}");
    worker().models(&path).unwrap();
}

#[tokio::test]
async fn no_model_waits_for_another() {
    let mut dispatcher = Dispatcher::start().await;
    let (slow, gate) = tools::gated("slow");
    let quick = Tool::echo();
    let mut slow = slow;
    slow.concurrency = Some(2);
    let worker = dispatcher.start_worker(Worker::new(dispatcher.config()).model(slow).model(quick)).await;
    dispatcher.submit_many("models", "model-slow", 20, 2).await;
    within(5, gate.until_running(2)).await;
    let job = dispatcher.submit_many("models", "model-echo", 1, 2).await[0];
    assert_eq!(within(5, dispatcher.report()).await.job_ref(), job);
    assert_eq!(gate.running(), 2);
    gate.open(20);
    for _ in 0..20 {
        dispatcher.report().await;
    }
    assert_eq!(gate.most(), 2);
    worker.stop().await;
    dispatcher.all_answered().await;
}

#[tokio::test]
async fn a_call_that_waits_for_its_model_is_not_claimed() {
    let mut dispatcher = Dispatcher::start().await;
    let (mut slow, gate) = tools::gated("slow");
    slow.concurrency = Some(1);
    let worker = dispatcher.start_worker(Worker::new(dispatcher.config()).model(slow)).await;
    dispatcher.submit_many("models", "model-slow", 3, 2).await;
    let mut claimed = 0;
    for _ in 0..3 {
        within(5, gate.until_running(1)).await;
        gate.open(1);
        // The next claim may come before the report: its slot is free as soon as the tool has ended.
        let report = dispatcher.next(|said| match said {
            Said::Claimed(claim) => {
                claimed += claim.jobs.len();
                None
            }
            Said::Released(released) => panic!("claimed in vain: {released:?}"),
            said => matches!(said, Said::Reported(_)).then_some(()),
        });
        report.await;
    }
    assert_eq!((claimed, gate.most()), (3, 1));
    worker.stop().await;
}

#[tokio::test]
async fn what_is_no_request_is_refused_before_a_model_is_asked() {
    let mut dispatcher = Dispatcher::start().await;
    let model = Tool::new("typed", async |_: TurnRequest| TurnReply::default());
    let worker = dispatcher.start_worker(Worker::new(dispatcher.config()).model(model)).await;
    dispatcher.submit_many("models", "model-typed", 1, 2).await;
    let error = dispatcher.report().await.error.unwrap();
    assert_eq!((error.class, error.effect_possible), (ErrorClass::InvalidArguments, false));
    worker.stop().await;
}
