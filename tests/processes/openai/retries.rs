//! What a client may send again, and what not: the official one obeys the header `x-should-retry`.

use std::{pin::pin, time::Duration};

use redial_proto::{
    ApiError, Code, Door, TaskSubmission,
    subjects::{self, Verb},
};
use redial_queue::Requests;
use redial_test_stack::{Stack, TestGateway, until};
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use super::fixture::{Fixture, says};

const SHOULD_RETRY: &str = "x-should-retry";

/// A request to create a response.
pub(crate) fn create(gateway: &TestGateway, more: &Value) -> RequestBuilder {
    let mut body = json!({"model": "travel", "input": "Hello"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let client = redial_http::direct().build().unwrap();
    client.post(format!("{}/v1/responses", gateway.url)).json(&body)
}

fn should_retry(answer: &Response) -> Option<&str> {
    answer.headers().get(SHOULD_RETRY).map(|value| value.to_str().unwrap())
}

/// Takes one request and dies before it answers, as far as its sender knows; returns what it has taken.
async fn takes_and_dies(requests: &mut Requests) -> TaskSubmission {
    let request = requests.next().await.unwrap();
    request.reply_error(&ApiError::new(Code::Unavailable, "the database is gone")).await;
    serde_json::from_slice(&request.payload).unwrap()
}

#[tokio::test]
async fn a_request_whose_fate_is_unknown_is_not_to_be_sent_again_unless_it_has_a_key() {
    let mut stack = Stack::start().await;
    let gateway = stack.serve_http().await;
    stack.stop_dispatchers().await;
    // Nobody was there to take it.
    let answer = create(&gateway, &json!({})).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), should_retry(&answer)), (503, None));

    let mut requests = stack.queue().serve(&subjects::api_of_all(Door::Http, Verb::TaskSubmit), None).await.unwrap();
    // The server has answered what was sent after the subscription, so it knows of it.
    stack.queue().health().await.unwrap();
    let mut asked = async |request: RequestBuilder| {
        let mut answer = pin!(request.send());
        let [first, second] = tokio::select! {
            biased;
            both = async { [takes_and_dies(&mut requests).await, takes_and_dies(&mut requests).await] } => both,
            answer = &mut answer => panic!("it was answered before it was taken twice: {answer:?}"),
        };
        assert_eq!(first.key, second.key, "the second request makes no second task");
        (answer.await.unwrap(), first.key.unwrap())
    };
    let (answer, one) = asked(create(&gateway, &json!({}))).await;
    assert_eq!((answer.status().as_u16(), should_retry(&answer)), (503, Some("false")));
    let (_, other) = asked(create(&gateway, &json!({}))).await;
    assert_ne!(one, other, "the same question may be asked twice");
    let (answer, key) = asked(create(&gateway, &json!({})).header("idempotency-key", "order-17")).await;
    assert_eq!((answer.status().as_u16(), should_retry(&answer), key.as_str()), (503, None, "order-17"));
    stack.finish().await;
}

#[tokio::test]
async fn a_gateway_that_stops_names_the_response_that_goes_on() {
    let slow = says("never").after(Duration::from_secs(30));
    let Some(fixture) = Fixture::open([slow]).await else { return };
    let [one, two] = &fixture.gateways[..] else { panic!("there are two gateways") };
    let client = redial_http::direct().build().unwrap();
    let stream = create(one, &json!({"stream": true, "conversation": "streamed"})).send().await.unwrap();
    assert_eq!((stream.status().as_u16(), should_retry(&stream)), (200, Some("false")));
    fixture.model.arrived(1).await;
    // The second one waits for the first.
    let waits = tokio::spawn(create(one, &json!({"conversation": "streamed"})).send());
    until("both are waited for", async || {
        let metrics = client.get(format!("{}/metrics", one.url)).send().await.unwrap().text().await.unwrap();
        let is_told = |line: &str| metrics.lines().any(|one| one == line);
        (is_told("redial_gateway_streams 1") && is_told("redial_gateway_waiting 2")).then_some(())
    })
    .await;
    one.stop();
    let answer = waits.await.unwrap().unwrap();
    assert_eq!((answer.status().as_u16(), should_retry(&answer)), (503, Some("false")));
    let body: Value = answer.json().await.unwrap();
    let message = body["error"]["message"].as_str().unwrap();
    let waiting = message.split_whitespace().find(|word| word.starts_with("resp_")).unwrap();
    let streamed = stream.text().await.unwrap();
    assert!(streamed.ends_with(": this gateway stops; connect again\n\n"), "{streamed}");
    let first = streamed.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let first: Value = serde_json::from_str(first).unwrap();
    // Neither was stopped.
    for (id, status) in [(waiting, "queued"), (first["response"]["id"].as_str().unwrap(), "in_progress")] {
        let url = format!("{}/v1/responses/{id}", two.url);
        let shown: Value = client.get(&url).send().await.unwrap().json().await.unwrap();
        assert_eq!(shown["status"], status);
        let cancelled: Value = client.post(format!("{url}/cancel")).send().await.unwrap().json().await.unwrap();
        assert_eq!(cancelled["status"], "cancelled");
    }
    fixture.close().await;
}
