//! Whom the gateway lets in, and what it says to those whom it cannot answer.

use redial_test_stack::Stack;
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Answer, Http};

#[tokio::test]
async fn every_bad_request_is_a_problem_that_says_what_is_allowed() {
    let stack = Stack::with_echo().await;
    let http = Http::open(&stack).await;
    let good = json!({"tool": "echo", "arguments": {}}).to_string();
    let deep = format!("{{\"tool\": \"echo\", \"arguments\": {}1{}}}", "[".repeat(100), "]".repeat(100));
    let long = format!("{{\"tool\": \"echo\", \"arguments\": {{\"a\": \"{}\"}}}}", "x".repeat(18 << 20));
    let many = format!("[{}]", vec![good.as_str(); 1_001].join(","));
    let json = "application/json";
    for (method, path, media, body, status, code, says) in [
        (Method::GET, "/nowhere", json, "", 404, "not_found", "/openapi.json"),
        (Method::PUT, "/v1/calls", json, "{}", 405, "method_not_allowed", "the header Allow"),
        (Method::GET, "/v1/calls/17", json, "", 422, "invalid_value", "a UUID"),
        (Method::POST, "/v1/calls", "text/plain", &good, 415, "unsupported_media_type", "application/json"),
        (Method::POST, "/v1/tasks", "text/plain", &good, 415, "unsupported_media_type", "application/json"),
        (Method::POST, "/v1/calls", json, "{", 400, "invalid_message", "line 1"),
        (Method::POST, "/v1/calls", json, "17", 400, "invalid_message", "the body cannot be read"),
        (Method::POST, "/v1/calls", json, r#"{"tool": "echo"}"#, 400, "invalid_message", "arguments"),
        (Method::POST, "/v1/calls", json, r#"{"tool": "echo", "retry": 3}"#, 400, "invalid_message", "retry"),
        (Method::POST, "/v1/calls", json, r#"{"tool": "", "arguments": {}}"#, 422, "invalid_value", "tool"),
        (Method::POST, "/v1/calls", json, &deep, 413, "too_large", "allowed: 72"),
        (Method::POST, "/v1/calls", json, &long, 413, "too_large", "allowed: 17825792"),
        (Method::POST, "/v1/calls/wait", json, r#"{"calls": []}"#, 422, "invalid_value", "1 to 1000"),
        (Method::POST, "/v1/calls", json, &many, 413, "too_large", "1 to 1000"),
        (Method::POST, "/v1/calls", json, "[]", 422, "invalid_value", "1 to 1000"),
        (Method::POST, "/v1/calls", json, r#""x""#, 400, "invalid_message", "an object: a call, or calls with a list"),
        (Method::GET, "/errors/none", json, "", 404, "not_found", "none"),
    ] {
        let request = http.request(method, path).header("content-type", media).body(body.to_owned());
        let answer = Answer::of(request).await;
        let detail = answer.problem(status, code);
        assert!(detail.contains(says), "{path} {}: {detail}", &body[..body.len().min(60)]);
        let page = http.get(answer.body["type"].as_str().unwrap()).await;
        assert!(page.status == 200 && page.text.starts_with(&format!("# {code}")), "{}", page.text);
    }
    stack.finish().await;
}

#[tokio::test]
async fn what_may_not_enter_is_told_why() {
    let stack = Stack::start().await;
    let http = Http::open(&stack).await;
    what_is_wrong_in_a_body_or_its_headers_is_named(&http).await;
    pages_of_other_sites_and_other_names_reach_nothing(&http, &http.url).await;
    a_header_of_which_only_the_first_would_count_is_given_once(&http, &http.url).await;
    a_head_has_64_kib_at_most(&http).await;
    stack.finish().await;
}

async fn what_is_wrong_in_a_body_or_its_headers_is_named(http: &Http) {
    let answer = http.post("/v1/calls", &json!({"tool": "echo", "arguments": {}, "retry": {"cap_ms": "x"}})).await;
    let error = &answer.body["errors"][0];
    assert_eq!((&error["pointer"], &error["rule"]), (&"/retry/cap_ms".into(), &"type".into()), "{}", answer.text);
    assert_eq!(error["allowed"], "u64");
    for media in ["application/json", "application/x-ndjson"] {
        let request = http.request(Method::POST, "/v1/calls").header("content-type", media);
        let answer = Answer::of(request.header("content-encoding", "gzip").body("{}")).await;
        let detail = answer.problem(415, "unsupported_media_type");
        assert!(detail.contains("Content-Encoding is \"gzip\"; allowed: none"), "{detail}");
    }
    let answer = http.request(Method::PUT, "/v1/calls").send().await.unwrap();
    assert!(answer.headers()["allow"].to_str().unwrap().contains("POST"));
}

async fn pages_of_other_sites_and_other_names_reach_nothing(http: &Http, url: &str) {
    let call = || http.request(Method::POST, "/v1/calls").json(&json!({"tool": "echo", "arguments": {}}));
    for (name, value, status) in [
        ("host", "attacker.example:8700", 421),
        ("origin", "https://attacker.example", 403),
        ("origin", "null", 403),
        ("sec-fetch-site", "cross-site", 403),
    ] {
        Answer::of(call().header(name, value)).await.problem(status, "forbidden");
    }
    for path in ["/healthz", "/readyz"] {
        let probe = http.request(Method::GET, path).header("host", "10.0.0.7:8700").send().await.unwrap();
        assert_eq!(probe.status(), 200, "{path}");
    }
    Answer::of(call().header("origin", url)).await.problem(422, "unknown_tool");
}

async fn a_header_of_which_only_the_first_would_count_is_given_once(http: &Http, url: &str) {
    let host = url.strip_prefix("http://").unwrap();
    for (name, values) in [
        ("Host", [host, "attacker.example"]),
        ("Authorization", ["Bearer one", "Bearer two"]),
        ("Idempotency-Key", ["one", "two"]),
    ] {
        let body = json!({"tool": "echo", "arguments": {}});
        let send = async |values: &[&str]| {
            let request = http.request(Method::POST, "/v1/calls").json(&body);
            let request = values.iter().fold(request, |request, value| request.header(name, *value));
            Answer::of(request).await
        };
        let detail = send(&values).await.problem(400, "invalid_message");
        assert_eq!(detail, format!("the header {name} is given 2 times; allowed: once"));
        send(&values[..1]).await.problem(422, "unknown_tool");
    }
}

async fn a_head_has_64_kib_at_most(http: &Http) {
    // Besides them there are the first line, `Host` and a few more.
    for (bytes, status) in [(63 * 1024, 200), (64 * 1024, 431), (80 * 1024, 431), (120 * 1024, 431)] {
        let filled = (0..60).fold(http.request(Method::GET, "/healthz"), |request, n| {
            request.header(format!("x-filled-{n:02}"), "x".repeat(bytes / 60 - 15))
        });
        // The connection may be closed before all of it was sent.
        assert_eq!(filled.send().await.map_or(431, |answer| answer.status().as_u16()), status, "{bytes}");
    }
}

#[tokio::test]
async fn the_front_door_leads_people_to_the_console_and_tells_programs_where_things_are() {
    let stack = Stack::start().await;
    let http = Http::open(&stack).await;
    let places = http.get("/").await;
    assert_eq!(places.headers["vary"], "accept");
    let places = places.must(200);
    for name in ["openapi", "docs", "console", "health", "ready"] {
        assert_ne!(http.get(places[name].as_str().unwrap()).await.status, 404, "{name}");
    }
    // The page itself: a client that follows comes to the console.
    let browser = http.request(Method::GET, "/").header("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let page = browser.send().await.unwrap();
    assert_eq!((page.status().as_u16(), page.url().path()), (200, "/console"));
    // A slash at the end means nothing, whatever the method.
    http.get("/v1/calls/?page_size=1").await.must(200);
    http.post("/v1/calls/", &json!({"tool": "echo", "arguments": {}})).await.problem(422, "unknown_tool");
    assert_eq!(http.get("/console/").await.status, 200);
    let nothing = http.get("/nowhere/").await;
    nothing.problem(404, "not_found");
    stack.finish().await;
}

#[tokio::test]
async fn health_readiness_and_metrics_are_told() {
    let mut stack = Stack::start().await;
    let http = Http::open(&stack).await;
    assert_eq!(http.get("/healthz").await.text, "ok\n");
    // On a busy machine each of the three may be late with its answer for a moment.
    let tells = async |status: u16, wanted: Value| {
        redial_test_stack::until(&format!("it tells {wanted}"), async || {
            let answer = http.get("/readyz").await;
            (answer.status == status && answer.body == wanted).then_some(())
        })
        .await;
    };
    tells(200, json!({"ready": true, "postgres": "ok", "nats": "ok", "dispatcher": "ok"})).await;
    stack.stop_dispatchers().await;
    tells(503, json!({"ready": false, "postgres": "ok", "nats": "ok", "dispatcher": "unavailable"})).await;
    let answer = http.post("/v1/calls", &json!({"tool": "echo", "arguments": {}})).await;
    assert_eq!(answer.headers["retry-after"], "1");
    answer.problem(503, "unavailable");
    let metrics = http.get("/metrics").await.text;
    let counted = "redial_gateway_request_duration_seconds_count{route=\"/readyz\",method=\"GET\",status=\"503\"} ";
    let count = metrics.lines().find_map(|line| line.strip_prefix(counted)?.parse::<u64>().ok());
    assert!(count >= Some(1), "{metrics}");
    let invented = Method::from_bytes(b"INVENTED").unwrap();
    http.request(invented, "/healthz").send().await.unwrap();
    let metrics = http.get("/metrics").await.text;
    assert!(metrics.contains("method=\"other\"") && !metrics.contains("INVENTED"), "{metrics}");
    stack.finish().await;
}
