//! Tokens and their roles, in OpenAI's form.

use redial_proto::UserRole;
use redial_test_stack::token;
use serde_json::{Value, json};

use super::{
    fixture::{Fixture, says},
    retries::create,
};

#[tokio::test]
async fn a_token_that_may_only_submit_cancels_and_is_shown_nothing_more() {
    let slow = says("never").after(std::time::Duration::from_secs(30));
    let Some(fixture) = Fixture::open([slow]).await else { return };
    let gateway = fixture.stack.serve_http_with(|_| {}).await;
    let answer = create(&gateway, &json!({})).bearer_auth("none").send().await.unwrap();
    assert_eq!(answer.status(), 401);
    let error = answer.json::<Value>().await.unwrap()["error"].clone();
    assert_eq!((&error["type"], &error["code"]), (&"authentication_error".into(), &"unauthenticated".into()));
    assert!(error["message"].as_str().unwrap().contains("redial token create"), "{error}");

    let submits = token(fixture.stack.queue(), &[UserRole::Submit]).await.text();
    let whole = token(fixture.stack.queue(), &[UserRole::Submit, UserRole::Read]).await.text();
    let begun = create(&gateway, &json!({"background": true})).bearer_auth(&submits).send().await.unwrap();
    let id = begun.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    let cancel = async |token: &str| {
        let client = redial_http::direct().build().unwrap();
        let request = client.post(format!("{}/v1/responses/{id}/cancel", gateway.url)).bearer_auth(token);
        request.send().await.unwrap().json::<Value>().await.unwrap()
    };
    let shown = json!({"id": id, "object": "response", "status": "cancelled", "model": "travel"});
    assert_eq!(cancel(&submits).await, shown);
    assert!(cancel(&whole).await["conversation"].is_object(), "whoever may read is shown all of it");
    fixture.close().await;
}
