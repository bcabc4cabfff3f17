//! Sessions of browsers: they are what their token is.

use redial_proto::UserRole;
use redial_test_stack::{Stack, token};
use reqwest::{Method, header::SET_COOKIE};
use serde_json::Value;

use super::client::{Answer, Http};

const OWN_PAGE: [(&str, &str); 1] = [("sec-fetch-site", "same-origin")];

/// Signs in; returns the cookie as a browser sends it back.
async fn sign_in(http: &Http) -> String {
    let answer = http.post("/v1/session", &Value::Null).await;
    let cookie = answer.headers[SET_COOKIE].to_str().unwrap().to_owned();
    let who = answer.must(201);
    assert_eq!(who["by"], "session");
    assert!(cookie.contains("; HttpOnly; SameSite=Strict; Max-Age=") && !cookie.contains("Secure"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

async fn ask(http: &Http, method: Method, path: &str, cookie: &str, more: &[(&str, &str)]) -> Answer {
    let mut request = http.request(method, path).header("cookie", cookie);
    for (name, value) in more {
        request = request.header(*name, *value);
    }
    Answer::of(request).await
}

#[tokio::test]
async fn a_session_is_what_its_token_is() {
    let stack = Stack::start().await;
    let (open, elsewhere) = (Http::wanting_tokens(&stack).await, Http::wanting_tokens(&stack).await);
    let reader = token(stack.queue(), &[UserRole::Read]).await;
    let http = open.with_token(&reader.text());
    let cookie = sign_in(&http).await;
    // On every gateway, with the roles of the token.
    for one in [&open, &elsewhere] {
        let who = ask(one, Method::GET, "/v1/session", &cookie, &[]).await.must(200);
        assert_eq!((&who["by"], &who["roles"]), (&"session".into(), &serde_json::json!(["read"])));
        ask(one, Method::GET, "/v1/tasks", &cookie, &[]).await.must(200);
    }
    ask(&open, Method::GET, "/v1/tokens", &cookie, &[]).await.problem(403, "forbidden");
    // It cannot prolong itself, and a wrong token is not taken for it.
    ask(&open, Method::POST, "/v1/session", &cookie, &OWN_PAGE).await.problem(409, "wrong_state");
    let garbage = [("authorization", "Bearer rdl_nonsense")];
    ask(&open, Method::GET, "/v1/session", &cookie, &garbage).await.problem(401, "unauthenticated");
    let twice = format!("{cookie}; {cookie}");
    ask(&open, Method::GET, "/v1/session", &twice, &[]).await.problem(401, "unauthenticated");
    // Only a page of the gateway changes something.
    let unproven = ask(&open, Method::DELETE, "/v1/session", &cookie, &[]).await;
    assert!(unproven.problem(403, "forbidden").contains("Origin"));
    let foreign = [("origin", "https://evil.example")];
    ask(&open, Method::DELETE, "/v1/session", &cookie, &foreign).await.problem(403, "forbidden");
    let ended = ask(&open, Method::DELETE, "/v1/session", &cookie, &OWN_PAGE).await;
    assert!(ended.headers[SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    ended.must(204);
    ask(&open, Method::GET, "/v1/tasks", &cookie, &[]).await.problem(401, "unauthenticated");
    // Through a proxy that speaks HTTPS it is kept for HTTPS only.
    let https = http.post_with("/v1/session", &Value::Null, &[("x-forwarded-proto", "https")]).await;
    assert!(https.headers[SET_COOKIE].to_str().unwrap().ends_with("; Secure"));
    stack.finish().await;
}

#[tokio::test]
async fn sessions_end_with_their_token_and_the_oldest_of_many_goes() {
    let stack = Stack::start().await;
    let open = Http::wanting_tokens(&stack).await;
    let admin = token(stack.queue(), &[UserRole::Admin, UserRole::Read]).await;
    let http = open.with_token(&admin.text());
    let mut cookies = Vec::new();
    for _ in 0..21 {
        cookies.push(sign_in(&http).await);
    }
    assert_eq!(stack.count("sessions").await, 20);
    ask(&open, Method::GET, "/v1/session", &cookies[0], &[]).await.problem(401, "unauthenticated");
    ask(&open, Method::GET, "/v1/session", &cookies[20], &[]).await.must(200);
    // The record has no token and no id of a session.
    let text: Vec<String> = stack.values("SELECT s::text FROM sessions s").await;
    let id = cookies[20].split('=').nth(1).unwrap();
    assert!(text.iter().all(|row| !row.contains(id) && !row.contains(&admin.text())));
    // Whoever took over a browser creates and revokes no token; whoever has the token does.
    let path = format!("/v1/tokens/{}", admin.id);
    for (method, path) in [(Method::POST, "/v1/tokens"), (Method::DELETE, &path)] {
        let json = open.request(method.clone(), path).json(&serde_json::json!({"roles": ["read"]}));
        let by_session = json.header("cookie", &cookies[20]).header("sec-fetch-site", "same-origin");
        let detail = Answer::of(by_session).await.problem(403, "forbidden");
        assert!(detail.contains("Bearer with the token, once more"), "{detail}");
    }
    assert_eq!(stack.count("tokens").await, 1);
    let bearer = format!("Bearer {}", admin.text());
    let once_more = [OWN_PAGE[0], ("authorization", bearer.as_str())];
    ask(&open, Method::DELETE, &path, &cookies[20], &once_more).await.must(200);
    redial_test_stack::until("the session has ended with its token", async || {
        (ask(&open, Method::GET, "/v1/session", &cookies[20], &[]).await.status == 401).then_some(())
    })
    .await;
    stack.finish().await;
}

#[tokio::test]
async fn where_no_token_is_needed_a_session_that_is_none_means_nobody() {
    let stack = Stack::start().await;
    let http = Http::open(&stack).await;
    let who = http.get("/v1/session").await.must(200);
    assert_eq!((&who["by"], &who["expires_at"]), (&"loopback".into(), &Value::Null));
    // Whoever reaches this gateway may have more rights than whoever the session was of.
    let gone = "redial_session=whatever";
    ask(&http, Method::GET, "/v1/session", gone, &[]).await.problem(401, "unauthenticated");
    let page = ask(&http, Method::GET, "/console/sign-in", gone, &[]).await;
    assert!(page.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"), "the browser forgets it");
    http.post("/v1/session", &Value::Null).await.problem(409, "wrong_state");
    stack.finish().await;
}
