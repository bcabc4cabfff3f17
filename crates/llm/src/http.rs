//! Sends one request to a provider and receives the response.

use std::{
    ops::ControlFlow,
    time::{Duration, SystemTime},
};

use redial_http::Route;
use redial_proto::{ErrorClass, Failure, TurnReply, TurnRequest, limits::MAX_REPLY};
use redial_redaction::{Secrets, redact_failure};
use reqwest::{
    Response, Url,
    header::{CONTENT_TYPE, HeaderMap},
};
use serde_json::Value;

use crate::{api::Api, failure, limit, openai, piece::Watch, response};

pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// At most this many bytes of an error's body are read.
const MAX_ERROR_BODY: usize = 64 * 1024;
/// At most this many bytes of a body are read: more than a reply may have, because a body has more fields.
const MAX_BODY: usize = 4 * MAX_REPLY;

pub(crate) struct Endpoint {
    pub(crate) route: Route,
    pub(crate) url: Url,
    /// The headers, or why the model cannot be asked, such as a missing variable.
    pub(crate) headers: Result<HeaderMap, Failure>,
    /// What must not be in an error, besides the endpoint's host.
    pub(crate) secrets: Secrets,
}

impl Endpoint {
    /// Sends a body and reads the response as the reply to `request`.
    pub(crate) async fn ask(
        &self,
        api: Api,
        request: &TurnRequest,
        body: &Value,
        watch: Watch<'_>,
    ) -> Result<TurnReply, Failure> {
        let reply = self.attempt(api, request, body, watch).await;
        reply.map_err(|failure| self.redact(failure)).inspect_err(|failure| {
            if failure.class == ErrorClass::Internal {
                tracing::error!(task = %request.task, turn = request.turn, error = failure.message, "Provider rejected a request");
            }
        })
    }

    /// Returns the failure as it may be stored, without secrets and hosts.
    fn redact(&self, failure: Failure) -> Failure {
        redact_failure(self.secrets.redact_failure(failure), self.url.host_str(), "")
    }

    async fn attempt(
        &self,
        api: Api,
        request: &TurnRequest,
        body: &Value,
        watch: Watch<'_>,
    ) -> Result<TurnReply, Failure> {
        let headers = self.headers.clone()?;
        let sent = self.route.client().post(self.url.clone()).json(body).headers(headers).send().await;
        let response = sent.map_err(|error| self.lost(&error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        if !status.is_success() {
            let body = self.secrets.redact_bytes(&read_up_to(response, MAX_ERROR_BODY).await);
            return match openai::failed_generation(&body).filter(|_| api == Api::OpenAi && status == 400) {
                Some(reply) => Ok(reply),
                None => Err(self.route.answered(failure::response(status, &headers, &body, SystemTime::now()))),
            };
        }
        let streamed = headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let read = if streamed {
            self.read_stream(api, request, response, watch).await
        } else {
            self.read_whole(api, request, response).await
        };
        read.map_err(|failure| self.route.answered(failure))
    }

    async fn read_whole(&self, api: Api, request: &TurnRequest, mut response: Response) -> Result<TurnReply, Failure> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.lost(&error))? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BODY {
                return Ok(limit::too_long("", body.len()));
            }
        }
        response::whole(api, request, &body)
    }

    async fn read_stream(
        &self,
        api: Api,
        request: &TurnRequest,
        mut response: Response,
        watch: Watch<'_>,
    ) -> Result<TurnReply, Failure> {
        let mut events = response::StreamedResponse::new(api);
        loop {
            let end = match response.chunk().await {
                Ok(Some(chunk)) => match events.take(&chunk, watch)? {
                    ControlFlow::Continue(()) => continue,
                    ControlFlow::Break(()) => None,
                },
                Ok(None) => Some(failure::incomplete()),
                Err(error) => Some(self.lost(&error)),
            };
            return events.end(request, end);
        }
    }

    /// Makes the failure for a missing or incomplete response.
    fn lost(&self, error: &reqwest::Error) -> Failure {
        self.route.unanswered(failure::transport(error))
    }
}

/// Reads the start of an error's body, also if the connection is lost in the middle of it.
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
