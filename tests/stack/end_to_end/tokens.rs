//! Tokens for HTTP: who may create them for whom, and what becomes of them.

use std::time::Duration;

use redial_proto::{
    ApiError, ApiToken, Code, Door, SubmitResult, TaskResult, Tenant, TokenCreate, TokenCreateReply, TokenExpiry,
    TokenId, TokenRevoke, TokenRevokeReply, User, UserRole,
    subjects::{self, Verb},
};
use redial_queue::Queue;
use redial_store::{ActionFilter, Purpose, TokenFilter};
use redial_test_stack::{Stack, file, new_token, until};
use redial_tools::Tool;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::fixture::{ANSWER, api, ask};

fn token(n: u8) -> ApiToken {
    ApiToken::of_random(&[n; 40])
}

fn request(n: u8, roles: &[UserRole]) -> TokenCreate {
    new_token(&token(n), roles)
}

async fn created(queue: &Queue, request: &TokenCreate) -> Result<TokenCreateReply, ApiError> {
    ask(queue, Verb::TokenCreate, request).await
}

async fn revoked(queue: &Queue, id: &TokenId) -> Result<TokenRevokeReply, ApiError> {
    ask(queue, Verb::TokenRevoke, &TokenRevoke { id: id.clone(), keep_descendants: false }).await
}

#[tokio::test]
async fn a_token_is_created_once_and_only_its_hash_is_kept() {
    let stack = Stack::start().await;
    let alice = stack.user("acme", "alice").await;
    let new = TokenCreate { label: Some("ci".to_owned()), ..request(1, &[UserRole::Submit, UserRole::Read]) };
    let reply = created(&alice, &new).await.unwrap();
    assert_eq!((reply.tenant.as_str(), reply.user.as_str()), ("acme", "alice"), "who asked");
    assert_eq!(reply.expires_at, Some(reply.created_at + chrono::TimeDelta::days(90)));
    // The first reply was lost.
    assert_eq!(created(&alice, &new).await.unwrap(), reply);
    // The same id for anything else is a conflict, whatever differs.
    for other in [
        TokenCreate { sha256: token(2).hash(), ..new.clone() },
        TokenCreate { roles: vec![UserRole::Admin], ..new.clone() },
        TokenCreate { label: None, ..new.clone() },
        TokenCreate { expiry: TokenExpiry::Never, ..new.clone() },
        TokenCreate { user: Some("bob".parse().unwrap()), ..new.clone() },
    ] {
        assert_eq!(created(&alice, &other).await.unwrap_err().code, Code::IdempotencyConflict, "{other:?}");
    }
    let bob = stack.user("acme", "bob").await;
    assert_eq!(created(&bob, &new).await.unwrap_err().code, Code::IdempotencyConflict);

    let rows = "SELECT t::text FROM tokens t UNION ALL SELECT a::text FROM actions a";
    let kept: Vec<String> = stack.values(rows).await;
    let secret = token(1).text().rsplit_once('_').unwrap().1.to_owned();
    assert!(kept.len() > 1 && kept.iter().all(|row| !row.contains(&secret)), "{kept:?}");

    let store = stack.store(Purpose::Audit).await;
    store.mark_tokens_used(std::slice::from_ref(&new.id)).await.unwrap();
    let listed = store.of(alice.tenant()).tokens(&TokenFilter::default(), 10).await.unwrap();
    assert_eq!((listed[0].id.as_str(), listed[0].label.as_str()), (new.id.as_str(), "ci"));
    assert!(listed[0].last_used_at.is_some() && listed[0].created_by == "acme.alice");
    stack.finish().await;
}

