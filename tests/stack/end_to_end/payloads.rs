//! Arguments and results that do not fit into one message.

use redial_proto::{
    ANY_POOL, CONTRACT, CallState, CallView, Code, GetRequest, Language, Payload, PieceReply, PieceRequest, Submission,
    SubmitResult, WorkerIdentity, limits,
    subjects::{self, ControlVerb, Verb},
};
use redial_queue::Queue;
use redial_store::Purpose;
use redial_test_stack::{Stack, arguments, until};
use redial_tools::Tool;
use serde_json::json;
use tokio::time::Instant;

use super::fixture::{ANSWER, api, ask};

/// Where the requests of a user go; pieces travel beside it.
fn subject(user: &Queue) -> String {
    redial_proto::subjects::api(
        redial_proto::Door::Nats,
        user.tenant(),
        user.user(),
        Verb::CallSubmit.roles()[0],
        Verb::CallSubmit,
    )
}

async fn piece(user: &Queue, request: &PieceRequest) -> Result<PieceReply, Code> {
    api(user.piece(&subject(user), request, Instant::now() + ANSWER).await).map_err(|error| error.code)
}

fn put(payload: Payload, piece: u32, text: &str) -> PieceRequest {
    PieceRequest::Put { payload, piece, text: text.to_owned() }
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
    let result: SubmitResult = serde_json::from_str(&reply.body).unwrap();
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
    let error: redial_proto::ApiError = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert!(error.message.contains("not all 2 pieces"), "{error}");
    // What nobody drops expires.
    stack.execute("UPDATE payloads SET expires_at = now() - interval '1 s'").await;
    // The dispatcher does that once a minute, perhaps just now.
    let deleted = stack.store(Purpose::Dispatch).await.delete_expired_pieces(100).await.unwrap();
    assert!(deleted <= 1, "{deleted}");
    assert_eq!(stack.count("payloads").await, 0);
    stack.finish().await;
}

/// It would be read again for each of them, while the reports of all others wait.
#[tokio::test]
async fn a_body_in_pieces_serves_one_report_even_if_only_a_newer_version_can_read_it() {
    let stack = Stack::with_echo().await;
    let (mut nats, identity) = (stack.raw_nats().await, WorkerIdentity::of_name("manual"));
    let payload = Payload::of(1);
    let asked = serde_json::to_vec(&put(payload, 0, "not of this version")).unwrap();
    nats.request(&subjects::control(&identity, ANY_POOL, ControlVerb::Piece), &asked).await;
    assert_eq!(stack.count("payloads").await, 1);
    let headers = format!("{payload}\r\n{}: {}", subjects::CONTRACT, CONTRACT + 1);
    for _ in 0..50 {
        nats.publish_with(&subjects::results(&identity), ("redial-payload", &headers), b"").await;
    }
    until("all of them are done with", async || {
        let info = nats.jetstream("STREAM.INFO.RESULTS", &json!({})).await;
        (info["state"]["messages"] == 0 && info["state"]["last_seq"].as_u64() >= Some(50)).then_some(())
    })
    .await;
    assert_eq!(stack.count("payloads").await, 0);
    let call = stack.call("echo", json!({"other": true})).await;
    assert_eq!(stack.output(call).await, r#"{"other":true}"#);
    stack.finish().await;
}

/// Whatever piece it is, and whoever put it.
#[tokio::test]
async fn a_user_has_so_many_pieces() {
    let stack = Stack::with_echo().await;
    let alice = stack.user("acme", "alice").await;
    let fill = async |pieces: i32| {
        let insert = "INSERT INTO payloads (owner, payload, piece, text, expires_at)
            SELECT 'user acme.alice', $1, n, 'x', now() + interval '10 min' FROM generate_series(1, $2) n";
        sqlx::query(insert).bind(Payload::of(1).payload).bind(pieces).execute(stack.db()).await.unwrap();
    };
    let large = Submission::new("echo", arguments(json!({"text": "x".repeat(1_200_000)})));
    let submit = async |user| {
        let call = ask::<SubmitResult>(user, Verb::CallSubmit, &large).await.unwrap().call.unwrap();
        stack.wait_for_end(call).await;
        call
    };
    let call = submit(&alice).await;
    submit(&alice).await;
    // One may be left until it expires, if an answer about it came so late that somebody sent it again.
    let many = "(SELECT FROM payloads GROUP BY owner HAVING count(DISTINCT payload) > 1) many";
    stack.counts(0, many).await;
    fill(4_998).await;
    let (begun, next) = (Payload { pieces: 3, ..Payload::of(1) }, Payload { pieces: 3, ..Payload::of(1) });
    piece(&alice, &put(begun, 1, "x")).await.unwrap();
    piece(&alice, &put(begun, 2, "x")).await.unwrap();
    assert_eq!(piece(&alice, &put(next, 1, "x")).await, Err(Code::Unavailable));
    let view = ask::<CallView>(&alice, Verb::CallGet, &GetRequest { call, language: Language::default() }).await;
    assert_eq!(view.unwrap_err().code, Code::Unavailable, "an answer has pieces, too");
    // What was begun may be completed, up to an end.
    piece(&alice, &put(begun, 0, "x")).await.unwrap();
    fill(5_000).await;
    assert_eq!(piece(&alice, &put(begun, 0, "x")).await, Err(Code::Unavailable));
    assert_eq!(stack.count("payloads WHERE owner = 'user acme.alice'").await, 10_001);
    // Nobody else waits for that.
    submit(&stack.user("acme", "bob").await).await;
    stack.finish().await;
}

#[tokio::test]
async fn a_dispatcher_may_be_set_to_smaller_payloads() {
    let mut stack = Stack::start_with(|stack| stack.dispatcher.max_payload = 64 * 1024).await;
    stack.work(vec![Tool::echo()]).await;
    let of = |bytes: usize| Submission::new("echo", arguments(json!({"text": "x".repeat(bytes)})));
    let result = stack.submit(&of(64 * 1024)).await;
    let error = result.error.unwrap();
    assert_eq!((error.code, error.message.as_str()), (Code::TooLarge, "arguments take 65547 bytes; allowed: 65536"));
    let call = stack.accepted(&of(60 * 1024)).await;
    assert_eq!(stack.ended(call).await.state, CallState::Succeeded);
    stack.finish().await;
}
