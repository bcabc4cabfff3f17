//! Tools that are one HTTP request.

mod classify;
mod declared;

use std::{sync::Arc, time::SystemTime};

use futures_util::{FutureExt, future::BoxFuture};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use redial_http::Route;
use redial_proto::{Failure, ToolEffect, limits::MAX_PAYLOAD};
use redial_redaction::redact_failure;
use reqwest::{
    Method, Request, Response,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::value::RawValue;

use crate::{
    context::Context,
    handler::{Handler, ToolResult},
    output,
    template::{JsonTemplate, RefusedValue, Template, UrlTemplate, Values},
};

pub(crate) use declared::{Declared, unknown_reference};

/// At most this many bytes of an error's body are read.
const MAX_ERROR_BODY: usize = 64 * 1024;
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const ACCEPTED: HeaderValue = HeaderValue::from_static("application/json, text/plain;q=0.9, */*;q=0.5");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What the request carries.
#[derive(Debug)]
pub(crate) enum Body {
    None,
    /// The arguments that a schema declares.
    Declared(Declared),
    /// The arguments, byte for byte.
    AllArguments,
    Json(JsonTemplate),
}

/// A tool that sends one HTTP request.
#[derive(Debug)]
pub(crate) struct HttpTool {
    pub(crate) route: Route,
    pub(crate) method: Method,
    pub(crate) url: UrlTemplate,
    pub(crate) headers: Vec<(HeaderName, Template)>,
    pub(crate) body: Body,
    pub(crate) effect: ToolEffect,
    /// Whether the plain text of an error may be part of its message, which models read.
    pub(crate) error_text_to_model: bool,
}

impl Handler for Arc<HttpTool> {
    fn run(&self, context: Context, arguments: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        let tool = Arc::clone(self);
        async move {
            let result = tool.attempt(&context, &arguments).await;
            result.map_err(|failure| {
                let failure = context.secrets.redact_failure(failure);
                redact_failure(failure, Some(tool.url.host()), arguments.get())
            })
        }
        .boxed()
    }
}

impl HttpTool {
    async fn attempt(&self, context: &Context, arguments: &RawValue) -> ToolResult {
        let request = self.request(context, arguments)?;
        let unanswered = |error| self.route.unanswered(classify::transport(&error));
        let response = self.route.client().execute(request).await.map_err(unanswered)?;
        if response.status().is_success() {
            let body = read_output(response, context).await?;
            return output::from_bytes(&body.map_err(unanswered)?);
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let body = context.secrets.redact_bytes(&read_up_to(response, MAX_ERROR_BODY).await);
        let failed = classify::FailedResponse { status, headers: &headers, body: &body };
        Err(self.route.answered(classify::response(&failed, self.error_text_to_model, SystemTime::now())))
    }

    fn request(&self, context: &Context, arguments: &RawValue) -> Result<Request, Failure> {
        let values = Values::new(context, arguments)?;
        let refuse = |refused| values.failure(refused);
        let url = self.url.fill(&values).map_err(refuse)?;
        let url = url.parse().map_err(|_| classify::invalid_request())?;
        let mut request = Request::new(self.method.clone(), url);
        *request.headers_mut() = self.headers(context, &values).map_err(refuse)?;
        let body = match &self.body {
            Body::None => None,
            Body::Declared(declared) => Some(declared.of(arguments)),
            Body::AllArguments => Some(arguments.get().to_owned()),
            Body::Json(template) => Some(template.fill(&values).map_err(refuse)?),
        };
        if let Some(body) = body {
            request.headers_mut().entry(CONTENT_TYPE).or_insert(JSON);
            *request.body_mut() = Some(body.into());
        }
        Ok(request)
    }

    /// Returns the headers of the manifest, then Redial's own where the manifest has none.
    fn headers(&self, context: &Context, values: &Values<'_>) -> Result<HeaderMap, RefusedValue> {
        let mut headers = HeaderMap::new();
        for (name, template) in &self.headers {
            let text = template.fill_required(values)?;
            let mut value = HeaderValue::from_str(&text)
                .or_else(|_| HeaderValue::from_bytes(text.as_bytes()))
                .map_err(|_| template.refuse("header", "text without line breaks and control characters"))?;
            value.set_sensitive(template.secrets().next().is_some());
            headers.insert(name.clone(), value);
        }
        headers.entry(ACCEPT).or_insert(ACCEPTED);
        let key = (self.effect == ToolEffect::Keyed).then(|| header_key(&context.idempotency_key));
        for (name, value) in [(IDEMPOTENCY_KEY, key), (TRACEPARENT, context.traceparent.clone())] {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
                headers.entry(name).or_insert(value);
            }
        }
        Ok(headers)
    }
}

/// Writes an idempotency key as a header value: one that is not plain visible ASCII is percent-encoded, always in the
/// same way.
fn header_key(key: &str) -> String {
    let plain = key.bytes().all(|byte| byte.is_ascii_graphic());
    if plain { key.to_owned() } else { utf8_percent_encode(key, NON_ALPHANUMERIC).to_string() }
}

/// Reads the body; the inner error says why it is not complete, the outer one is for a body that is too large.
async fn read_output(mut response: Response, context: &Context) -> Result<reqwest::Result<Vec<u8>>, Failure> {
    let mut body = Vec::new();
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Ok(Ok(body)),
            Err(error) => return Ok(Err(error)),
        };
        body.extend_from_slice(&chunk);
        context.memory.grown_to(body.len()).await;
        if body.len() > MAX_PAYLOAD {
            return Err(output::too_large(&context.secrets.redact(&String::from_utf8_lossy(&body))));
        }
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
