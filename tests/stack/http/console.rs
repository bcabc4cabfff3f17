//! Pages of the console as anybody may ask for them, without a browser.

use redial_proto::{ApiToken, RedriveFilter, RedriveId, RedriveState, RedriveView, ToolEffect, UserRole};
use redial_test_stack::{Stack, token};
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Answer, Http};

/// Sends a form, and follows to the page after it.
async fn send(http: &Http, path: &str, fields: &[(&str, &str)]) -> Answer {
    let mut body = reqwest::Url::parse("http://form").unwrap();
    body.query_pairs_mut().extend_pairs(fields);
    let request = http.request(Method::POST, path).header("content-type", "application/x-www-form-urlencoded");
    Answer::of(request.body(body.query().unwrap().to_owned())).await
}

/// So many calls that failed.
async fn failed(stack: &Stack, count: u32) {
    for _ in 0..count {
        let call = stack.call("tool", json!({"fail": "auth"})).await;
        stack.wait_for_end(call).await;
    }
}

async fn redrive(http: &Http, id: &str) -> RedriveView {
    let ended = http.until(&format!("/v1/redrives/{id}"), |view| !view["finished_at"].is_null()).await;
    serde_json::from_value(ended).unwrap()
}

#[tokio::test]
async fn no_more_runs_again_than_was_counted_and_confirmed() {
    let stack = Stack::with_tool(ToolEffect::Read).await;
    let http = Http::open(&stack).await;
    let ids = [(); 4].map(|()| RedriveId::generate().to_string());
    let [count, order, other_count, early] = ids.each_ref().map(String::as_str);
    let filter = "tool=tool&state=failed";
    failed(&stack, 2).await;
    let page = send(&http, "/console/failed/count", &[("filter", filter), ("redrive", count)]).await;
    assert!(page.status == 200 && page.text.contains("2 calls would run again"), "{}", page.text);

    // More failed before the order came.
    failed(&stack, 3).await;
    let ordered = async |filter: &str, order: &str, count: &str| {
        let fields = [("filter", filter), ("redrive", order), ("count", count), ("confirmed", "yes"), ("rate", "1000")];
        send(&http, "/console/failed/redrive", &fields).await
    };
    assert_eq!(ordered(filter, order, count).await.status, 200);
    let view = redrive(&http, order).await;
    assert_eq!((view.state, view.redriven), (RedriveState::Failed, 0), "{view:?}");
    assert!(view.error.unwrap().contains("allowed by at_most: 2"));

    // An order needs a count of its own filter; a count is no order; another order's id is not this order.
    for (filter, order, count) in [
        ("tool=tool&state=cancelled", early, count),
        (filter, early, order),
        (filter, early, ""),
        (filter, count, count),
    ] {
        let answer = ordered(filter, order, count).await;
        assert!((400..500).contains(&answer.status), "{filter} {order} {count}: {} {}", answer.status, answer.text);
    }
    let none = http.get("/v1/redrives?state=running").await.must(200);
    assert_eq!(none["redrives"], json!([]));

    send(&http, "/console/failed/count", &[("filter", filter), ("redrive", other_count)]).await;
    let again = RedriveId::generate().to_string();
    let page = ordered(filter, &again, other_count).await;
    assert!(page.text.contains("on record"), "{}", page.text);
    let view = redrive(&http, &again).await;
    let is_filter = RedriveFilter { tool: Some("tool".to_owned()), ..view.filter.clone() } == view.filter;
    assert_eq!((view.state, view.redriven, view.at_most, is_filter), (RedriveState::Done, 5, Some(5), true));
    stack.drained(std::time::Duration::from_secs(25)).await;
    stack.finish().await;
}

#[tokio::test]
async fn addresses_that_cost_much_or_lead_nowhere_are_refused() {
    let stack = Stack::start().await;
    let http = Http::open(&stack).await;
    let many: Vec<String> = (0..2_000).map(|n| format!("a=x{n}")).collect();
    let long = format!("x={}", "y".repeat(9_000));
    for query in [many.join("&"), long] {
        for path in ["/console/failed/redrive", "/console/calls", "/console/sign-in"] {
            let answer = http.get(&format!("{path}?{query}")).await;
            assert!(answer.status == 414 && answer.text.len() < 200, "{path}: {} {}", answer.status, answer.text);
        }
    }
    for path in ["/console/nope", "/console/tasks/x/y/z"] {
        let answer = http.get(path).await;
        assert!(answer.status == 404 && answer.text.contains("<h1>Not on record</h1>"), "{path}: {}", answer.text);
    }
    let trimmed = http.get("/console/tasks/").await;
    assert!(trimmed.status == 200 && trimmed.text.contains("<h1>Tasks</h1>"), "{}", trimmed.text);
    // Names of parameters are texts, too.
    for query in ["%20=1", "%22%3E=1", "%00=1", "x%0d%0ay=1", "a%26state%3Dfailed=x", "since=yesterday"] {
        let answer = http.get(&format!("/console/calls?{query}")).await;
        assert!(answer.status == 422 || answer.status == 400, "{query}: {} {}", answer.status, answer.text);
    }
    let counted = [("filter", "state=refused"), ("redrive", &*RedriveId::generate().to_string())];
    assert_eq!(send(&http, "/console/failed/count", &counted).await.status, 422);
    // What answers hold is for nobody after the session.
    assert_eq!(http.get("/v1/calls").await.headers["cache-control"], "no-store");
    stack.finish().await;
}

#[tokio::test]
async fn a_browser_creates_and_revokes_tokens_with_its_own_token_once_more() {
    let stack = Stack::start().await;
    let http = Http::wanting_tokens(&stack).await;
    let own = token(stack.queue(), &[UserRole::Admin, UserRole::Read]).await;
    let signed_in = http.with_token(&own.text()).post("/v1/session", &Value::Null).await;
    let cookie = signed_in.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let send = async |path: &str, fields: &[(&str, &str)]| {
        let mut body = reqwest::Url::parse("http://form").unwrap();
        body.query_pairs_mut().extend_pairs(fields);
        let request = http.request(Method::POST, path).body(body.query().unwrap().to_owned());
        let request = request.header("content-type", "application/x-www-form-urlencoded").header("cookie", &cookie);
        Answer::of(request.header("sec-fetch-site", "same-origin")).await
    };
    let path = "/console/settings/tokens";
    for wrong in ["", "rdl_nonsense"] {
        let refused = send(path, &[("read", "yes"), ("own", wrong)]).await;
        assert!(
            refused.status == 422 && refused.text.contains("Your own token is needed once more"),
            "{}",
            refused.text
        );
    }
    let page = send(path, &[("read", "yes"), ("admin", "yes"), ("own", &own.text())]).await;
    assert!(page.text.contains(&format!("created with <code>{}</code>", own.id)), "{}", page.text);
    let (_, created) = page.text.split_once("<code class=\"wrap\">").unwrap();
    let created: ApiToken = created.split_once('<').unwrap().0.parse().unwrap();
    let child = http.with_token(&created.text()).post("/v1/tokens", &json!({"roles": ["read"]})).await.must(201);
    let page = send(&format!("{path}/{}/revoke", created.id), &[("own", &own.text())]).await;
    let shown = format!("<li><code>{}</code>", child["id"].as_str().unwrap());
    assert!(page.status == 200 && page.text.contains(&shown), "{}", page.text);
    assert_eq!(stack.count("tokens WHERE revoked_at IS NULL").await, 1);
    stack.finish().await;
}
