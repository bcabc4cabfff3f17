//! The built-in tool that delivers webhooks: one signed `POST` for each attempt.
//!
//! A URL comes from a tenant, and is asked for from within the operator's network. So the addresses of its host are checked
//! when the connection is made, redirects are not followed, no proxy is used, and nothing of the answer but its status is kept.

mod classify;
mod receivers;
mod resolver;

use std::{sync::Arc, time::Duration};

use chrono::Utc;
use futures_util::{FutureExt, future::BoxFuture};
use redial_proto::{
    ErrorClass, Failure, ToolEffect, ToolSpec,
    webhook::{self, Delivery},
};
use redial_webhooks::{Allowed, Signed, WebhookKey, check_target, signed};
use reqwest::{Client, Response, header::CONTENT_TYPE};
use serde_json::value::RawValue;

use self::{
    receivers::{Limits, Receivers, Turn},
    resolver::{Lookup, PublicOnly, System},
};
use crate::{
    context::Context,
    handler::{Handler, ToolResult},
    tool::Tool,
};

/// Deliveries that one worker makes at the same time, to all receivers.
const AT_ONCE: u32 = 64;
/// What a receiver, or a tenant, may have of them.
const LIMITS: Limits = Limits { each: 32, all: AT_ONCE as usize, probes: 16 };
/// A connection takes no longer.
const CONNECT: Duration = Duration::from_secs(5);
/// Of an answer's body so much is read, for so long, only so that its connection can be used again.
const BODY: usize = 16 * 1024;
const BODY_TIME: Duration = Duration::from_secs(1);

impl Tool {
    /// The tool `redial_webhook`, which delivers webhooks with secrets derived from this key, to the public internet and to
    /// what is allowed besides. The error says why there is no HTTP client.
    pub fn webhooks(key: WebhookKey, allowed: Allowed) -> Result<Self, String> {
        let built = Self::webhooks_with(key, allowed, Arc::new(System));
        built.map_err(|error| format!("its HTTP client cannot be built: {error}"))
    }

    fn webhooks_with(key: WebhookKey, allowed: Allowed, lookup: Arc<dyn Lookup>) -> Result<Self, reqwest::Error> {
        let client = client(allowed.clone(), lookup)?;
        let spec = ToolSpec {
            pool: webhook::POOL.to_owned(),
            timeout_ms: webhook::TIMEOUT_MS,
            retry: webhook::RETRY,
            retry_budget: webhook::RETRY_BUDGET,
            repairs: false,
            effect: ToolEffect::Idempotent,
            description: "Delivers an event to a webhook.".to_owned(),
            ..ToolSpec::named(webhook::TOOL)
        };
        let receivers = Receivers::new(LIMITS);
        Ok(Self::from_handler(spec, Arc::new(Deliverer { client, key, allowed, receivers })).concurrency(AT_ONCE))
    }
}

fn client(allowed: Allowed, lookup: Arc<dyn Lookup>) -> Result<Client, reqwest::Error> {
    // Past the proxy of the environment, which would ask for the address itself, and reach what this process may not.
    redial_http::direct()
        .connect_timeout(CONNECT)
        .dns_resolver(Arc::new(PublicOnly::new(allowed, lookup)))
        .user_agent(concat!("redial-webhooks/", env!("CARGO_PKG_VERSION")))
        .build()
}

struct Deliverer {
    client: Client,
    key: WebhookKey,
    allowed: Allowed,
    receivers: Receivers,
}

impl Handler for Arc<Deliverer> {
    fn run(&self, context: Context, arguments: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        let deliverer = Arc::clone(self);
        async move { deliverer.deliver(&context, &arguments).await }.boxed()
    }
}

impl Deliverer {
    async fn deliver(&self, context: &Context, arguments: &RawValue) -> ToolResult {
        let delivery: Delivery = serde_json::from_str(arguments.get()).map_err(|error| {
            let message = format!("the arguments are no delivery of this version of Redial: {error}");
            Failure::new(ErrorClass::InvalidArguments, message).without_effect()
        })?;
        if delivery.key != self.key.id() {
            return Err(other_key());
        }
        let url = check_target(&delivery.url, &self.allowed).map_err(|refused| classify::refused(&refused))?;
        let Some(turn) = self.receivers.enter(&context.tenant, delivery.webhook).await else {
            return Err(classify::busy());
        };
        let now = Utc::now();
        let body = delivery.body.get().as_bytes();
        let what = Signed {
            tenant: &context.tenant,
            webhook: delivery.webhook,
            id: &delivery.event,
            timestamp: now.timestamp(),
            body,
        };
        // A delivery has no key of its own, so another idempotency key is that of the delivery that it runs again.
        let is_late = context.attempt > 1 || context.idempotency_key != context.call.to_string();
        let request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &delivery.event)
            .header("webhook-timestamp", what.timestamp)
            .header("webhook-signature", signed(&self.key, &what, &delivery.versions(now, is_late)))
            .body(body.to_vec());
        let answer = request.send().await;
        ended(turn, answer.as_ref().is_err_and(reqwest::Error::is_timeout));
        let answer = answer.map_err(|error| classify::transport(&error))?;
        let status = answer.status();
        let failure = classify::answer(status, answer.headers(), delivery.webhook, now.into());
        discard(answer).await;
        failure.map_or_else(|| output(status.as_u16()), Err)
    }
}

fn ended(turn: Turn, timed_out: bool) {
    // A turn that is dropped without this counts as one that got no answer.
    if !timed_out {
        turn.answered();
    }
}

fn output(status: u16) -> ToolResult {
    serde_json::value::to_raw_value(&serde_json::json!({ "status": status }))
        .map_err(|error| Failure::new(ErrorClass::Internal, error.to_string()))
}

/// Reads a short body, so that the connection can be used again.
async fn discard(mut answer: Response) {
    let read = async {
        let mut size = 0;
        while let Ok(Some(chunk)) = answer.chunk().await {
            size += chunk.len();
            if size > BODY {
                return;
            }
        }
    };
    // What takes longer is not worth it: the connection is closed.
    let _ = tokio::time::timeout(BODY_TIME, read).await;
}

fn other_key() -> Failure {
    let message = "this worker has another REDIAL_WEBHOOK_KEY than the dispatcher that gave the webhook its secret; set the \
                   same key everywhere, or rotate the webhook's secret, and redrive the delivery";
    Failure::new(ErrorClass::Configuration, message).without_effect()
}

#[cfg(test)]
mod tests;
