//! Webhooks over HTTP.

use redial_proto::UserRole;
use redial_test_stack::{Reply, ScriptedHttp, Stack};
use reqwest::Method;
use serde_json::json;

use super::client::{Answer, Http};

#[tokio::test]
async fn a_webhook_is_created_tested_rotated_changed_and_deleted() {
    let mut stack = Stack::with_echo().await;
    stack.deliver_webhooks("127.0.0.0/8").await;
    let receiver = ScriptedHttp::start().await;
    receiver.script("/hook", [Reply::status(200)]);
    let http = Http::wanting_tokens(&stack).await;
    let acme = stack.user("acme", "alice").await;
    let admin = http.of_user(&acme, &[UserRole::Admin, UserRole::Read, UserRole::Submit]).await;
    let reader = http.of_user(&acme, &[UserRole::Read]).await;

    let body = json!({"url": receiver.url("/hook"), "events": ["call.succeeded"]});
    let key = [("idempotency-key", "hook-1")];
    let created = admin.post_with("/v1/webhooks", &body, &key).await;
    let location = created.headers["location"].to_str().unwrap().to_owned();
    let created = created.must(201);
    assert_eq!(admin.post_with("/v1/webhooks", &body, &key).await.must(201), created, "the answer may have been lost");
    assert!(created["secret"].as_str().unwrap().starts_with("whsec_"));
    let refused = reader.post("/v1/webhooks", &body).await.problem(403, "forbidden");
    assert_eq!(refused, "the token has the roles read; allowed: one of admin");
    for (wrong, says) in [
        (json!({"url": "ftp://x", "events": ["call.*"]}), "the scheme \"ftp\""),
        (json!({"url": "https://x.example", "events": []}), "events holds 0"),
    ] {
        let detail = admin.post("/v1/webhooks", &wrong).await.problem(422, "invalid_value");
        assert!(detail.contains(says), "{detail}");
    }
    assert_eq!(reader.get(&location).await.must(200), created["webhook"]);
    assert_eq!(reader.get("/v1/webhooks").await.must(200), json!({"webhooks": [created["webhook"]]}));

    let tested = admin.post(&format!("{location}/test"), &json!({})).await;
    let call = tested.headers["location"].to_str().unwrap().to_owned();
    tested.must(202);
    receiver.arrived(1).await;
    stack.drained(std::time::Duration::from_secs(25)).await;
    assert_eq!(reader.get(&call).await.must(200)["output"], json!({"status": 200}));
    let id = created["webhook"]["webhook"].as_str().unwrap();
    let deliveries = reader.get(&format!("/v1/calls?tool=redial_webhook&argument=/webhook={id}")).await.must(200);
    assert_eq!(deliveries["calls"].as_array().unwrap().len(), 1, "{deliveries}");

    let rotated = admin.post(&format!("{location}/rotate"), &json!({"version": 1})).await.must(200);
    assert_ne!(rotated["secret"], created["secret"]);
    admin.post(&format!("{location}/rotate"), &json!({"version": 9})).await.problem(409, "wrong_state");
    let change = json!({"state": "disabled"});
    let disabled = admin.request(Method::PATCH, &location).json(&change);
    assert_eq!(Answer::of(disabled).await.must(200)["reason"], "user");
    assert_eq!(admin.send(Method::DELETE, &location).await.must(200), json!({"cancelled": 0}));
    reader.get(&location).await.problem(404, "webhook_not_found");
    stack.finish().await;
}
