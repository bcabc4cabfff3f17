//! Tokens: who may do what, and in which tenant.

use redial_proto::{ApiToken, TokenRevoke, TokenRevokeReply, UserRole, subjects::Verb};
use redial_test_stack::{Stack, token, until};
use reqwest::Method;
use serde_json::{Value, json};

use super::{client::Http, sse::Sse};

pub(crate) const ANSWER: std::time::Duration = std::time::Duration::from_secs(25);

#[tokio::test]
async fn a_token_is_a_tenant_and_its_roles() {
    let stack = Stack::with_echo().await;
    let http = Http::wanting_tokens(&stack).await;
    let (acme, globex) = (stack.user("acme", "alice").await, stack.user("globex", "bob").await);
    let submits = http.of_user(&acme, &[UserRole::Submit]).await;
    let reads = http.of_user(&acme, &[UserRole::Read]).await;
    let other = http.of_user(&globex, &UserRole::ALL).await;

    let body = json!({"tool": "echo", "arguments": {"n": 1}, "key": "k"});
    let call = submits.ended("/v1/calls", &body).await["call"].clone();
    let path = format!("/v1/calls/{}", call.as_str().unwrap());
    let view = reads.get(&path).await.must(200);
    assert_eq!(view["submitted_by"], "alice");
    let detail = reads.post("/v1/calls", &body).await.problem(403, "forbidden");
    assert_eq!(detail, "the token has the roles read; allowed: one of submit");
    submits.get(&path).await.problem(403, "forbidden");
    other.get(&path).await.problem(404, "call_not_found");
    let wait = json!({"calls": [call]});
    other.post("/v1/calls/wait", &wait).await.problem(404, "call_not_found");
    let theirs = other.ended("/v1/calls", &body).await;
    assert_ne!(theirs["call"], call, "keys are a tenant's own");
    for query in ["", "tool=echo", "key=k", "contains=n", "not_tool=none", "state=succeeded"] {
        let list = other.get(&format!("/v1/calls?{query}")).await.must(200);
        let calls = list["calls"].as_array().unwrap();
        assert_eq!((calls.len(), &calls[0]["call"]), (1, &theirs["call"]), "{query}");
        assert_eq!(list["searched"]["calls"], 1, "{query}: nobody learns how many calls others have");
    }
    let actions = other.get("/v1/actions").await.must(200);
    let actions = actions["actions"].as_array().unwrap();
    assert!(!actions.is_empty() && actions.iter().all(|action| action["user"] == "bob"), "{actions:?}");
    assert_eq!(other.get("/v1/statistics").await.must(200)["groups"][0]["calls"], 1);
    other.get("/v1/workers").await.problem(403, "forbidden");
    submits.ended("/v1/calls", &json!({"tool": "echo", "arguments": {}})).await;
    let token_of_acme = reads.get("/v1/calls?page_size=1").await.must(200)["next_page_token"].clone();
    other.get(&format!("/v1/calls?page_token={}", token_of_acme.as_str().unwrap())).await.problem(422, "invalid_value");
    stack.finish().await;
}

