//! An HTTP server that answers by a script and keeps the requests.

use std::{
    collections::{HashMap, VecDeque},
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    body::{Body, to_bytes},
    response::Response,
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle, time::timeout};

/// How long requests that a test waits for may take.
const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    delay: Duration,
    hang_up: bool,
}

impl Reply {
    /// Makes an empty answer with this status.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), delay: Duration::ZERO, hang_up: false }
    }

    /// Makes an answer 200 with a JSON text.
    pub fn json(body: &str) -> Self {
        Self::status(200).header("content-type", "application/json").body(body)
    }

    /// Makes no answer: the connection is closed once the request has arrived.
    pub fn hang_up() -> Self {
        Self { hang_up: true, ..Self::status(200) }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Waits this long before answering.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// Without the query.
    pub path: String,
    /// The query after `?`, undecoded; empty if there is none.
    pub query: String,
    /// In order; names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// When its last byte arrived.
    pub at: Instant,
}

impl Request {
    /// Returns the first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        self.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

type Scripts = Arc<Mutex<HashMap<String, VecDeque<Reply>>>>;

/// A scripted server; dropping it stops it.
#[derive(Debug)]
pub struct ScriptedHttp {
    address: SocketAddr,
    scripts: Scripts,
    requests: watch::Receiver<Vec<Request>>,
    accepting: JoinHandle<()>,
}

impl ScriptedHttp {
    /// Listens on a free port. Until it has a script, every path is answered 404.
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let scripts = Scripts::default();
        let (sender, requests) = watch::channel(Vec::new());
        let accepting = tokio::spawn(accept(listener, Arc::clone(&scripts), sender));
        Self { address, scripts, requests, accepting }
    }

    /// Returns `http://127.0.0.1:<port><path>`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the answers to requests for a path, in order; the last one is repeated.
    pub fn script(&self, path: &str, replies: impl IntoIterator<Item = Reply>) {
        self.scripts.lock().unwrap().insert(path.to_owned(), replies.into_iter().collect());
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.borrow().clone()
    }

    /// Waits until so many requests have arrived (they may still be unanswered), and returns the last of these.
    pub async fn arrived(&self, count: usize) -> Request {
        let mut requests = self.requests.clone();
        let arrived = timeout(PATIENCE, requests.wait_for(|requests| requests.len() >= count)).await;
        let Ok(arrived) = arrived else {
            panic!("{} requests have arrived after {PATIENCE:?}, not {count}", self.requests.borrow().len())
        };
        arrived.unwrap()[count - 1].clone()
    }
}

impl Drop for ScriptedHttp {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, scripts: Scripts, sender: watch::Sender<Vec<Request>>) {
    // Dropped together with this task: then no connection outlives the server.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (scripts, sender) = (Arc::clone(&scripts), sender.clone());
        let service = service_fn(move |request| answer(request, Arc::clone(&scripts), sender.clone()));
        connections.spawn(http1::Builder::new().half_close(true).serve_connection(TokioIo::new(stream), service));
    }
}

/// Returns the scripted answer; an error closes the connection.
async fn answer(
    request: hyper::Request<Incoming>,
    scripts: Scripts,
    sender: watch::Sender<Vec<Request>>,
) -> io::Result<Response> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(Body::new(body), usize::MAX).await.map_err(io::Error::other)?;
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let reply = next_reply(&scripts, parts.uri.path());
    let request = Request {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect(),
        body: body.to_vec(),
        at: Instant::now(),
    };
    sender.send_modify(|requests| requests.push(request));
    tokio::time::sleep(reply.delay).await;
    if reply.hang_up {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    let response = Response::builder().status(reply.status);
    let response = reply.headers.iter().fold(response, |response, (name, value)| response.header(name, value));
    response.body(Body::from(reply.body)).map_err(io::Error::other)
}

fn next_reply(scripts: &Scripts, path: &str) -> Reply {
    let mut scripts = scripts.lock().unwrap();
    match scripts.get_mut(path) {
        Some(replies) if replies.len() > 1 => replies.pop_front().unwrap(),
        Some(replies) if replies.len() == 1 => replies[0].clone(),
        _ => Reply::status(404).body(format!("no script for {path}")),
    }
}
