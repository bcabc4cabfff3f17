//! The service behind the demo's HTTP tools: it fails on purpose, and records its requests.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use anyhow::Context;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// The largest head and body of a request.
const MAX_BYTES: u16 = 16 * 1024;

/// A request that arrived, and how the service answered.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) key: Option<String>,
    pub(crate) at: Instant,
    pub(crate) status: u16,
}

/// The running server. Dropping it stops the server.
#[derive(Debug)]
pub(crate) struct HttpService {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    serving: JoinHandle<()>,
}

impl HttpService {
    /// Starts it on a free port.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no free port for the HTTP server")?;
        let address = listener.local_addr()?;
        let requests = Arc::new(Mutex::new(Vec::new()));
        let serving = tokio::spawn(serve(listener, Arc::clone(&requests)));
        Ok(Self { address, requests, serving })
    }

    /// The address on which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests to a path, in order.
    pub(crate) fn requests(&self, path: &str) -> Vec<Request> {
        lock(&self.requests).iter().filter(|request| request.path == path).cloned().collect()
    }
}

impl Drop for HttpService {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn lock(requests: &Mutex<Vec<Request>>) -> MutexGuard<'_, Vec<Request>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, requests: Arc<Mutex<Vec<Request>>>) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            let requests = Arc::clone(&requests);
            // An error means that the client closed the connection.
            tokio::spawn(async move { handle(stream, &requests).await });
        }
    }
}

/// Handles one request, and closes the connection.
async fn handle(stream: TcpStream, requests: &Mutex<Vec<Request>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.take(MAX_BYTES.into()));
    let (mut path, mut key, mut length) = (String::new(), None, 0);
    let mut line = String::new();
    while reader.read_line(&mut line).await? > 0 && !line.trim().is_empty() {
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        } else if let Some((name, value)) = line.split_once(':') {
            match name.to_ascii_lowercase().as_str() {
                "idempotency-key" => key = Some(value.trim().to_owned()),
                "content-length" => length = value.trim().parse().unwrap_or(0),
                _ => {}
            }
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length.min(MAX_BYTES.into())]).await?;
    let reply = {
        let mut requests = lock(requests);
        let earlier = requests.iter().filter(|request| request.path == path).count();
        let reply = reply(&path, earlier);
        requests.push(Request { path, key, at: Instant::now(), status: reply.status });
        reply
    };
    reader.into_inner().into_inner().write_all(reply.to_http().as_bytes()).await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reply {
    status: u16,
    retry_after: Option<u32>,
    body: &'static str,
}

/// The reply for a path, by the number of earlier requests to it.
fn reply(path: &str, earlier: usize) -> Reply {
    let busy =
        |seconds| Reply { status: 503, retry_after: Some(seconds), body: r#"{"error": "busy, come back later"}"# };
    let done = |body| Reply { status: 200, retry_after: None, body };
    match (path, earlier) {
        ("/hotels", 0 | 1) => busy(1),
        ("/hotels", _) => done(r#"{"reservation": "H-4711"}"#),
        ("/taxis", 0) => busy(6),
        ("/taxis", _) => done(r#"{"taxi": "沪A-12345"}"#),
        ("/rooms", _) => Reply { status: 409, retry_after: None, body: r#"{"error": "no room is free that night"}"# },
        ("/trains", 0 | 1) => Reply { status: 503, retry_after: None, body: r#"{"error": "the timetable is busy"}"# },
        // An outage of some seconds, a longer one, and a single failure now and then.
        ("/flights", 0..16) | ("/rates", 0..40) => {
            Reply { status: 503, retry_after: None, body: r#"{"error": "down for maintenance"}"# }
        }
        ("/flights", _) => {
            done(r#"{"flights": [{"number": "RD 417", "departs": "08:40"}, {"number": "RD 91", "departs": "17:05"}]}"#)
        }
        ("/rates", _) => done(r#"{"rate": 8.2391, "at": "close of the last day"}"#),
        ("/tables", n) if n % 7 == 3 => {
            Reply { status: 503, retry_after: None, body: r#"{"error": "the book is locked"}"# }
        }
        ("/tables", _) => done(r#"{"table": "T-207", "confirmed": true}"#),
        ("/trains", _) => done(r#"{"trains": ["08:15", "13:40"]}"#),
        _ => Reply { status: 404, retry_after: None, body: r#"{"error": "no such service"}"# },
    }
}

impl Reply {
    fn to_http(self) -> String {
        let retry_after = self.retry_after.map(|seconds| format!("Retry-After: {seconds}\r\n")).unwrap_or_default();
        format!(
            "HTTP/1.1 {} -\r\nContent-Type: application/json\r\n{retry_after}Content-Length: {}\r\n\
             Connection: close\r\n\r\n{}",
            self.status,
            self.body.len(),
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_depend_on_path_and_number_of_requests() {
        let statuses = |path| (0..4).map(|earlier| reply(path, earlier).status).collect::<Vec<_>>();
        assert_eq!(statuses("/hotels"), [503, 503, 200, 200]);
        assert_eq!(statuses("/taxis"), [503, 200, 200, 200]);
        assert_eq!(statuses("/rooms"), [409; 4]);
        assert_eq!(statuses("/trains"), [503, 503, 200, 200]);
        assert_eq!(statuses("/"), [404; 4]);
        let http = reply("/taxis", 0).to_http();
        assert!(http.starts_with("HTTP/1.1 503 ") && http.contains("\r\nRetry-After: 6\r\n"), "{http}");
    }

    #[tokio::test]
    async fn requests_are_recorded_with_their_key() {
        let service = HttpService::start().await.unwrap();
        let mut stream = TcpStream::connect(service.address()).await.unwrap();
        let text = "POST /hotels HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k1\r\nContent-Length: 2\r\n\r\n{}";
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 503") && answer.ends_with('}'), "{answer}");
        let [request] = service.requests("/hotels").try_into().unwrap();
        assert_eq!((request.key.as_deref(), request.status), (Some("k1"), 503));
        assert!(service.requests("/taxis").is_empty());
    }
}
