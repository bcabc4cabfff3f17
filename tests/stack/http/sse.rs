//! A reader of server-sent events, and gateways as processes of their own.

use redial_test_stack::{Process, Stack};
use reqwest::{Method, Response, StatusCode, header::HeaderMap};
use serde_json::Value;

use super::client::Http;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

/// A stream that is open.
pub(crate) struct Sse {
    response: Response,
    buffer: Vec<u8>,
    pub(crate) headers: HeaderMap,
    /// The last comment.
    pub(crate) comment: String,
}

impl Sse {
    /// Opens the stream of a path, after this id.
    pub(crate) async fn open(url: &str, path: &str, after: Option<&str>) -> Self {
        Self::of(Self::ask(url, path, after.map(|after| ("last-event-id", after))).await)
    }

    /// Opens the stream of a path with a token.
    pub(crate) async fn open_with(url: &str, path: &str, token: &str) -> Self {
        Self::of(Self::ask(url, path, Some(("authorization", &format!("Bearer {token}")))).await)
    }

    fn of(response: Response) -> Self {
        assert_eq!(response.status(), StatusCode::OK, "{}", response.url());
        Self { headers: response.headers().clone(), response, buffer: Vec::new(), comment: String::new() }
    }

    /// Sends the request; the answer may be no stream.
    pub(crate) async fn ask(url: &str, path: &str, header: Option<(&str, &str)>) -> Response {
        let request = Http::at(url).request(Method::GET, path);
        header.into_iter().fold(request, |request, (name, value)| request.header(name, value)).send().await.unwrap()
    }

    /// The next event; `None` if the stream ended or broke.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.buffer.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let block = str::from_utf8(&block).unwrap();
                if let Some(event) = event(block) {
                    return Some(event);
                }
                block.clone_into(&mut self.comment);
            }
            self.buffer.extend_from_slice(&self.response.chunk().await.ok()??);
        }
    }

    /// The next event of this name; others are dropped.
    pub(crate) async fn next_of(&mut self, name: &str) -> Event {
        let found = tokio::time::timeout(std::time::Duration::from_mins(1), async {
            loop {
                let event = self.next().await.expect("the stream goes on");
                if event.name == name {
                    return event;
                }
            }
        });
        found.await.unwrap_or_else(|_| panic!("no event {name}"))
    }

    /// All events to the end of the stream.
    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

fn event(block: &str) -> Option<Event> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let data = serde_json::from_str(field("data")?).unwrap();
    Some(Event { id: field("id").map(str::to_owned), name: field("event")?.to_owned(), data })
}

/// Starts a gateway as a process of its own; returns its address.
pub(crate) async fn gateway_process(stack: &Stack) -> (Process, String) {
    gateway_process_with(stack, &[]).await
}

/// The same with more arguments.
pub(crate) async fn gateway_process_with(stack: &Stack, more: &[&str]) -> (Process, String) {
    let arguments = [&["--listen", "127.0.0.1:0", "--without-token", "--log-format", "json"], more].concat();
    let process = stack.process(env!("CARGO_BIN_EXE_redial"), "gateway", &arguments);
    let line = process.line("Gateway started").await;
    let port = line.split_once("127.0.0.1:").unwrap().1;
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    let url = format!("http://127.0.0.1:{port}");
    (process, url)
}