#[tokio::test]
async fn what_is_no_valid_token_opens_nothing() {
    let stack = Stack::start().await;
    let http = Http::wanting_tokens(&stack).await;
    let acme = stack.user("acme", "alice").await;
    let valid = token(&acme, &[UserRole::Read]).await;
    let path = "/v1/calls/01a20236-ac46-7781-a3d0-49c0fb4d6170";
    let with = http.with_token(&valid.text());
    with.get(path).await.problem(404, "call_not_found");

    let missing = http.get(path).await;
    assert_eq!(missing.headers["www-authenticate"], "Bearer realm=\"redial\"");
    let wanted = missing.problem(401, "unauthenticated");
    let id = valid.id.to_string();
    let secret = valid.text().rsplit_once('_').unwrap().1.to_owned();
    let swapped: String = secret.chars().rev().collect();
    let unknown = ApiToken::of_random(&[7; 40]).text();
    for wrong in ["x".to_owned(), format!("rdl_{id}_{swapped}"), unknown, String::new()] {
        let answer = http.with_token(&wrong).get(path).await;
        assert_eq!(answer.problem(401, "unauthenticated"), wanted, "the same words for each");
    }
    let counted = http.of_user(stack.queue(), &[UserRole::Read]).await.get("/metrics").await.text;
    for (reason, count) in [("missing", 1), ("malformed", 2), ("wrong_secret", 1), ("unknown", 1)] {
        let line = format!("redial_gateway_refused_tokens_total{{reason=\"{reason}\"}} {count}");
        assert!(counted.lines().any(|one| one == line), "{line}: {counted}");
    }
    let mut feed = Sse::open_with(&http.url, "/v1/events", &valid.text()).await;
    feed.next_of("listening").await;
    let _: TokenRevokeReply =
        acme.ask(Verb::TokenRevoke, &TokenRevoke { id: valid.id, keep_descendants: false }, ANSWER).await.unwrap();
    assert_eq!(feed.rest().await, [], "a stream ends with its token");
    until("the token is not remembered any more", async || (with.get(path).await.status == 401).then_some(())).await;
    stack.finish().await;
}

#[tokio::test]
async fn a_tenant_has_its_limits_however_many_tokens_it_has() {
    let stack = Stack::start().await;
    let limited = |config: &mut redial_gateway::GatewayConfig| (config.rate, config.streams) = (5, 2);
    let http = Http::owning(stack.serve_http_with(limited).await);
    let (one, two) = (stack.user("acme", "alice").await, stack.user("globex", "bob").await);
    let one_more = http.of_user(&one, &[UserRole::Read]).await;
    let one = http.of_user(&one, &[UserRole::Read]).await;
    let two = http.of_user(&two, &[UserRole::Read]).await;
    let path = "/v1/calls/01a20236-ac46-7781-a3d0-49c0fb4d6170";
    until("more are sent than are let in", async || {
        let at_once = futures_util::future::join_all((0..20).map(|_| one.get(path))).await;
        let is_limited = at_once.iter().any(|answer| answer.status == 429);
        (is_limited && one_more.get(path).await.status == 429).then_some(())
    })
    .await;
    two.get(path).await.problem(404, "call_not_found");
    // A wait counts by its calls.
    let _feed = Sse::open_with(&http.url, "/v1/events", two.token()).await;
    let calls: Vec<String> = (0..51).map(|n| format!("01a20236-ac46-7781-a3d0-49c0fb4d6{n:03}")).collect();
    let answer = two.post("/v1/calls/wait", &json!({"calls": calls})).await;
    let detail = answer.problem(429, "rate_limited");
    assert_eq!(detail, "1 of the 2 streams and waiting requests of the tenant are free; this request needs 2");
    assert!(answer.headers.contains_key("retry-after"));
    stack.finish().await;
}

#[tokio::test]
async fn which_requests_all_send_is_told_to_operators_only() {
    let stack = Stack::start().await;
    let http = Http::wanting_tokens(&stack).await;
    let operator = http.of_user(stack.queue(), &[UserRole::Read]).await;
    let other = http.of_user(&stack.user("acme", "alice").await, &[UserRole::Read]).await;
    operator.get("/v1/tools").await.must(200);
    let route = "route=\"/v1/tools\"";
    assert!(operator.get("/metrics").await.text.contains(route));
    let page = other.get("/metrics").await.text;
    assert!(!page.contains("route=") && page.contains("redial_gateway_streams"), "{page}");
    stack.finish().await;
}

