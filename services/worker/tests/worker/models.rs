//! Models: watchers see their deltas, and each model has its own limit.

use redial_proto::{Delta, DeltaPosition, ErrorClass, TaskId, WholeText, subjects};
use redial_queue::Subscription;
use redial_worker::{Context, Tool, TurnReply, Worker};
use serde_json::{Map, Value, json};

use crate::{
    dispatcher::{Dispatcher, Received, RunningWorker},
    tools, within,
};

/// Makes a model that writes a number of deltas, waits at a gate, and writes a last one.
fn writing_model(deltas: usize) -> (Tool, tools::Gate) {
    let (_, gate) = tools::gated("gate");
    let inner = gate.clone();
    let model = Tool::new("small", move |context: Context, _: Map<String, Value>| {
        let gate = inner.clone();
        async move {
            let write = |text: &str| context.delta(Delta { turn: 3, text: text.to_owned(), ..Delta::default() });
            (0..deltas).for_each(|_| write("na "));
            gate.pass().await;
            write("batman");
            TurnReply { text: Some("whole".to_owned()), ..TurnReply::default() }
        }
    });
    (model, gate)
}

async fn next(deltas: &mut Subscription) -> Delta {
    let payload = within(20, deltas.next()).await;
    serde_json::from_slice(&payload).unwrap()
}

#[tokio::test]
async fn watchers_see_a_models_deltas_in_few_messages() {
    let mut dispatcher = Dispatcher::start().await;
    let task = TaskId::generate();
    dispatcher.script().task = Some(task);
    let mut deltas = dispatcher.queue.subscribe(&subjects::task_deltas("default", task)).await.unwrap();
    dispatcher.queue.flush().await;
    let (model, gate) = writing_model(100);
    let chatty = Tool::new("chatty", async |context: Context, _: Map<String, Value>| {
        context.delta(Delta { text: "not for watchers".to_owned(), ..Delta::default() });
    });
    let worker = dispatcher.start_worker(Worker::new(dispatcher.config()).model(model).add(chatty)).await;
    dispatcher.submit("chatty").await;
    dispatcher.report().await;
    let job = dispatcher.submit_many("models", "model-small", 1, 2).await[0];
    // Published while the model still writes, and merged. The tool's delta is not published.
    let first = next(&mut deltas).await;
    let after = Some(DeltaPosition::default());
    assert_eq!(first, Delta { turn: 3, attempt: 1, text: "na ".repeat(100), after, ..Delta::default() });
    // Who begins to watch now gets the text so far, although the model writes nothing.
    let mut late = dispatcher.queue.subscribe(&subjects::task_deltas("default", task)).await.unwrap();
    let whole = WholeText { text: "na ".repeat(100), thought: String::new() };
    let so_far = Delta { turn: 3, attempt: 1, whole: Some(whole), ..Delta::default() };
    assert_eq!((next(&mut late).await, next(&mut deltas).await), (so_far.clone(), so_far));
    gate.open(1);
    let report = dispatcher.report().await;
    assert_eq!(report.job_ref(), job);
    let reply: TurnReply = serde_json::from_str(report.output.unwrap().get()).unwrap();
    assert_eq!(reply.text.as_deref(), Some("whole"));
    // The last delta is published before the report.
    let last = loop {
        let delta = next(&mut deltas).await;
        if delta.whole.is_none() {
            break delta;
        }
    };
    assert_eq!((last.text.as_str(), last.after), ("batman", Some(DeltaPosition { text: 300, thought: 0 })));
    worker.stop().await;
}

/// Two models of one file; the second one cannot be used, because its key is not set.
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

fn request(task: TaskId) -> Value {
    let messages = json!([{"role": "user", "content": "Who wants what?"}]);
    json!({"task": task, "turn": 2, "messages": messages, "tools": [], "language": "en"})
}

#[tokio::test]
async fn models_of_a_file_run_like_tools() {
    let mut dispatcher = Dispatcher::start().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rules.toml"), RULES).unwrap();
    let models = folder.path().join("models.toml");
    std::fs::write(&models, MODELS).unwrap();
    let task = TaskId::generate();
    let mut deltas = dispatcher.queue.subscribe(&subjects::task_deltas("default", task)).await.unwrap();
    dispatcher.queue.flush().await;
    {
        let mut script = dispatcher.script();
        (script.task, script.arguments) = (Some(task), Some(request(task)));
    }
    let running = RunningWorker::start(Worker::new(dispatcher.config()).models(&models).unwrap());
    let registered = dispatcher
        .next(|received| if let Received::Registration(registration) = received { Some(registration) } else { None })
        .await;
    let named: Vec<_> = registered.tools.iter().map(|tool| (tool.name.as_str(), tool.pool.as_str())).collect();
    assert_eq!(named, [("model-dear", "models"), ("model-parrot", "models")]);
    assert_eq!(registered.slots, 64 + 3);

    dispatcher.submit_many("models", "model-parrot", 1, 2).await;
    let reply: TurnReply = serde_json::from_str(dispatcher.report().await.output.unwrap().get()).unwrap();
    assert_eq!(reply.text.as_deref(), Some("Polly wants a cracker"));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (Some(7), Some(3)));
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
    assert_eq!((error.class, error.effect_possible), (ErrorClass::Unavailable, false));
    assert!(
        error.message.starts_with("this version of the worker cannot read the request to the model: missing field"),
        "{}",
        error.message
    );
    running.stop().await;
}

#[test]
fn the_deployed_file_of_models_is_valid() {
    let worker = || Worker::new(redial_worker::WorkerConfig::default());
    let given = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/models.toml");
    assert!(worker().models(given).is_ok());
    // The file contains only a commented-out example; uncommented it must be valid.
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
async fn a_busy_model_blocks_no_other_and_its_calls_are_not_claimed() {
    let mut dispatcher = Dispatcher::start().await;
    let (mut slow, gate) = tools::gated("slow");
    slow.concurrency = Some(1);
    let worker = dispatcher.start_worker(Worker::new(dispatcher.config()).model(slow).model(Tool::echo())).await;
    dispatcher.submit_many("models", "model-slow", 3, 2).await;
    assert_eq!(dispatcher.claim().await.jobs.len(), 1);
    within(20, gate.until_running(1)).await;
    let quick = dispatcher.submit_many("models", "model-echo", 1, 2).await[0];
    assert_eq!(dispatcher.report().await.job_ref(), quick);
    let mut claimed = 1;
    for _ in 0..3 {
        within(20, gate.until_running(1)).await;
        gate.open(1);
        // The next claim may come before the report: the permit is returned as soon as the tool has ended.
        let report = dispatcher.next(|received| match received {
            Received::Claim(claim) => {
                claimed += claim.jobs.len();
                None
            }
            Received::Release(released) => panic!("the worker released a claimed call: {released:?}"),
            received => matches!(received, Received::Report(_)).then_some(()),
        });
        report.await;
    }
    assert_eq!((claimed, gate.most()), (3, 1));
    worker.stop().await;
}