#[tokio::test]
async fn another_tenants_tokens_do_not_exist_but_for_operators() {
    let stack = Stack::start().await;
    let (alice, bob) = (stack.user("acme", "alice").await, stack.user("globex", "bob").await);
    let ops = stack.user("default", "ops").await;
    let new = request(1, &[UserRole::Read]);
    created(&alice, &new).await.unwrap();
    for hidden in [&new.id, &token(9).id] {
        assert_eq!(revoked(&bob, hidden).await.unwrap_err().code, Code::TokenNotFound);
    }
    let store = stack.store(Purpose::Audit).await;
    // Not even a filter that names the other tenant, or a position that is another's, shows them.
    for filter in [
        TokenFilter { tenant: Some("acme".to_owned()), ..TokenFilter::default() },
        TokenFilter { before: Some(new.id.clone()), ..TokenFilter::default() },
    ] {
        assert!(store.of(bob.tenant()).tokens(&filter, 10).await.unwrap().is_empty());
    }
    let acme: Tenant = "acme".parse().unwrap();
    let for_acme = |n| TokenCreate { tenant: Some(acme.clone()), ..request(n, &[UserRole::Read]) };
    assert_eq!(created(&bob, &for_acme(2)).await.unwrap_err().code, Code::Forbidden);
    assert_eq!(created(&ops, &for_acme(3)).await.unwrap_err().code, Code::InvalidValue, "whose it is must be said");
    let for_carl = TokenCreate { user: Some("carl".parse::<User>().unwrap()), ..for_acme(4) };
    let reply = created(&ops, &for_carl).await.unwrap();
    assert_eq!((reply.tenant.as_str(), reply.user.as_str()), ("acme", "carl"));

    let first = revoked(&ops, &new.id).await.unwrap();
    assert!(first.changed);
    let again = revoked(&alice, &new.id).await.unwrap();
    assert_eq!((again.revoked_at, again.changed), (first.revoked_at, false), "who did it first stays on record");
    assert!(store.token(&new.id).await.unwrap().unwrap().has_ended_by(Duration::ZERO));
    let listed = store.of(alice.tenant()).tokens(&TokenFilter::default(), 10).await.unwrap();
    let listed: Vec<_> =
        listed.iter().map(|one| (one.user.as_str(), one.state.as_str(), one.revoked_by.as_deref())).collect();
    assert_eq!(listed, [("carl", "valid", None), ("alice", "revoked", Some("default.ops"))]);
    let actions = format!("SELECT verb || ' ' || changed FROM actions WHERE targets = '{{{}}}' ORDER BY id", new.id);
    let actions: Vec<String> = stack.values(&actions).await;
    assert_eq!(actions, ["tokens.create 1", "tokens.revoke 0", "tokens.revoke 1", "tokens.revoke 0"]);
    stack.finish().await;
}

#[tokio::test]
async fn a_wrong_request_says_what_is_allowed() {
    let stack = Stack::start().await;
    let alice = stack.user("acme", "alice").await;
    let good = request(1, &[UserRole::Read]);
    let with = |change: Value| {
        let mut body = serde_json::to_value(&good).unwrap();
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        body
    };
    for (wrong, says) in [
        (with(json!({"roles": []})), "allowed: a list of submit, inline, read, operate, admin, tokens"),
        (with(json!({"roles": ["root"]})), "unknown variant `root`"),
        (with(json!({"label": "x".repeat(101)})), "up to 100 characters are allowed"),
        (with(json!({"label": "a\u{7}"})), "none of them a control character"),
        (with(json!({"expiry": {"after_seconds": 59}})), "allowed: 60 to 315360000 seconds"),
        (with(json!({"expiry": {"after_seconds": u64::MAX}})), "allowed: 60 to 315360000 seconds"),
        (with(json!({"sha256": "00"})), "64 hexadecimal digits"),
        (with(json!({"id": "ABC"})), "12 of the characters a to z and 2 to 7 are allowed"),
        (with(json!({"secret": "x"})), "unknown field `secret`"),
    ] {
        let error = ask::<TokenCreateReply>(&alice, Verb::TokenCreate, &wrong).await.unwrap_err();
        assert!(error.message.contains(says), "{wrong}: {error}");
    }
    // None of these is an action.
    let store = stack.store(Purpose::Audit).await;
    assert!(store.actions(&ActionFilter::default(), 10).await.unwrap().is_empty());
    stack.finish().await;
}

const ACCESS: &str = r#"
dispatcher.password = "$X"
[tenants.acme.users]
alice = { roles = ["submit", "read"], password = "$X" }
bob = { roles = ["admin"], password = "$X" }
"#;

