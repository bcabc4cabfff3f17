//! The API, as a page asks it: in this process, with the credentials of the page's own request.

use std::net::IpAddr;

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, Method, Request, StatusCode, Uri, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use tower::ServiceExt as _;

use crate::{console::Console, failure::Failure};

/// Bytes of an answer that a page reads at most.
const LARGEST: usize = 16 * 1024 * 1024;
/// What a request of a page says about who sent it, and how: a session that came by HTTPS is kept for HTTPS.
const CREDENTIALS: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::ORIGIN,
    HeaderName::from_static("sec-fetch-site"),
    HeaderName::from_static("x-forwarded-proto"),
];

/// The API for one visit of a page. It remembers what was asked, because each page tells what it is made of.
pub(crate) struct Api {
    console: Console,
    headers: HeaderMap,
    peer: Option<IpAddr>,
    asked: Mutex<Vec<String>>,
}

impl FromRequestParts<Console> for Api {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Self::Rejection> {
        let mut headers = HeaderMap::new();
        for name in CREDENTIALS {
            if let Some(value) = parts.headers.get(&name) {
                headers.insert(name, value.clone());
            }
        }
        if let Some(host) = host(&parts.headers, &parts.uri).and_then(|host| host.parse().ok()) {
            headers.insert(header::HOST, host);
        }
        let peer = parts.extensions.get::<IpAddr>().copied();
        Ok(Self { console: console.clone(), headers, peer, asked: Mutex::default() })
    }
}

fn host(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let named = headers.get(header::HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    uri.authority().map(ToString::to_string).or(named)
}

impl Api {
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.asked.lock().push(path.to_owned());
        read(path, &self.bytes(Method::GET, path, None).await?)
    }

    /// Gets what the page is not made of: it is asked again and again.
    pub(crate) async fn peek<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        read(path, &self.bytes(Method::GET, path, None).await?)
    }

    /// Gets the same; `None` if there is no such thing.
    pub(crate) async fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Failure> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(failure) if failure.status() == StatusCode::NOT_FOUND => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        let body = serde_json::to_vec(body).map_err(|error| Failure::unreadable(path, &error))?;
        read(path, &self.bytes(Method::POST, path, Some(body)).await?)
    }

    pub(crate) async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        read(path, &self.bytes(Method::DELETE, path, None).await?)
    }

    /// Returns the API with a token that the visitor typed in, where a session does not suffice; without one as it is.
    pub(crate) fn with_token(&self, token: Option<&str>) -> Self {
        let mut headers = self.headers.clone();
        if let Some(value) = token.and_then(|token| format!("Bearer {}", token.trim()).parse().ok()) {
            headers.insert(header::AUTHORIZATION, value);
        }
        Self { console: self.console.clone(), headers, peer: self.peer, asked: Mutex::default() }
    }

    /// Returns the answer as it comes, for what is no JSON.
    pub(crate) async fn send(&self, method: Method, path: &str, more: &[(HeaderName, String)]) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.clone());
            for (name, value) in more {
                if let Ok(value) = value.parse() {
                    headers.insert(name, value);
                }
            }
        }
        match request.body(Body::empty()) {
            Ok(request) => self.ask(request).await,
            Err(_) => StatusCode::BAD_REQUEST.into_response(),
        }
    }

    /// Returns what this page is made of: the addresses of its requests.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }

    async fn bytes(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> Result<Bytes, Failure> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.clone());
            if body.is_some() {
                headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
            }
        }
        let body = body.map_or_else(Body::empty, Body::from);
        let request = request.body(body).map_err(|error| Failure::unreadable(path, &error))?;
        let response = self.ask(request).await;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), LARGEST).await.map_err(|error| Failure::unreadable(path, &error))?;
        if status.is_success() { Ok(bytes) } else { Err(Failure::read(status, &bytes)) }
    }

    async fn ask(&self, mut request: Request<Body>) -> Response {
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        let Ok(response) = self.console.api.as_ref().clone().oneshot(request).await;
        response
    }
}

fn read<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<T, Failure> {
    // An answer without a body is `null`.
    let bytes = if bytes.is_empty() { b"null" } else { bytes };
    serde_json::from_slice(bytes).map_err(|error| Failure::unreadable(path, &error))
}
