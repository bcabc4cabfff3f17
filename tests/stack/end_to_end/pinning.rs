//! A tool belongs to the worker identities that may serve it: what another one registers waits for an operator.

use redial_proto::{
    AcceptTool, AcceptToolReply, ApiError, CallState, Code, ForgetTool, ForgetToolReply, ToolEffect, ToolSpec,
    subjects::{ControlVerb, Verb},
};
use redial_queue::Queue;
use redial_store::Purpose;
use redial_test_stack::{Stack, scripted_tool, until};
use serde_json::{Value, json};

use super::{
    by_hand::Hand,
    fixture::{ANSWER, ask},
};

/// As its owner registers it.
pub(crate) fn pay() -> ToolSpec {
    let parameters = json!({"type": "object", "properties": {"to": {"type": "string", "maxLength": 5}}});
    ToolSpec { effect: ToolEffect::Keyed, parameters, ..ToolSpec::named("pay") }
}

pub(crate) fn laxer() -> ToolSpec {
    ToolSpec { effect: ToolEffect::Read, ..pay() }
}

pub(crate) async fn owner(stack: &Stack) -> Hand {
    let mut owner = Hand::of_identity(stack, "owner").await;
    assert!(owner.register(vec![pay()]).await.is_empty(), "nobody had it");
    owner
}

pub(crate) async fn accept(stack: &Stack, identity: Option<&str>) -> Result<AcceptToolReply, ApiError> {
    let pending = stack.store(Purpose::Audit).await.pending_tools().await.unwrap();
    let seen = pending.iter().find(|one| identity.is_none_or(|identity| one.identity == identity));
    accept_seen(stack, identity, seen.map_or("none", |seen| &seen.fingerprint)).await
}

/// Accepts what had this fingerprint.
pub(crate) async fn accept_seen(
    stack: &Stack,
    identity: Option<&str>,
    fingerprint: &str,
) -> Result<AcceptToolReply, ApiError> {
    let identity = identity.map(|identity| identity.parse().unwrap());
    let request = AcceptTool { tool: "pay".to_owned(), identity, fingerprint: fingerprint.to_owned() };
    ask(stack.queue(), Verb::ToolAccept, &request).await
}

pub(crate) async fn on_record(stack: &Stack) -> ToolSpec {
    let spec: String = stack.value("SELECT spec::text FROM tools WHERE name = 'pay'").await;
    serde_json::from_str(&spec).unwrap()
}

#[tokio::test]
async fn what_another_identity_registers_waits_and_changes_nothing() {
    let stack = Stack::start_pinned().await;
    let mut owner = owner(&stack).await;
    for spec in [pay(), ToolSpec { parameters: json!({"type": "object"}), ..pay() }] {
        let mut thief = Hand::of_identity(&stack, "thief").await;
        let waiting = thief.register(vec![spec]).await;
        assert_eq!(waiting["pay"][0], "worker identity \"thief\" may not serve it yet");
        assert_eq!(on_record(&stack).await, pay());
        assert!(!thief.beat().await.register, "it has nothing to register as long as it waits");
        // The owner gets and answers a call; the other one is not granted it, though it knows its id and attempt.
        let call = stack.call("pay", json!({"to": "a"})).await;
        assert_eq!(owner.job().await.call, call);
        assert!(thief.claim(call, 1).await.is_empty(), "a guessed attempt is not granted");
        assert_eq!(stack.get(call).await.state, CallState::Ready);
        assert_eq!(owner.claim(call, 1).await.len(), 1);
        owner.report(call, 1, Ok("1")).await;
        stack.output(call).await;
    }
    assert_eq!(stack.count("pending_tools").await, 1, "the last one of the identity");
    assert_eq!(stack.count("consumers").await, 1, "no consumer brings its jobs to the other one");
    stack.finish().await;
}

