//! Batches: whatever becomes of one call, the client learns what became of each.

use std::time::Duration;

use redial_proto::{
    Code, Submission, SubmitBatch, SubmitBatchReply,
    SubmitStatus::{self, Accepted, Refused, Rejected},
    subjects::{self, Verb},
};
use redial_queue::QueueError;
use redial_testkit::{FaultProxy, Servers, Stack, arguments, until};
use redial_tools::Tool;
use serde_json::json;

use super::{keyed, statuses, with_echo};

/// Longer than a dispatcher takes that cannot reach the database.
const PATIENCE: Duration = Duration::from_secs(50);

#[tokio::test]
async fn an_invalid_item_affects_no_other_of_its_batch() {
    let stack = with_echo().await;
    let mut nats = stack.raw_nats().await;
    let batch = r#"{"calls":[{"tool":"echo","arguments":{"n":1}},7,{"tool":"echo"},{"tool":"ehco","arguments":{}},
                             {"tool":"echo","arguments":{"n":2}}]}"#;
    let reply = nats.request(&stack.subject(Verb::CallSubmit), batch.as_bytes()).await;
    let results = serde_json::from_slice::<SubmitBatchReply>(&reply).unwrap().results;
    let status: Vec<SubmitStatus> = results.iter().map(|result| result.status).collect();
    assert_eq!(status, [Accepted, Rejected, Rejected, Refused, Accepted]);
    assert_eq!(stack.output(results[0].call.unwrap()).await, r#"{"n":1}"#);
    assert_eq!(stack.output(results[4].call.unwrap()).await, r#"{"n":2}"#);
    let too_many = vec![Submission::new("echo", arguments(json!({}))); 1_001];
    let Err(QueueError::Api(error)) = stack.try_submit_all(&too_many).await else {
        panic!("it is an error as a whole")
    };
    assert_eq!(error.code, Code::TooLarge);
    assert!(error.message.contains("calls holds 1001 submissions; allowed: 1000"), "{error}");
    stack.finish().await;
}

/// What is said about all refusals together does not fit into one message. The calls are on record by then, so an error instead of
/// the answer would have them sent again.
#[tokio::test]
async fn an_answer_that_is_too_large_is_shortened_and_names_every_call() {
    let mut stack = Stack::start().await;
    let fields: Vec<String> = (0..60).map(|n| format!("a_field_that_is_needed_{n}")).collect();
    let properties: serde_json::Map<_, _> =
        fields.iter().map(|name| (name.clone(), json!({"type": "integer"}))).collect();
    let mut strict = Tool::echo();
    strict.spec.name = "strict".to_owned();
    strict.spec.parameters = json!({"type": "object", "required": fields, "properties": properties});
    stack.work(vec![Tool::echo(), strict]).await;
    let mut batch = vec![Submission::new("strict", arguments(json!({}))); 1_000];
    batch[0] = Submission::new("echo", arguments(json!({"n": 0})));
    batch[999] = Submission::new("echo", arguments(json!({"n": 999})));
    let results = stack.try_submit_all(&batch).await.unwrap();
    assert_eq!(results.len(), 1_000);
    for n in [0, 999] {
        assert_eq!(results[n].status, Accepted);
        assert_eq!(stack.output(results[n].call.unwrap()).await, format!(r#"{{"n":{n}}}"#));
    }
    for result in &results[1..999] {
        let code = result.error.as_ref().unwrap().code;
        assert_eq!((result.status, code), (Refused, Code::InvalidArguments));
    }
    assert!(
        results[1..999].iter().any(|result| result.feedback.is_none()),
        "all of it would fit: the test is for nothing"
    );
    let view = stack.get(results[1].call.unwrap()).await;
    assert!(view.feedback.is_some() && view.details.len() == 60, "all of it is on record: {view:?}");
    let evidence = stack.finish().await;
    assert_eq!(evidence.calls.len(), 1_000);
}

/// Its answer has the database's time, which nobody knows then.
#[tokio::test]
async fn an_empty_batch_during_an_outage_is_answered_with_an_error() {
    let mut stack = Stack::on(Servers::start().await).await;
    let (proxy, database) = FaultProxy::before(stack.servers.database_url()).await;
    let nats = stack.servers.nats_url().to_owned();
    stack.dispatch_between(&nats, &database).await;
    proxy.black_hole(true);
    let empty = SubmitBatch { calls: Vec::new() };
    let reply: Result<SubmitBatchReply, QueueError> = stack.queue().ask(Verb::CallSubmit, &empty, PATIENCE).await;
    assert!(matches!(&reply, Err(QueueError::Api(error)) if error.code == Code::Unavailable), "{reply:?}");
    proxy.black_hole(false);
    proxy.cut();
    stack.finish().await;
}

/// The calls are committed, and then the question fails which call has the key that one of them came with.
#[tokio::test]
async fn calls_that_were_written_are_accepted_although_their_neighbour_cannot_be_read() {
    let mut stack = with_echo().await;
    let first = stack.accepted(&keyed("k", "{}")).await;
    stack.output(first).await;
    // Nobody else may need the column that is hidden below.
    stack.stop_workers().await;
    // Whoever writes the key waits for this.
    let mut holder = stack.db().begin().await.unwrap();
    sqlx::query("DELETE FROM call_keys WHERE call_id = $1").bind(first.0).execute(&mut *holder).await.unwrap();
    let batch = [Submission::new("echo", arguments(json!({"n": 1}))), keyed("k", "{}")];
    let submitted = stack.try_submit_all(&batch);
    let broken = async {
        stack.waits_for_lock().await;
        // Comes right after the commit, and before the question.
        let rename = sqlx::raw_sql("ALTER TABLE calls RENAME COLUMN submitted_at TO hidden").execute(stack.db());
        let (renamed, ()) = tokio::join!(rename, async {
            until("the change waits for the batch", async || {
                let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
                             AND wait_event_type = 'Lock' AND query LIKE 'ALTER TABLE calls%')";
                sqlx::query_scalar::<_, bool>(waits).fetch_one(stack.db()).await.unwrap().then_some(())
            })
            .await;
            holder.rollback().await.unwrap();
        });
        renamed.unwrap();
    };
    let (results, ()) = tokio::join!(submitted, broken);
    sqlx::raw_sql("ALTER TABLE calls RENAME COLUMN hidden TO submitted_at").execute(stack.db()).await.unwrap();
    let results = results.unwrap();
    assert_eq!(statuses(&results), [Accepted, Rejected], "{results:?}");
    stack.work(vec![Tool::echo()]).await;
    assert_eq!(stack.output(results[0].call.unwrap()).await, r#"{"n":1}"#);
    let evidence = stack.finish().await;
    assert_eq!(evidence.calls.len(), 2);
}

/// Nobody knows what became of lines without keys, so they are not said to be rejected: whoever believed that would send them
/// again.
#[tokio::test]
async fn a_stream_breaks_off_at_lines_without_keys_whose_answer_is_lost() {
    let mut stack = Stack::start().await;
    stack.stop_dispatchers().await;
    let gateway = stack.serve_http().await;
    redial_telemetry::install_crypto();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let subject = subjects::api_of_all(Verb::CallSubmit);
    let mut requests = stack.queue().serve(&subject, None).await.unwrap();
    let answers = async {
        while let Some(request) = requests.next().await {
            request.reply(&"no answer that a gateway understands").await;
        }
    };
    let ask = async {
        let post = async |line: &'static str| {
            let request =
                client.post(format!("{}/v1/calls", gateway.url)).header("content-type", "application/x-ndjson");
            request.body(line).send().await.unwrap().text().await
        };
        // As long as nobody listens, the line is surely rejected.
        until("a stream breaks off", async || {
            let answer = post("{\"tool\":\"echo\",\"arguments\":{}}\n").await;
            assert!(answer.is_err() || answer.as_ref().unwrap().contains("no dispatcher is running"), "{answer:?}");
            answer.err()
        })
        .await;
        let keyed = post("{\"tool\":\"echo\",\"arguments\":{},\"key\":\"k\"}\n").await.unwrap();
        assert_eq!(keyed.lines().count(), 1, "it may be sent again: {keyed}");
    };
    tokio::select! {
        () = ask => {}
        () = answers => panic!("the connection is closed"),
    }
    stack.finish().await;
}
