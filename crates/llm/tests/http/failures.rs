//! Failures of providers, and their classes.

use redial_proto::{ErrorClass, Failure};
use redial_testkit::{Reply, ScriptedHttp};
use serde_json::json;

use crate::{KEY, ask, asked, model, path, stream};

async fn failure(provider: &str, reply: Reply) -> Failure {
    let failure = ask(provider, reply).await.0.unwrap_err();
    for secret in [KEY, "team-canary", "127.0.0.1"] {
        assert!(!failure.message.contains(secret), "{}", failure.message);
    }
    failure
}

#[tokio::test]
async fn every_status_has_a_class() {
    for provider in ["openai", "anthropic", "react"] {
        for (status, class) in [
            (400, ErrorClass::Internal),
            (401, ErrorClass::Auth),
            (404, ErrorClass::Configuration),
            (413, ErrorClass::Internal),
            (429, ErrorClass::RateLimited),
            (500, ErrorClass::Unavailable),
            (529, ErrorClass::Unavailable),
            (302, ErrorClass::Configuration),
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
}

#[tokio::test]
async fn a_key_that_is_shown_in_part_is_removed() {
    for (text, shown) in [
        (
            "Incorrect API key provided: cana***5f1c. See the docs.",
            "Incorrect API key provided: [secret]. See the docs.",
        ),
        ("Your api key: ****5f1c is invalid", "Your api key: [secret] is invalid"),
        ("key=canary… at tcp:10.0.0.7:80:x", "key=[secret] at tcp:[host]:x"),
        ("upstream key sk-1234567890abcdefghij", "upstream key [secret]"),
    ] {
        let body = json!({"error": {"message": text}}).to_string();
        let whole = failure("openai", Reply::status(401).body(body.clone())).await;
        assert_eq!(whole.message, format!("the provider answered 401 Unauthorized: {shown}"));
        let event = failure("openai", stream(&body)).await;
        assert_eq!(event.message, format!("the provider reported an error: {shown}"));
    }
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

#[tokio::test]
async fn an_unreachable_provider_is_unavailable() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("models.toml");
    let lines = format!("provider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:{port}\"\n");
    std::fs::write(&path, format!("[models.m]\n{lines}")).unwrap();
    let models = redial_llm::load_with(&path, &|_| None).unwrap();
    let failure = models[0].ask(&asked(), |_| ()).await.unwrap_err();
    assert_eq!((failure.class, failure.effect_possible), (ErrorClass::Unavailable, false));
    assert_eq!(failure.message, "the provider cannot be reached: connection refused");
}

#[tokio::test]
async fn a_missing_variable_is_reported_and_nothing_is_sent() {
    let server = ScriptedHttp::start().await;
    for lines in ["key_env = \"NOT_SET\"", "headers = { A = \"${NOT_SET}\" }"] {
        let text =
            format!("[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}\"\n{lines}\n", server.url(""));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("models.toml"), text).unwrap();
        let models = redial_llm::load_with(&folder.path().join("models.toml"), &|_| None).unwrap();
        let failure = models[0].ask(&asked(), |_| ()).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Configuration);
        assert_eq!(failure.message, "environment variable NOT_SET is not set");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_key_that_a_header_cannot_contain_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("models.toml");
    std::fs::write(&path, "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nkey_env = \"KEY\"\n").unwrap();
    let models = redial_llm::load_with(&path, &|_| Some(format!("{KEY}\n\u{1}x"))).unwrap();
    let failure = models[0].ask(&asked(), |_| ()).await.unwrap_err();
    assert_eq!(failure.message, "environment variable KEY contains characters that a header cannot contain");
}

#[tokio::test]
async fn a_stream_that_breaks_after_its_end_is_complete() {
    let server = ScriptedHttp::start().await;
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"yes\"},\"finish_reason\":\"stop\"}]}\n\n";
    server.script(path("openai"), [Reply::status(200).header("content-type", "text/event-stream").body(body)]);
    let reply = model(&server, "openai", "").ask(&asked(), |_| ()).await.unwrap();
    assert_eq!(reply.text.as_deref(), Some("yes"));
}