#[tokio::test]
async fn an_accepted_identity_serves_the_tool_as_it_registered_it() {
    let mut stack = Stack::start_pinned().await;
    // Any dispatcher takes a request: the ones that did not accept it have to know of it, too.
    stack.dispatch().await;
    let _owner = owner(&stack).await;
    let mut night = Hand::of_identity(&stack, "night").await;
    night.register(vec![laxer()]).await;
    let accepted = accept(&stack, None).await.unwrap();
    assert_eq!(accepted.identity.as_str(), "night");
    assert!(accepted.changes.contains(&"its effect is read instead of keyed".to_owned()), "{accepted:?}");
    assert_eq!(on_record(&stack).await, laxer());
    assert!(night.beat().await.register, "it is asked to register again");
    assert!(night.register(vec![laxer()]).await.is_empty());
    assert!(!night.beat().await.register);
    for _ in 0..5 {
        let call = stack.call("pay", json!({"to": "a"})).await;
        assert_eq!(night.granted().await.call, call);
        night.report(call, 1, Ok("1")).await;
        stack.output(call).await;
    }
    let stricter = ToolSpec { effect: ToolEffect::Unsafe, ..pay() };
    for spec in [stricter, laxer()] {
        assert!(night.register(vec![spec.clone()]).await.is_empty(), "what was accepted is not asked about again");
        assert_eq!(on_record(&stack).await, spec);
    }
    assert_eq!(accept(&stack, None).await.unwrap_err().code, Code::WrongState, "nothing waits any more");
    stack.finish().await;
}

#[tokio::test]
async fn a_worker_without_an_accepted_tool_waits_and_then_serves() {
    let mut stack = Stack::start_pinned().await;
    let _owner = owner(&stack).await;
    stack.work(vec![scripted_tool("pay", ToolEffect::Keyed, &stack.ledger)]).await;
    assert_eq!(stack.count("workers WHERE tools = '{}' AND waiting = '{pay}'").await, 1);
    let gone = "UPDATE workers SET live_until = now(), last_seen_at = now() - interval '2 h' WHERE id LIKE 'owner-%'";
    stack.execute(gone).await;
    let call = stack.call("pay", json!({})).await;
    let said = "worker identity \"test\" has pay, and waits until an operator accepts it: see redial tools\n";
    until("redial show says what the call waits for", async || {
        let mut show = tokio::process::Command::new(env!("CARGO_BIN_EXE_redial"));
        show.args(["show", &call.to_string()]).env("REDIAL_DATABASE_URL", stack.servers.database_url());
        show.output().await.unwrap().stderr.ends_with(said.as_bytes()).then_some(())
    })
    .await;
    accept(&stack, Some("test")).await.unwrap();
    // It has registered again.
    stack.counts(1, "workers WHERE tools = '{pay}' AND id LIKE 'test-%'").await;
    stack.output(call).await;
    stack.finish().await;
}

#[tokio::test]
async fn only_an_operator_accepts_and_learns_what_is_wrong() {
    let stack = Stack::start_pinned().await;
    let _owner = owner(&stack).await;
    let mut thief = Hand::of_identity(&stack, "thief").await;
    thief.register(vec![laxer()]).await;
    let request = AcceptTool { tool: "pay".to_owned(), identity: None, fingerprint: "x".to_owned() };
    let refused = async |user: &Queue, request: &AcceptTool| {
        ask::<AcceptToolReply>(user, Verb::ToolAccept, request).await.unwrap_err()
    };
    assert_eq!(refused(&stack.user("acme", "ann").await, &request).await.code, Code::Forbidden);
    assert_eq!((on_record(&stack).await, stack.count("pending_tools").await), (pay(), 1));
    // Before they are recorded, which Postgres would refuse.
    let texts = [("pay\0", "x"), ("pay", "")];
    for (tool, fingerprint) in texts {
        let (tool, fingerprint) = (tool.to_owned(), fingerprint.to_owned());
        let request = AcceptTool { tool, identity: None, fingerprint };
        assert_eq!(refused(stack.queue(), &request).await.code, Code::InvalidValue, "{request:?}");
    }
    let unknown = AcceptTool { tool: "play".to_owned(), identity: None, fingerprint: "x".to_owned() };
    let error = refused(stack.queue(), &unknown).await;
    assert!(error.code == Code::UnknownTool && error.message.contains("\"pay\""), "{error}");
    assert_eq!(accept(&stack, Some("nobody")).await.unwrap_err().code, Code::WrongState);
    let mut second = Hand::of_identity(&stack, "second").await;
    second.register(vec![pay()]).await;
    let error = accept(&stack, None).await.unwrap_err();
    assert!(error.code == Code::WrongState && error.message.contains("second, thief"), "{error}");
    stack.finish().await;
}

