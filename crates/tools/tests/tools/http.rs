//! HTTP tools against a small TCP server that sends the responses of each test.

use std::fs;

use redial_proto::ErrorClass;
use redial_tools::{CommandUser, Context, Tool, ToolResult, load_with};
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

const SECRET: &str = "canary-5f1c";

fn tool(port: u16, http: &str) -> Tool {
    let text = format!(
        r#"
[[tool]]
name = "t"
effect = "keyed"
parameters = {{ properties = {{ city = {{ type = "string" }}, days = {{ type = "integer" }} }}, required = ["city"] }}
[tool.http]
url = "http://127.0.0.1:{port}/v1/{{{{arguments.city}}}}?days={{{{arguments.days}}}}"
{http}
"#
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tools.toml");
    fs::write(&path, text).unwrap();
    load_with(&path, &CommandUser::Own, &|_| Some(SECRET.to_owned())).unwrap().remove(0)
}

async fn run(tool: &Tool, arguments: &str) -> ToolResult {
    run_with("key-7", tool, arguments).await
}

async fn run_with(idempotency_key: &str, tool: &Tool, arguments: &str) -> ToolResult {
    let context = Context {
        attempt: 2,
        idempotency_key: idempotency_key.to_owned(),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        ..Context::new("t")
    };
    tool.run(context, RawValue::from_string(arguments.to_owned()).unwrap()).await
}

/// Reads the head and body of one request.
async fn request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    loop {
        let read = stream.read_buf(&mut text).await.unwrap();
        let so_far = String::from_utf8_lossy(&text).into_owned();
        let complete = so_far.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            body.len() >= length.unwrap_or(0_usize)
        });
        if complete || read == 0 {
            return so_far;
        }
    }
}

/// Answers one request with `reply`; returns the tool's result and the request.
async fn exchange(http: &str, arguments: &str, reply: impl Into<Vec<u8>>) -> (ToolResult, String) {
    exchange_with("key-7", http, arguments, reply).await
}

async fn exchange_with(key: &str, http: &str, arguments: &str, reply: impl Into<Vec<u8>>) -> (ToolResult, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tool = tool(listener.local_addr().unwrap().port(), http);
    let reply = reply.into();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = request(&mut stream).await;
        // The tool may close the connection in the middle of a reply that is too large.
        let _ = stream.write_all(&reply).await;
        request
    };
    tokio::join!(run_with(key, &tool, arguments), server)
}

