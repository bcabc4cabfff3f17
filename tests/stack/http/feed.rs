//! The feed of a tenant.

use std::collections::BTreeSet;

use redial_store::Time;
use redial_test_stack::{Stack, TestGateway};
use serde_json::json;

use super::{client::Http, sse::Sse};

async fn gateway_of(stack: &Stack, tenant: &str) -> TestGateway {
    let who = (tenant.parse().unwrap(), "alice".parse().unwrap());
    stack.serve_http_with(|config| config.without_token = Some(who)).await
}

/// Calls that have ended.
async fn ended_calls(http: &Http, count: usize) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    for n in 0..count {
        let body = json!({"tool": "echo", "arguments": {"n": n}});
        let view = http.ended("/v1/calls", &body).await;
        calls.insert(view["call"].as_str().unwrap().to_owned());
    }
    calls
}

/// Reads a feed until all these calls were told.
async fn told(feed: &mut Sse, mut calls: BTreeSet<String>) -> BTreeSet<String> {
    let mut others = BTreeSet::new();
    while !calls.is_empty() {
        let event = feed.next_of("call").await;
        let call = event.data["call"].as_str().unwrap().to_owned();
        assert_eq!((&event.data["tool"], &event.data["state"]), (&"echo".into(), &"succeeded".into()));
        assert!(event.id.is_some());
        if !calls.remove(&call) {
            others.insert(call);
        }
    }
    others
}

#[tokio::test]
async fn what_ends_while_nobody_listens_is_told_after_a_reconnect() {
    let stack = Stack::with_echo().await;
    let (acme, globex) = (gateway_of(&stack, "acme").await, gateway_of(&stack, "globex").await);
    let (http, other) = (Http::of(&acme), Http::of(&globex));
    let mut feed = Sse::open(&acme.url, "/v1/events", None).await;
    let mut foreign = Sse::open(&globex.url, "/v1/events", None).await;
    let listening = feed.next_of("listening").await;
    foreign.next_of("listening").await;
    let first = ended_calls(&http, 3).await;
    assert_eq!(told(&mut feed, first.clone()).await, BTreeSet::new(), "each once");
    drop(feed);
    acme.stop();
    // No gateway of the tenant listens now.
    let submitter = gateway_of(&stack, "acme").await;
    let missed = ended_calls(&Http::of(&submitter), 5).await;
    let since = listening.id.unwrap();
    let mut feed = Sse::open(&submitter.url, "/v1/events", Some(&since)).await;
    let told_since = feed.next_of("listening").await.data["since"].clone();
    let time = |text: &str| text.parse::<Time>().unwrap();
    assert!(time(told_since.as_str().unwrap()) <= time(&since), "{told_since}, {since}");
    let again = told(&mut feed, missed.clone()).await;
    assert!(again.is_subset(&first), "only what ended since then");

    let mut listed = BTreeSet::new();
    let mut next = listening.data["missed"].as_str().map(|link| format!("{link}&page_size=3"));
    let submitter_http = Http::of(&submitter);
    while let Some(link) = next {
        let page = submitter_http.get(&link).await.must(200);
        let items = page["items"].as_array().unwrap();
        listed.extend(items.iter().map(|item| item["call"].as_str().unwrap().to_owned()));
        next = page["next"].as_str().map(str::to_owned);
    }
    assert_eq!(listed, &first | &missed);

    let own = ended_calls(&other, 1).await;
    assert_eq!(told(&mut foreign, own.clone()).await, BTreeSet::new(), "nothing of another tenant");
    let page = other.get(listening.data["missed"].as_str().unwrap()).await.must(200);
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    for wrong in ["/v1/events?after=3.0", "/v1/events/missed?since=yesterday", "/v1/events/missed"] {
        other.get(wrong).await.problem(422, "invalid_value");
    }
    stack.finish().await;
}

/// A transaction of somebody else, however long it takes: the feed goes on, and its ids do.
#[tokio::test]
async fn a_long_transaction_holds_up_no_feed() {
    let stack = Stack::with_echo().await;
    let acme = gateway_of(&stack, "acme").await;
    let http = Http::of(&acme);
    let mut long = stack.db().begin().await.unwrap();
    sqlx::query("SELECT pg_current_xact_id()").execute(&mut *long).await.unwrap();
    let began: Time = sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(stack.db()).await.unwrap();
    let mut feed = Sse::open(&acme.url, "/v1/events", None).await;
    feed.next_of("listening").await;
    assert_eq!(told(&mut feed, ended_calls(&http, 3).await).await, BTreeSet::new(), "each once");
    loop {
        assert_eq!(told(&mut feed, ended_calls(&http, 1).await).await, BTreeSet::new(), "each once");
        let listening = Sse::open(&acme.url, "/v1/events", None).await.next_of("listening").await;
        if listening.id.unwrap().parse::<Time>().unwrap() > began {
            break;
        }
    }
    long.rollback().await.unwrap();
    stack.finish().await;
}

/// It gets each end once, although what is read from the record for it is also told as news.
#[tokio::test]
async fn a_stream_that_goes_on_after_an_id_is_told_nothing_twice() {
    let stack = Stack::with_echo().await;
    let acme = gateway_of(&stack, "acme").await;
    let http = Http::of(&acme);
    let mut first = Sse::open(&acme.url, "/v1/events", None).await;
    let since = first.next_of("listening").await.id.unwrap();
    let before = ended_calls(&http, 20).await;
    let (mut feed, more) = tokio::join!(Sse::open(&acme.url, "/v1/events", Some(&since)), ended_calls(&http, 20));
    assert_eq!(told(&mut feed, &before | &more).await, BTreeSet::new(), "each once");
    assert_eq!(told(&mut feed, ended_calls(&http, 1).await).await, BTreeSet::new(), "and none again later");
    stack.finish().await;
}
