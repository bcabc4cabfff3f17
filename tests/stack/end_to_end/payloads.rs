//! Arguments and results that do not fit into one message.

use std::time::Duration;

use redial_proto::{
    ANY_POOL, CONTRACT, CallState, CallView, Code, GetRequest, Language, Payload, PieceReply, PieceRequest, Submission,
    SubmitResult, WorkerIdentity, limits,
    subjects::{self, ControlVerb, Verb},
};
use redial_queue::{Queue, QueueError};
use redial_store::Purpose;
use redial_test_stack::{Stack, arguments, until};
use redial_tools::Tool;
use serde_json::json;
use tokio::time::Instant;

const ANSWER: Duration = Duration::from_secs(25);

/// Where the requests of a user go; pieces travel beside it.
fn subject(user: &Queue) -> String {
    redial_proto::subjects::api(user.tenant(), user.user(), Verb::CallSubmit.roles()[0], Verb::CallSubmit)
}

async fn piece(user: &Queue, request: &PieceRequest) -> Result<PieceReply, Code> {
    match user.piece(&subject(user), request, Instant::now() + ANSWER).await {
        Ok(reply) => Ok(reply),
        Err(QueueError::Api(error)) => Err(error.code),
        Err(error) => panic!("{error}"),
    }
}

fn put(payload: Payload, piece: u32, text: &str) -> PieceRequest {
    PieceRequest::Put { payload, piece, text: text.to_owned() }
}

async fn kept(stack: &Stack) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM payloads").fetch_one(stack.db()).await.unwrap()
}