#[tokio::test]
async fn a_tool_stays_its_owners_when_the_owner_is_gone() {
    let mut stack = Stack::start_pinned().await;
    let gone = owner(&stack).await;
    stack.execute("DELETE FROM workers").await;
    let mut thief = Hand::of_identity(&stack, "thief").await;
    assert!(thief.register(vec![laxer()]).await.contains_key("pay"));
    assert_eq!(on_record(&stack).await, pay());
    let call = stack.call("pay", json!({"to": "a"})).await;
    assert!(thief.claim(call, 1).await.is_empty());
    drop(gone);
    // Forgotten, it is nobody's: who still waits for it gets it with its next heartbeat.
    let request = ForgetTool { tool: "pay".to_owned() };
    let _: ForgetToolReply =
        until("the tool is forgotten", async || stack.queue().ask(Verb::ToolForget, &request, ANSWER).await.ok()).await;
    assert_eq!((stack.count("pending_tools").await, stack.count("tool_identities").await), (0, 0));
    assert!(thief.beat().await.register);
    assert!(thief.register(vec![laxer()]).await.is_empty());
    stack.leaves_calls();
    stack.finish().await;
}

/// Two identities bring the same new tool at the same moment: one of them gets it.
#[tokio::test]
async fn of_two_identities_that_bring_a_new_tool_at_once_one_waits() {
    let mut stack = Stack::start_pinned().await;
    stack.dispatch().await;
    for n in 0..10 {
        let mut one = Hand::of_identity(&stack, "one").await;
        let mut two = Hand::of_identity(&stack, "two").await;
        let tool = || vec![ToolSpec::named(format!("tool-{n}"))];
        let (a, b) = tokio::join!(one.register(tool()), two.register(tool()));
        assert_eq!(a.len() + b.len(), 1, "{a:?} {b:?}");
        let pins = stack.count(&format!("tool_identities WHERE tool = 'tool-{n}'")).await;
        assert_eq!(pins, 1);
        // An identity has few sets of tools at once.
        stack.execute("DELETE FROM workers").await;
    }
    stack.finish().await;
}

/// Its specifications are in two messages: the second one must not bring back what waits since the first one.
#[tokio::test]
async fn a_tool_that_waits_stays_out_when_other_messages_name_it() {
    let stack = Stack::start_pinned().await;
    let _owner = owner(&stack).await;
    let thief = Hand::of_identity(&stack, "thief").await;
    let subject = thief.subject(ControlVerb::Register);
    for (tool, other) in [(laxer(), "own"), (ToolSpec::named("own"), "pay")] {
        let message = thief.registration(&[tool], &json!({other: "default"}));
        let _: Value = stack.queue().request(&subject, &message, ANSWER).await.unwrap();
        assert_eq!(stack.count("workers WHERE id LIKE 'thief-%' AND 'pay' = ANY (tools)").await, 0);
        assert_eq!(stack.count("workers WHERE id LIKE 'thief-%' AND waiting = '{pay}'").await, 1);
    }
    assert_eq!(stack.count("workers WHERE id LIKE 'thief-%' AND tools = '{own}'").await, 1);
    // Naming somebody's tool alone makes nobody serve it.
    let alone = Hand::of_identity(&stack, "sly").await;
    let subject = alone.subject(ControlVerb::Register);
    let message = alone.registration(&[], &json!({"pay": "default", "not-there-yet": "default"}));
    let _: Value = stack.queue().request(&subject, &message, ANSWER).await.unwrap();
    assert_eq!(stack.count("workers WHERE id LIKE 'sly-%' AND tools = '{}'").await, 1);
    stack.finish().await;
}
