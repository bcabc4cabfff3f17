//! The OpenAI-compatible addresses, driven by OpenAI's own Python client on real servers.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

#[path = "openai/chat.rs"]
mod chat;
#[path = "openai/errors.rs"]
mod errors;
#[path = "openai/fixture.rs"]
mod fixture;
#[path = "openai/kills.rs"]
mod kills;
#[path = "openai/large.rs"]
mod large;
#[path = "openai/python.rs"]
mod python;
#[path = "openai/responses.rs"]
mod responses;
#[path = "openai/retries.rs"]
mod retries;
#[path = "shared/python.rs"]
mod shared;
#[path = "openai/tokens.rs"]
mod tokens;

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn scripted_worker() {
    redial_testkit::run_scripted_worker().await;
}
