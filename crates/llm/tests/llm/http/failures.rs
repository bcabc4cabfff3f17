//! Failures of providers, and their classes.

use redial_proto::{ErrorClass, Failure};
use redial_testkit::{Reply, ScriptedHttp};
use serde_json::json;

use super::{KEY, ask, asked, stream};
use crate::request::{Variable, load};

async fn failure(provider: &str, reply: Reply) -> Failure {
    let failure = ask(provider, reply).await.0.unwrap_err();
    for secret in [KEY, "team-canary", "127.0.0.1"] {
        assert!(!failure.message.contains(secret), "{}", failure.message);
    }
    failure
}

#[tokio::test]
async fn a_status_becomes_a_failure_without_secrets() {
    for (provider, status, class) in [
        ("openai", 401, ErrorClass::Auth),
        ("anthropic", 529, ErrorClass::Unavailable),
        ("react", 429, ErrorClass::RateLimited),
        ("openai", 302, ErrorClass::Configuration),
    ] {
        let message = format!("key {KEY} of team-canary at 127.0.0.1:9 is bad");
        let body = json!({"error": {"message": message}}).to_string();
        let failure = failure(provider, Reply::status(status).header("retry-after", "2").body(body)).await;
        assert_eq!(failure.class, class, "{status}");
        assert!(failure.message.ends_with("key [secret] of [secret] at [host] is bad"), "{}", failure.message);
        let retried = matches!(class, ErrorClass::RateLimited | ErrorClass::Unavailable);
        assert_eq!(failure.retry_after_ms, retried.then_some(2000));
    }
}

#[tokio::test]
async fn a_key_that_is_shown_in_part_is_removed() {
    let told = json!({"error": {"message": "key cana***5f1c at tcp:10.0.0.7:80:x"}}).to_string();
    let whole = failure("openai", Reply::status(401).body(told.clone())).await;
    assert_eq!(whole.message, "the provider answered 401 Unauthorized: key [secret] at tcp:[host]:x");
    let event = failure("openai", stream(&told)).await;
    assert_eq!(event.message, "the provider reported an error: key [secret] at tcp:[host]:x");
    // A message that is cut in the middle of the key.
    let long = format!("{}{KEY} is wrong", "x".repeat(984));
    let cut = failure("openai", Reply::status(401).body(json!({"error": {"message": long}}).to_string())).await;
    assert!(!cut.message.contains("cana"), "{}", cut.message);
}

#[tokio::test]
async fn an_unusable_response_is_retried() {
    let half = r#"{"choices":[{"delta":{"content":"I "}}]}"#;
    for reply in [
        Reply::status(200).header("content-type", "text/html").body("<html>proxy of 127.0.0.1:1</html>"),
        Reply::json("{\"status\":\"ok\"}"),
        Reply::json("\"ok\""),
        Reply::json(""),
        Reply::hang_up(),
        stream(half),
        stream(&format!("{half}\n{{\"choices")),
        stream(""),
        stream("[DONE]"),
        stream(r#"{"error":{"message":"overloaded","type":"server_error"}}"#),
        Reply::json(r#"{"error":{"message":"busy","code":503}}"#),
    ] {
        let failure = failure("openai", reply).await;
        assert_eq!(failure.class, ErrorClass::Unavailable, "{failure:?}");
    }
    let overloaded = stream(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);
    let failure = failure("anthropic", overloaded).await;
    assert_eq!(failure.message, "the provider reported an error: Overloaded");
}

/// Returns the failure of a model with these lines, which cannot be asked.
async fn not_asked(lines: &str, variable: Variable<'_>) -> Failure {
    let text = format!("[models.m]\nprovider = \"openai\"\nmodel = \"m\"\n{lines}\n");
    load(&text, "", variable).unwrap().remove(0).ask(&asked(), |_| ()).await.unwrap_err()
}

#[tokio::test]
async fn an_unreachable_provider_is_unavailable() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let failure = not_asked(&format!("base_url = \"http://127.0.0.1:{port}\""), &|_| None).await;
    assert_eq!((failure.class, failure.effect_possible), (ErrorClass::Unavailable, false));
    assert_eq!(failure.message, "the provider cannot be reached: connection refused");
}

#[tokio::test]
async fn a_variable_that_cannot_be_used_is_reported_and_nothing_is_sent() {
    let server = ScriptedHttp::start().await;
    let unusable = |_: &str| Some(format!("{KEY}\n\u{1}x"));
    let missing = "environment variable NOT_SET is not set";
    let characters = "environment variable KEY contains characters that a header cannot contain";
    let rows: [(&str, Variable<'_>, &str); 3] = [
        ("key_env = \"NOT_SET\"", &|_| None, missing),
        ("headers = { A = \"${NOT_SET}\" }", &|_| None, missing),
        ("key_env = \"KEY\"", &unusable, characters),
    ];
    for (lines, variable, told) in rows {
        let failure = not_asked(&format!("base_url = \"{}\"\n{lines}", server.url("")), variable).await;
        assert_eq!((failure.class, failure.message.as_str()), (ErrorClass::Configuration, told));
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_stream_that_ends_without_a_last_event_is_complete() {
    let events = r#"{"choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}]}"#;
    assert_eq!(ask("openai", stream(events)).await.0.unwrap().text.as_deref(), Some("yes"));
}

#[tokio::test]
async fn a_key_for_this_machine_is_not_given_to_a_proxy() {
    let (proxy, server) = (ScriptedHttp::start().await, ScriptedHttp::start().await);
    server.script("/chat/completions", [Reply::status(503)]);
    proxy.script("/chat/completions", [Reply::status(503)]);
    let failure = async |url: &str, key: &str| {
        let variable: Variable<'_> = &|name| match name {
            "HTTP_PROXY" => Some(proxy.url("")),
            "KEY" => Some(KEY.to_owned()),
            _ => None,
        };
        let model = format!("[models.m]\nprovider = \"openai\"\nmodel = \"big\"\nbase_url = \"{url}\"\n{key}\n");
        load(&model, "", variable).unwrap()[0].ask(&asked(), |_| ()).await.unwrap_err().message
    };
    let local = failure(&server.url(""), "key_env = \"KEY\"").await;
    assert_eq!(local, "the provider answered 503 Service Unavailable");
    let far = failure("http://0.0.0.0:1", "key_env = \"KEY\"\ninsecure_http = true").await;
    assert!(far.contains("cannot be reached") && far.contains("the proxy of HTTP_PROXY was not used"), "{far}");
    assert!(proxy.requests().is_empty(), "{:?}", proxy.requests());
    let proxied = failure("http://models.invalid", "").await;
    assert_eq!(
        proxied,
        "the provider answered 503 Service Unavailable; the request went through the proxy of HTTP_PROXY"
    );
}