#[tokio::test]
async fn an_admin_creates_lists_and_revokes_the_tokens_of_its_tenant() {
    let stack = Stack::start().await;
    let http = Http::wanting_tokens(&stack).await;
    let (acme, globex) = (stack.user("acme", "alice").await, stack.user("globex", "bob").await);
    let admin = http.of_user(&acme, &[UserRole::Read, UserRole::Admin]).await;
    let other = http.of_user(&globex, &[UserRole::Admin]).await;

    let body = json!({"roles": ["read"], "label": "a dashboard", "expiry": {"after_seconds": 3600}});
    let answer = admin.post("/v1/tokens", &body).await;
    assert_eq!(answer.headers["cache-control"], "no-store");
    let created = answer.must(201);
    let text = created["token"].as_str().unwrap();
    assert_eq!((&created["user"], &created["roles"]), (&json!("alice"), &json!(["read"])));
    let reads = http.with_token(text);
    reads.get("/v1/calls").await.must(200);
    reads.get("/v1/tokens").await.problem(403, "forbidden");
    reads.post("/v1/tokens", &body).await.problem(403, "forbidden");

    let first = admin.get("/v1/tokens?page_size=1").await.must(200);
    assert_eq!((&first["tokens"][0]["id"], &first["tokens"][0]["state"]), (&created["id"], &json!("valid")));
    let secret = text.rsplit_once('_').unwrap().1;
    assert!(!first.to_string().contains(secret) && !first.to_string().contains("sha256"), "{first}");
    let next = format!("/v1/tokens?page_size=1&page_token={}", first["next_page_token"].as_str().unwrap());
    assert_eq!(admin.get(&next).await.must(200)["tokens"][0]["roles"], json!(["read", "admin"]));
    let theirs = other.get("/v1/tokens").await.must(200);
    assert_eq!(theirs["tokens"].as_array().unwrap().len(), 1, "the tokens of another tenant do not exist: {theirs}");

    let path = format!("/v1/tokens/{}", created["id"].as_str().unwrap());
    other.send(Method::DELETE, &path).await.problem(404, "token_not_found");
    admin.send(Method::DELETE, "/v1/tokens/x").await.problem(422, "invalid_value");
    for changed in [true, false] {
        assert_eq!(admin.send(Method::DELETE, &path).await.must(200)["changed"], changed);
    }
    until("the token is refused", async || (reads.get("/v1/calls").await.status == 401).then_some(())).await;
    let valid = admin.get("/v1/tokens?only_valid=true").await.must(200);
    assert_eq!(valid["tokens"].as_array().unwrap().len(), 1, "{valid}");
    admin.post("/v1/tokens", &json!({"roles": []})).await.problem(422, "invalid_value");
    admin.post("/v1/tokens", &json!({"roles": ["x"]})).await.problem(400, "invalid_message");
    let foreign = json!({"roles": ["read"], "tenant": "globex", "user": "bob"});
    admin.post("/v1/tokens", &foreign).await.problem(403, "forbidden");
    stack.finish().await;
}

#[tokio::test]
async fn a_token_that_a_token_asks_for_may_do_no_more_and_ends_no_later() {
    let stack = Stack::start().await;
    let http = Http::wanting_tokens(&stack).await;
    let acme = stack.user("acme", "alice").await;
    let reads = http.of_user(&acme, &[UserRole::Read]).await;
    let free = http.of_user(&acme, &[UserRole::Tokens]).await;
    let created = async |by: &Http, body: &Value| {
        let created = by.post("/v1/tokens", body).await.must(201);
        (http.with_token(created["token"].as_str().unwrap()), created)
    };
    // The role `tokens` says that it may.
    let short = json!({"roles": ["admin", "read"], "expiry": {"after_seconds": 60}});
    let (admin, of_admin) = created(&free, &short).await;
    let (_, of_all) = created(&free, &json!({"roles": ["submit"], "expiry": "never"})).await;
    assert_eq!((&of_all["expires_at"], &of_all["parent"]), (&Value::Null, &of_admin["parent"]));

    let all = json!({"roles": ["submit", "inline", "read", "operate", "admin"], "expiry": "never"});
    let detail = admin.post("/v1/tokens", &all).await.problem(403, "forbidden");
    assert_eq!(
        detail,
        "the token that asks does not have the role submit, inline, operate; allowed: read, admin, or more with the role tokens"
    );
    admin.post("/v1/tokens", &json!({"roles": ["tokens"]})).await.problem(403, "forbidden");
    for body in [json!({"roles": ["admin"], "expiry": "never"}), json!({"roles": ["read"], "user": "bob"})] {
        let (_, child) = created(&admin, &body).await;
        assert_eq!((&child["expires_at"], &child["parent"]), (&of_admin["expires_at"], &of_admin["id"]), "{body}");
        let listed = admin.get("/v1/tokens?page_size=1").await.must(200);
        assert_eq!((&listed["tokens"][0]["id"], &listed["tokens"][0]["parent"]), (&child["id"], &of_admin["id"]));
        let told = reads.get("/v1/actions?verb=tokens.create&page_size=1").await.must(200)["actions"][0].clone();
        assert_eq!((&told["targets"][0], &told["token"]), (&child["id"], &of_admin["id"]), "{told}");
    }
    stack.finish().await;
}