fn reply(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn the_request_is_as_declared() {
    let http = "method = \"POST\"\nheaders = { Authorization = \"Bearer {{secret.KEY}}\", X-City = \"{{arguments.city}}\" }\n\
                body = { where = \"{{arguments.city}}\", days = \"{{arguments.days}}\" }";
    let (answer, request) = exchange(http, r#"{"city":"北京 a"}"#, reply("200 OK", "", r#"{"t" : 1.0}"#)).await;
    assert_eq!(answer.unwrap().get(), r#"{"t" : 1.0}"#);
    let mut lines: Vec<_> = request.lines().filter(|line| !line.starts_with("host:")).collect();
    lines[1..].sort_unstable();
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test]
async fn undeclared_arguments_are_not_sent_unless_the_manifest_says_so() {
    let sent = async |http: &str| {
        let arguments = r#"{"city":"a","is_admin":true,"days":1.50}"#;
        exchange(http, arguments, reply("200 OK", "", "")).await.1
    };
    for http in ["method = \"PUT\"", "method = \"POST\"\nbody = \"arguments\""] {
        let request = sent(http).await;
        assert!(request.ends_with("\r\n\r\n{\"city\":\"a\",\"days\":1.50}"), "{request}");
    }
    let request = sent("method = \"POST\"\nbody = \"all_arguments\"").await;
    assert!(request.ends_with(r#"{"city":"a","is_admin":true,"days":1.50}"#), "{request}");
}

#[tokio::test]
async fn a_slash_is_sent_only_where_the_manifest_allows_it() {
    let refused = run(&tool(1, "method = \"GET\""), r#"{"city":"docs/a"}"#).await.unwrap_err();
    assert_eq!((refused.class, refused.effect_possible), (ErrorClass::InvalidArguments, false));
    assert_eq!((refused.details[0].path.as_str(), refused.details[0].rule.as_str()), ("/city", "path"));
    let http = "method = \"GET\"\nallow_slash = [\"city\"]";
    let (_, request) = exchange(http, r#"{"city":"docs/a"}"#, reply("200 OK", "", "")).await;
    assert!(request.starts_with("GET /v1/docs%2Fa HTTP/1.1\r\n"), "{request}");
    let tool = tool(1, http);
    for bad in ["docs/../a", "docs//a", "/docs", "docs%2f..", "docs\\\\a"] {
        let failure = run(&tool, &format!(r#"{{"city":"{bad}"}}"#)).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::InvalidArguments, "{bad}");
    }
}

#[tokio::test]
async fn declared_headers_win_over_redials_own() {
    let http = "method = \"POST\"\nheaders = { Idempotency-Key = \"{{call}}\", Accept = \"text/csv\" }";
    let (_, request) = exchange(http, r#"{"city":"a"}"#, reply("200 OK", "", "")).await;
    assert!(request.contains("accept: text/csv\r\n") && !request.contains("key-7"), "{request}");
}

#[tokio::test]
async fn any_idempotency_key_is_sent() {
    for (key, sent) in [("order 7\n", "order%207%0A"), ("订单", "%E8%AE%A2%E5%8D%95"), ("a/b%", "a/b%")] {
        let (answer, request) =
            exchange_with(key, "method = \"POST\"", r#"{"city":"a"}"#, reply("200 OK", "", "")).await;
        answer.unwrap();
        assert!(request.contains(&format!("idempotency-key: {sent}\r\n")), "{request}");
    }
}

#[tokio::test]
async fn an_echoed_secret_is_redacted() {
    let http = "method = \"GET\"\nheaders = { X = \"{{secret.KEY}}\" }";
    let body = format!(r#"{{"you sent":"{SECRET}"}}"#);
    let (answer, _) = exchange(http, r#"{"city":"a"}"#, reply("200 OK", "", &body)).await;
    assert_eq!(answer.unwrap().get(), r#"{"you sent":"[secret]"}"#);
}

#[tokio::test]
async fn text_of_an_error_is_for_operators_unless_the_manifest_allows_it() {
    let answer = || reply("404 Not Found", "content-type: text/plain\r\n", "no city at db-7.internal");
    let (kept, _) = exchange("method = \"GET\"", r#"{"city":"a"}"#, answer()).await;
    let kept = kept.unwrap_err();
    assert_eq!((kept.class, kept.message.as_str()), (ErrorClass::BusinessRule, "the service answered 404 Not Found"));
    assert_eq!(kept.diagnostics.as_deref(), Some("no city at [host]"));
    let allowed = "method = \"GET\"\nerror_text_to_model = true";
    let (shown, _) = exchange(allowed, r#"{"city":"a"}"#, answer()).await;
    let shown = shown.unwrap_err();
    assert_eq!(shown.message, "the service answered 404 Not Found: no city at [host]");
    assert_eq!(shown.diagnostics, None);
}

#[tokio::test]
async fn failures_are_classified() {
    use ErrorClass::{Configuration, OutputInvalid, RateLimited, Unavailable};
    for (reply, class, effect_possible) in [
        (reply("429 Too Many Requests", "retry-after: 2\r\n", ""), RateLimited, false),
        (reply("302 Found", "location: http://evil.example.com/\r\n", ""), Configuration, true),
        // It breaks off.
        ("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_owned(), Unavailable, true),
        // Not an outage.
        (reply("200 OK", "content-encoding: gzip\r\n", "this is not gzip"), OutputInvalid, true),
    ] {
        let (failure, _) = exchange("method = \"POST\"", r#"{"city":"a"}"#, reply).await;
        let failure = failure.unwrap_err();
        assert_eq!((failure.class, failure.effect_possible), (class, effect_possible), "{failure:?}");
        assert_eq!(failure.retry_after_ms, (class == RateLimited).then_some(2_000));
        assert!(!failure.message.contains("127.0.0.1"), "{}", failure.message);
    }
}

#[tokio::test]
async fn without_a_connection_there_is_no_effect() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let failure = run(&tool(port, "method = \"POST\""), r#"{"city":"a"}"#).await.unwrap_err();
    assert_eq!((failure.class, failure.effect_possible), (ErrorClass::Unavailable, false));
    assert_eq!(failure.message, "the service cannot be reached: connection refused");
}

#[tokio::test]
async fn endless_replies_are_cut_off() {
    let mut endless = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
    endless.resize(20 * 1024 * 1024, b'x');
    let failure = exchange("method = \"GET\"", r#"{"city":"a"}"#, endless).await.0.unwrap_err();
    assert_eq!(failure.class, ErrorClass::OutputTooLarge);
    assert!(failure.message.len() < 1000);
}

#[tokio::test]
async fn an_argument_that_a_header_cannot_contain_is_refused() {
    let tool = tool(9, "method = \"GET\"\nheaders = { X = \"{{arguments.city}}\" }");
    let failure = run(&tool, r#"{"city":"a\r\nX-Admin: 1"}"#).await.unwrap_err();
    assert_eq!((failure.class, failure.details[0].path.as_str()), (ErrorClass::InvalidArguments, "/city"));
}

#[tokio::test]
async fn dropping_an_attempt_closes_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tool = tool(listener.local_addr().unwrap().port(), "method = \"GET\"");
    let (asked, wait) = oneshot::channel();
    let attempt = tokio::spawn(async move { run(&tool, r#"{"city":"a"}"#).await });
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        request(&mut stream).await;
        asked.send(()).unwrap();
        stream.read(&mut [0]).await.unwrap()
    });
    wait.await.unwrap();
    attempt.abort();
    assert_eq!(server.await.unwrap(), 0, "the connection was closed");
}
