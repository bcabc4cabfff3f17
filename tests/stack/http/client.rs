//! A plain HTTP client.

use std::sync::Arc;

use redial_proto::UserRole;
use redial_queue::Queue;
use redial_test_stack::{Stack, TestGateway, token, until};
use reqwest::{Method, RequestBuilder, Response, header::HeaderMap};
use serde_json::Value;

/// Sends requests to one gateway.
#[derive(Clone)]
pub(crate) struct Http {
    client: reqwest::Client,
    pub(crate) url: String,
    token: Option<String>,
    /// It stops with its last client.
    _gateway: Option<Arc<TestGateway>>,
}

/// An answer that was read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Http {
    /// A client of a new gateway that needs no token.
    pub(crate) async fn open(stack: &Stack) -> Self {
        Self::owning(stack.serve_http().await)
    }

    /// A client without a token of a new gateway that wants tokens.
    pub(crate) async fn wanting_tokens(stack: &Stack) -> Self {
        Self::owning(stack.serve_http_with(|_| {}).await)
    }

    pub(crate) fn owning(gateway: TestGateway) -> Self {
        let http = Self::of(&gateway);
        Self { _gateway: Some(Arc::new(gateway)), ..http }
    }

    /// A client without a token.
    pub(crate) fn of(gateway: &TestGateway) -> Self {
        Self::at(&gateway.url)
    }

    pub(crate) fn at(url: &str) -> Self {
        // A gateway closes connections that are idle, perhaps while a request is on its way. Browsers follow redirects.
        let client = redial_http::direct().pool_max_idle_per_host(0).redirect(reqwest::redirect::Policy::limited(3));
        let client = client.build().unwrap();
        Self { client, url: url.to_owned(), token: None, _gateway: None }
    }

    /// The same with a token.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// The same with a new token of a user.
    pub(crate) async fn of_user(&self, user: &Queue, roles: &[UserRole]) -> Self {
        self.with_token(&token(user, roles).await.text())
    }

    /// The token that it shows.
    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().unwrap()
    }

    /// A request to be completed.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request without a body.
    pub(crate) async fn send(&self, method: Method, path: &str) -> Answer {
        Answer::of(self.request(method, path)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path).await
    }

    /// Reads what may end while the request waits.
    pub(crate) async fn wait(&self, path: &str, seconds: u32) -> Answer {
        Answer::of(self.request(Method::GET, path).header("prefer", format!("wait={seconds}"))).await
    }

    /// Reads again until it is as wanted.
    pub(crate) async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        until(&format!("{path} is as wanted"), async || Some(self.get(path).await.must(200)).filter(&wanted)).await
    }

    /// Posts what ends while the request waits; what it is then.
    pub(crate) async fn ended(&self, path: &str, body: &Value) -> Value {
        self.post_with(path, body, &[("prefer", "wait=60")]).await.must(200)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, body, &[]).await
    }

    pub(crate) async fn post_with(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let mut request = self.request(Method::POST, path).json(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request).await
    }
}

impl Answer {
    /// Sends a request.
    pub(crate) async fn of(request: RequestBuilder) -> Self {
        Self::read(request.send().await.unwrap()).await
    }

    pub(crate) async fn read(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or_default();
        Self { status, headers, body, text }
    }

    /// The body of an answer that must have this status.
    #[track_caller]
    pub(crate) fn must(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.body
    }

    /// The detail of a problem document with this status and code.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> String {
        assert_eq!((self.status, &self.body["code"]), (status, &Value::from(code)), "{}", self.text);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.body["type"], format!("/errors/{code}"));
        assert_eq!(self.body["status"], self.status);
        assert_eq!(self.body["request_id"], self.headers["x-request-id"].to_str().unwrap());
        assert!(self.body["instance"].as_str().unwrap().starts_with('/'), "{}", self.text);
        self.body["detail"].as_str().unwrap().to_owned()
    }
}
