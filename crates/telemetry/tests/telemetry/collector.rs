//! A small OTLP/HTTP collector: keeps posts and gives configured answers.

use std::{net::SocketAddr, sync::Arc, sync::Mutex};

use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{AnyValue, KeyValue, any_value::Value},
    metrics::v1::Metric,
    resource::v1::Resource,
    trace::v1::Span,
};
use prost::Message;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

/// The collector's answer.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    Ok,
    ServerError,
    /// None, ever.
    Silence,
}

/// One post.
pub(crate) struct Post {
    pub(crate) path: String,
    pub(crate) head: String,
    body: Vec<u8>,
}

pub(crate) struct Collector {
    address: SocketAddr,
    posts: Arc<Mutex<Vec<Post>>>,
}

impl Collector {
    /// Listens until the runtime ends.
    pub(crate) async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let posts = Arc::new(Mutex::new(Vec::new()));
        let kept = posts.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, kept.clone(), answer));
            }
        });
        Self { address, posts }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every post so far. A sender that shut down has waited for the answers, so none is in flight then.
    pub(crate) fn posts(&self) -> Vec<Post> {
        std::mem::take(&mut self.posts.lock().unwrap())
    }
}

async fn serve(stream: TcpStream, kept: Arc<Mutex<Vec<Post>>>, answer: Answer) {
    let mut stream = BufReader::new(stream);
    while let Some(post) = read(&mut stream).await {
        kept.lock().unwrap().push(post);
        let status = match answer {
            Answer::Ok => "200 OK",
            Answer::ServerError => "500 Internal Server Error",
            Answer::Silence => return std::future::pending().await,
        };
        let reply = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        if stream.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Post> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.expect("the exporter sends a content length")];
    stream.read_exact(&mut body).await.ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    Some(Post { path, head, body })
}

impl Post {
    /// The spans of a post to `/v1/traces`, each with the resource that sent it.
    pub(crate) fn spans(&self) -> Vec<(Resource, Span)> {
        let sent = ExportTraceServiceRequest::decode(self.body.as_slice()).unwrap();
        let with_resource = |sent: opentelemetry_proto::tonic::trace::v1::ResourceSpans| {
            let resource = sent.resource.unwrap();
            sent.scope_spans.into_iter().flat_map(|scope| scope.spans).map(move |span| (resource.clone(), span))
        };
        sent.resource_spans.into_iter().flat_map(with_resource).collect()
    }

    /// The metrics of a post to `/v1/metrics`.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let sent = ExportMetricsServiceRequest::decode(self.body.as_slice()).unwrap();
        let scopes = sent.resource_metrics.into_iter().flat_map(|sent| sent.scope_metrics);
        scopes.flat_map(|scope| scope.metrics).collect()
    }
}

/// An attribute as text.
pub(crate) fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::ArrayValue(list) => Some(format!("{:?}", list.values.iter().map(plain).collect::<Vec<_>>())),
        other => panic!("{key} is {other:?}"),
    }
}

fn plain(value: &AnyValue) -> &str {
    match &value.value {
        Some(Value::StringValue(text)) => text,
        other => panic!("a list of {other:?}"),
    }
}