#[tokio::test]
async fn many_large_calls_at_once_pass_beside_small_ones() {
    const LARGE: u32 = 6;
    let mut stack = Stack::start_leasing(Duration::from_secs(30)).await;
    stack.work(vec![Tool::echo()]).await;
    let text = "好\"\\ x".repeat(400_000);
    let one = |n: u32| Submission::new("echo", arguments(json!({"n": n, "text": text})));
    let mut calls = Vec::new();
    for n in 0..LARGE {
        calls.push(stack.accepted(&one(n)).await);
    }
    // Small ones do not wait for them.
    let small = stack.call("echo", json!({"small": true})).await;
    assert_eq!(stack.output(small).await, r#"{"small":true}"#);
    for (n, call) in (0..).zip(calls) {
        assert_eq!(stack.output(call).await, one(n).arguments.get());
    }
    bodies_are_dropped(&stack, LARGE).await;
    stack.finish().await;
}

/// Waits until every owner has fewer bodies left than there are large calls. One is left until it expires if an answer about it came so
/// late that somebody sent it again, or asked for it again; whoever forgot to drop what it has read would leave one of each call.
async fn bodies_are_dropped(stack: &Stack, calls: u32) {
    let most = "SELECT coalesce(max(bodies), 0)
                FROM (SELECT count(DISTINCT payload) AS bodies FROM payloads GROUP BY owner) of_owners";
    until("the bodies of calls that have ended are dropped", async || {
        let most: i64 = sqlx::query_scalar(most).fetch_one(stack.db()).await.unwrap();
        (most < i64::from(calls)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn pieces_belong_to_who_put_them() {
    let stack = Stack::start().await;
    let (alice, bob) = (stack.user("acme", "alice").await, stack.user("acme", "bob").await);
    let globex = stack.user("globex", "alice").await;
    let payload = Payload::of(1);
    piece(&alice, &put(payload, 0, "secret")).await.unwrap();
    for other in [&bob, &globex] {
        let got = piece(other, &PieceRequest::Get { payload: payload.payload, piece: 0 }).await.unwrap();
        assert_eq!(got.text, None);
        piece(other, &PieceRequest::Drop { payload: payload.payload }).await.unwrap();
        // Nor can they put one in its place.
        piece(other, &put(payload, 0, "forged")).await.unwrap();
    }
    piece(&alice, &put(payload, 0, "changed")).await.unwrap();
    let got = piece(&alice, &PieceRequest::Get { payload: payload.payload, piece: 0 }).await.unwrap();
    assert_eq!(got.text.as_deref(), Some("secret"), "a piece never changes");
    // Not even another user's message can stand for it.
    let header = payload.to_string();
    let mut nats = stack.raw_nats().await;
    let subject = subject(&bob);
    let reply = nats.request_with(&subject, ("redial-payload", &header), b"").await;
    let result: SubmitResult = serde_json::from_slice(&reply).unwrap();
    assert_eq!(result.error.unwrap().code, Code::InvalidMessage, "his own, forged one is read");
    stack.finish().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_piece_is_said_and_what_is_missing_is_sent_again() {
    let stack = Stack::start().await;
    let user = stack.user("acme", "alice").await;
    let of = |pieces: u32| Payload { pieces, ..Payload::of(1) };
    let long = "x".repeat(limits::MAX_PIECE + 1);
    for wrong in
        [put(of(0), 0, "x"), put(of(1), 1, "x"), put(of(u32::MAX), 0, "x"), put(of(1), 0, ""), put(of(1), 0, &long)]
    {
        assert_eq!(piece(&user, &wrong).await, Err(Code::InvalidValue), "{wrong:?}");
    }
    let payload = of(2);
    piece(&user, &put(payload, 0, "{")).await.unwrap();
    let mut nats = stack.raw_nats().await;
    let header = payload.to_string();
    let reply = nats.request_with(&subject(&user), ("redial-payload", &header), b"").await;
    let error: redial_proto::ApiError = serde_json::from_slice(&reply).unwrap();
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert!(error.message.contains("not all 2 pieces"), "{error}");
    // What nobody drops expires.
    sqlx::query("UPDATE payloads SET expires_at = now() - interval '1 s'").execute(stack.db()).await.unwrap();
    // The dispatcher does that once a minute, perhaps just now.
    let deleted = stack.store(Purpose::Dispatch).await.delete_expired_pieces(100).await.unwrap();
    assert!(deleted <= 1, "{deleted}");
    assert_eq!(kept(&stack).await, 0);
    stack.finish().await;
}

/// It would be read again for each of them, while the reports of all others wait.
#[tokio::test]
async fn a_body_in_pieces_serves_one_report_even_if_only_a_newer_version_can_read_it() {
    let mut stack = Stack::start().await;
    stack.work(vec![Tool::echo()]).await;
    let (mut nats, identity) = (stack.raw_nats().await, WorkerIdentity::of_name("manual"));
    let payload = Payload::of(1);
    let asked = serde_json::to_vec(&put(payload, 0, "not of this version")).unwrap();
    nats.request(&subjects::control(&identity, ANY_POOL, ControlVerb::Piece), &asked).await;
    assert_eq!(kept(&stack).await, 1);
    let headers = format!("{payload}\r\n{}: {}", subjects::CONTRACT, CONTRACT + 1);
    for _ in 0..50 {
        nats.publish_with(&subjects::results(&identity), ("redial-payload", &headers), b"").await;
    }
    until("all of them are done with", async || {
        let info = nats.jetstream("STREAM.INFO.RESULTS", &json!({})).await;
        (info["state"]["messages"] == 0 && info["state"]["last_seq"].as_u64() >= Some(50)).then_some(())
    })
    .await;
    assert_eq!(kept(&stack).await, 0);
    let call = stack.call("echo", json!({"other": true})).await;
    assert_eq!(stack.output(call).await, r#"{"other":true}"#);
    stack.finish().await;
}

/// Whatever piece it is, and whoever put it.
#[tokio::test]
async fn a_user_has_so_many_pieces() {
    let mut stack = Stack::start().await;
    stack.work(vec![Tool::echo()]).await;
    let alice = stack.user("acme", "alice").await;
    let fill = async |pieces: i32| {
        let insert = "INSERT INTO payloads (owner, payload, piece, text, expires_at)
            SELECT 'user acme.alice', $1, n, 'x', now() + interval '10 min' FROM generate_series(1, $2) n";
        sqlx::query(insert).bind(Payload::of(1).payload).bind(pieces).execute(stack.db()).await.unwrap();
    };
    let large = Submission::new("echo", arguments(json!({"text": "x".repeat(1_200_000)})));
    let call = alice.ask::<_, SubmitResult>(Verb::CallSubmit, &large, ANSWER).await.unwrap().call.unwrap();
    stack.wait_for_end(call).await;
    fill(4_998).await;
    let (begun, next) = (Payload { pieces: 3, ..Payload::of(1) }, Payload { pieces: 3, ..Payload::of(1) });
    piece(&alice, &put(begun, 1, "x")).await.unwrap();
    piece(&alice, &put(begun, 2, "x")).await.unwrap();
    assert_eq!(piece(&alice, &put(next, 1, "x")).await, Err(Code::Unavailable));
    let view =
        alice.ask::<_, CallView>(Verb::CallGet, &GetRequest { call, language: Language::default() }, ANSWER).await;
    assert!(
        matches!(view, Err(QueueError::Api(error)) if error.code == Code::Unavailable),
        "an answer has pieces, too"
    );
    // What was begun may be completed, up to an end.
    piece(&alice, &put(begun, 0, "x")).await.unwrap();
    fill(5_000).await;
    assert_eq!(piece(&alice, &put(begun, 0, "x")).await, Err(Code::Unavailable));
    let of_alice = "SELECT count(*) FROM payloads WHERE owner = 'user acme.alice'";
    assert_eq!(sqlx::query_scalar::<_, i64>(of_alice).fetch_one(stack.db()).await.unwrap(), 10_001);
    // Nobody else waits for that.
    let bob = stack.user("acme", "bob").await;
    let call = bob.ask::<_, SubmitResult>(Verb::CallSubmit, &large, ANSWER).await.unwrap().call.unwrap();
    stack.wait_for_end(call).await;
    stack.finish().await;
}

#[tokio::test]
async fn a_dispatcher_may_be_set_to_smaller_payloads() {
    let mut stack = Stack::on(redial_test_stack::Servers::start().await).await;
    stack.max_payload = 64 * 1024;
    stack.dispatch().await;
    stack.work(vec![Tool::echo()]).await;
    let of = |bytes: usize| Submission::new("echo", arguments(json!({"text": "x".repeat(bytes)})));
    let result = stack.submit(&of(64 * 1024)).await;
    let error = result.error.unwrap();
    assert_eq!((error.code, error.message.as_str()), (Code::TooLarge, "arguments take 65547 bytes; allowed: 65536"));
    let call = stack.accepted(&of(60 * 1024)).await;
    assert_eq!(stack.ended(call).await.state, CallState::Succeeded);
    stack.finish().await;
}
