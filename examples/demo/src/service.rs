//! The service behind the demo's HTTP tools: it fails on purpose, and records its requests.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Instant,
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use tokio::net::TcpListener;

/// A request that arrived, and how the service answered.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    path: String,
    pub(crate) key: Option<String>,
    pub(crate) at: Instant,
    pub(crate) status: u16,
}

type Requests = Arc<Mutex<Vec<Request>>>;

/// The running server; it ends with this process.
#[derive(Debug)]
pub(crate) struct HttpService {
    address: SocketAddr,
    requests: Requests,
}

impl HttpService {
    /// Starts it on a free port.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, requests) = (listener.local_addr()?, Requests::default());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&requests));
        tokio::spawn(axum::serve(listener, router).into_future());
        Ok(Self { address, requests })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the requests to a path, in order.
    pub(crate) fn requests(&self, path: &str) -> Vec<Request> {
        self.requests.lock().iter().filter(|request| request.path == path).cloned().collect()
    }
}

async fn answer(State(requests): State<Requests>, uri: Uri, headers: HeaderMap) -> Response {
    let (path, key) = (uri.path().to_owned(), headers.get("idempotency-key").and_then(|key| key.to_str().ok()));
    let mut requests = requests.lock();
    let earlier = requests.iter().filter(|request| request.path == path).count();
    let (status, retry_after, body) = reply(&path, earlier);
    requests.push(Request { path, key: key.map(str::to_owned), at: Instant::now(), status });
    let status = StatusCode::from_u16(status).unwrap_or_default();
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Returns status, `Retry-After` and body for a path, by the number of earlier requests to it.
fn reply(path: &str, earlier: usize) -> (u16, Option<u16>, &'static str) {
    let busy = |seconds| (503, Some(seconds), r#"{"error": "busy, come back later"}"#);
    let done = |body| (200, None, body);
    match (path, earlier) {
        ("/hotels", 0 | 1) => busy(1),
        ("/hotels", _) => done(r#"{"reservation": "H-4711"}"#),
        ("/taxis", 0) => busy(6),
        ("/taxis", _) => done(r#"{"taxi": "沪A-12345"}"#),
        ("/rooms", _) => (409, None, r#"{"error": "no room is free that night"}"#),
        ("/trains", 0 | 1) => (503, None, r#"{"error": "the timetable is busy"}"#),
        ("/trains", _) => done(r#"{"trains": ["08:15", "13:40"]}"#),
        _ => (404, None, r#"{"error": "no such service"}"#),
    }
}