/// Asks for alice as a gateway does.
async fn for_alice<R: DeserializeOwned>(stack: &Stack, verb: Verb, request: &Value) -> Result<R, ApiError> {
    let (tenant, user) = ("acme".parse().unwrap(), "alice".parse().unwrap());
    let subject = subjects::api(Door::Http, &tenant, &user, verb.roles()[0], verb);
    api(stack.queue().request(&subject, request, ANSWER).await)
}

#[tokio::test]
async fn a_token_never_allows_more_than_the_access_file() {
    let file = file("access", ACCESS);
    let mut stack = Stack::start_with(|stack| stack.dispatcher.access = Some(file.clone())).await;
    stack.work(vec![Tool::echo()]).await;
    let bob = stack.user("acme", "bob").await;
    let for_user =
        |n, user: &str, roles: &[UserRole]| TokenCreate { user: Some(user.parse().unwrap()), ..request(n, roles) };
    created(&bob, &for_user(1, "alice", &[UserRole::Submit])).await.unwrap();
    for (new, says) in [
        (for_user(2, "alice", &[UserRole::Read, UserRole::Admin]), "does not have the role admin"),
        (for_user(3, "carl", &[UserRole::Read]), "user carl of tenant acme is not in the dispatcher's access file"),
    ] {
        let error = created(&bob, &new).await.unwrap_err();
        assert!(error.code == Code::Forbidden && error.message.contains(says), "{error}");
    }
    // A gateway asks for alice; what she may do is compared each time.
    let call = json!({"tool": "echo", "arguments": {"n": 1}});
    let result: SubmitResult = for_alice(&stack, Verb::CallSubmit, &call).await.unwrap();
    let call_id = result.call.unwrap();
    let get = json!({"call": call_id});
    stack.wait_for_end(call_id).await;
    std::fs::write(&file, ACCESS.replace(r#""submit", "read""#, r#""read""#) + "# changed\n").unwrap();
    until("the file was read again", async || {
        let result: SubmitResult = for_alice(&stack, Verb::CallSubmit, &call).await.unwrap();
        result.error.filter(|error| error.code == Code::Forbidden).map(|_| ())
    })
    .await;
    let result: TaskResult = for_alice(&stack, Verb::TaskSubmit, &json!({"input": "x", "agent": "a"})).await.unwrap();
    assert_eq!(result.error.unwrap().code, Code::Forbidden);
    for (verb, request) in [(Verb::CallCancel, get.clone()), (Verb::CallAnswer, json!({"call": call_id, "output": 1}))]
    {
        assert_eq!(for_alice::<Value>(&stack, verb, &request).await.unwrap_err().code, Code::Forbidden, "{verb:?}");
    }
    assert!(for_alice::<Value>(&stack, Verb::CallGet, &get).await.is_ok(), "she may still read");
    stack.drained(ANSWER).await;
    stack.finish().await;
}

#[tokio::test]
async fn tokens_that_ended_long_ago_are_deleted() {
    let stack = Stack::start().await;
    let alice = stack.user("acme", "alice").await;
    for n in 1..=5 {
        created(&alice, &request(n, &[UserRole::Read])).await.unwrap();
    }
    for (n, column, days) in [(1, "expires_at", 3), (2, "revoked_at", 3), (3, "expires_at", 1), (4, "revoked_at", 1)] {
        let id = token(n).id;
        stack.execute(&format!("UPDATE tokens SET {column} = now() - interval '{days} days' WHERE id = '{id}'")).await;
    }
    let store = stack.store(Purpose::Dispatch).await;
    // Later than that of the dispatcher, which would delete them at a time of its own.
    let cutoff = store.now().await.unwrap() - Duration::from_hours(2 * 24);
    assert_eq!(store.delete_ended_tokens(cutoff, 1).await.unwrap(), 1, "a batch is bounded");
    assert_eq!(store.delete_ended_tokens(cutoff, 10).await.unwrap(), 1);
    let left: Vec<String> = stack.values("SELECT id FROM tokens ORDER BY id").await;
    assert_eq!(left, (3..=5).map(|n| token(n).id.to_string()).collect::<Vec<_>>());
    stack.finish().await;
}
