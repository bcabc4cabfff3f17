//! One request to a provider, and its answer.

pub(crate) mod failure;
mod redaction;
mod sse;

use std::time::{Duration, SystemTime};

use redial_proto::{ErrorClass, Failure, TurnReply, TurnRequest, limits::MAX_OUTPUT};
use reqwest::{
    Client, Response, Url,
    header::{CONTENT_TYPE, HeaderMap},
    redirect::Policy,
};
use serde_json::Value;

use crate::{
    answer::{self, Taken},
    api::Api,
    model::Watch,
    openai,
};

pub(crate) use redaction::Redaction;
pub(crate) use sse::Events;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an error's body that are read.
const MAX_ERROR_BODY: usize = 64 * 1024;
/// Bytes of a body that are read: more than a reply may have, because of what stands around it.
const MAX_BODY: usize = 4 * MAX_OUTPUT;

/// The client for all models. It follows no redirects: one could lead the key to another host.
pub(crate) fn client() -> Result<Client, reqwest::Error> {
    // reqwest is built without a provider of its own; whoever installed one first is right.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(Policy::none())
        .user_agent(concat!("redial/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Where a model's requests go.
pub(crate) struct Endpoint {
    pub(crate) client: Client,
    pub(crate) url: Url,
    /// Why it cannot be asked, if a variable is missing.
    pub(crate) headers: Result<HeaderMap, Failure>,
    pub(crate) redaction: Redaction,
}

impl Endpoint {
    /// Sends a body, and reads the answer as the reply to `request`.
    pub(crate) async fn ask(
        &self,
        api: Api,
        request: &TurnRequest,
        body: &Value,
        watch: Watch<'_>,
    ) -> Result<TurnReply, Failure> {
        let reply = self.attempt(api, request, body, watch).await;
        reply.map_err(|failure| self.redaction.shown(failure)).inspect_err(|failure| {
            if failure.class == ErrorClass::Internal {
                tracing::error!(task = %request.task, turn = request.turn, "{}", failure.message);
            }
        })
    }

    async fn attempt(
        &self,
        api: Api,
        request: &TurnRequest,
        body: &Value,
        watch: Watch<'_>,
    ) -> Result<TurnReply, Failure> {
        let headers = self.headers.clone()?;
        let sent = self.client.post(self.url.clone()).json(body).headers(headers).send().await;
        let response = sent.map_err(|error| failure::transport(&error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        if !status.is_success() {
            let body = read_up_to(response, MAX_ERROR_BODY).await;
            return match openai::salvage(&body).filter(|_| api == Api::OpenAi && status == 400) {
                Some(reply) => Ok(reply),
                None => Err(failure::response(status, &headers, &body, SystemTime::now())),
            };
        }
        let streamed = headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if streamed {
            read_stream(api, request, response, watch).await
        } else {
            read_whole(api, request, response).await
        }
    }
}

async fn read_whole(api: Api, request: &TurnRequest, mut response: Response) -> Result<TurnReply, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failure::transport(&error))? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_BODY {
            return Ok(crate::limit::too_long(""));
        }
    }
    answer::whole(api, request, &body)
}

async fn read_stream(
    api: Api,
    request: &TurnRequest,
    mut response: Response,
    watch: Watch<'_>,
) -> Result<TurnReply, Failure> {
    let mut events = answer::Streamed::new(api);
    loop {
        let end = match response.chunk().await {
            Ok(Some(chunk)) => match events.take(&chunk, watch)? {
                Taken::More => continue,
                Taken::Enough => None,
            },
            Ok(None) => Some(failure::broke_off()),
            Err(error) => Some(failure::transport(&error)),
        };
        return events.end(request, end);
    }
}

/// The start of an error's body; one that breaks off is as good.
async fn read_up_to(mut response: Response, max: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() >= max {
            body.truncate(max);
            break;
        }
    }
    body
}