#[tokio::test]
async fn a_token_is_revoked_with_all_that_was_created_with_it() {
    let stack = Stack::start().await;
    let http = Http::wanting_tokens(&stack).await;
    let (acme, globex) = (stack.user("acme", "alice").await, stack.user("globex", "bob").await);
    let other = http.of_user(&acme, &[UserRole::Admin]).await;
    let root = token(&acme, &[UserRole::Admin, UserRole::Read]).await;
    let child_of = async |by: &Http| {
        let created = by.post("/v1/tokens", &json!({"roles": ["admin", "read"]})).await.must(201);
        (http.with_token(created["token"].as_str().unwrap()), created["id"].as_str().unwrap().to_owned())
    };
    let (child, child_id) = child_of(&http.with_token(&root.text())).await;
    let (grandchild, grandchild_id) = child_of(&child).await;
    let revoke = async |id: &str, more: &str| other.send(Method::DELETE, &format!("/v1/tokens/{id}{more}")).await;
    let states = |reply: &Value| {
        let all = reply["descendants"].as_array().unwrap().iter();
        all.map(|one| format!("{} {}", one["id"].as_str().unwrap(), one["state"].as_str().unwrap())).collect::<Vec<_>>()
    };
    // Only that one, if it is told so.
    let kept = revoke(&child_id, "?keep_descendants=true").await.must(200);
    assert_eq!((&kept["changed"], states(&kept)), (&json!(true), vec![format!("{grandchild_id} valid")]));
    until("the child is refused", async || (child.get("/v1/calls").await.status == 401).then_some(())).await;
    grandchild.get("/v1/calls").await.must(200);
    // Across one that is revoked already.
    let all = vec![format!("{child_id} revoked"), format!("{grandchild_id} revoked")];
    for changed in [true, false] {
        let reply = revoke(root.id.as_str(), "").await.must(200);
        assert_eq!((&reply["changed"], states(&reply)), (&json!(changed), all.clone()), "the same if it is sent again");
    }
    until("it is refused, too", async || (grandchild.get("/v1/calls").await.status == 401).then_some(())).await;
    assert_eq!(stack.count("tokens WHERE revoked_at IS NULL").await, 1);
    let changed = format!("actions WHERE targets = '{{{}}}' AND changed = 2", root.id);
    assert_eq!(stack.count(&changed).await, 1, "the action says how many");

    // What an operator's token created elsewhere is of its family as well.
    let operator = http.of_user(stack.queue(), &[UserRole::Tokens]).await;
    let body = json!({"tenant": "globex", "user": "bob", "roles": ["admin", "read"]});
    let elsewhere = operator.post("/v1/tokens", &body).await.must(201);
    let (_, theirs) = child_of(&http.with_token(elsewhere["token"].as_str().unwrap())).await;
    let of_operator = elsewhere["parent"].as_str().unwrap();
    let bob = http.of_user(&globex, &[UserRole::Admin]).await;
    bob.send(Method::DELETE, &format!("/v1/tokens/{of_operator}")).await.problem(404, "token_not_found");
    let reply = operator.send(Method::DELETE, &format!("/v1/tokens/{of_operator}")).await.must(200);
    assert_eq!(states(&reply), [format!("{} revoked", elsewhere["id"].as_str().unwrap()), format!("{theirs} revoked")]);
    stack.finish().await;
}
