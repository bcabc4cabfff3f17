//! What a gateway has only so much of is shared by tenants: one that takes all that it can keeps no other waiting.

use std::net::SocketAddr;

use redial_proto::UserRole;
use redial_test_stack::{Stack, until};
use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};

use super::client::{Answer, Http};

/// Bodies and answers over 1 MiB of a tenant at a time.
const LARGE: usize = 4;
/// Whoever is not kept waiting is answered at once; on a busy machine that may take a while.
const AT_ONCE: std::time::Duration = std::time::Duration::from_mins(1);

/// A client of a gateway for each of these tokens of a tenant.
async fn clients(stack: &Stack, http: &Http, tenant: &str, tokens: usize) -> Vec<Http> {
    let user = stack.user(tenant, "alice").await;
    let mut clients = Vec::new();
    for _ in 0..tokens {
        clients.push(http.of_user(&user, &[UserRole::Submit, UserRole::Read]).await);
    }
    clients
}

/// Sends the head of a request, and reads no more of the answer than its beginning.
async fn begin(http: &Http, method: &str, path: &str, headers: &str) -> TcpStream {
    let address: SocketAddr = http.url.strip_prefix("http://").unwrap().parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    // The kernel takes little for a client that does not read.
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n{headers}\r\n",
        http.token()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// Connections of which the gateway has begun to answer so many, while the others wait.
struct Stuck {
    _tasks: JoinSet<()>,
    begun: mpsc::UnboundedReceiver<String>,
}

impl Stuck {
    /// Nine requests of three tokens; each of them sends so many blanks once it gets an answer, and does nothing any more.
    async fn of(tokens: &[Http], (method, path, headers): (&str, &str, &str), blanks: usize) -> Self {
        let (begins, begun) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for http in tokens.iter().cycle().take(9) {
            let (mut stream, begins) = (begin(http, method, path, headers).await, begins.clone());
            tasks.spawn(async move {
                let mut status = [0; 12];
                stream.read_exact(&mut status).await.unwrap();
                begins.send(String::from_utf8_lossy(&status).into_owned()).unwrap();
                stream.write_all(&vec![b' '; blanks]).await.unwrap();
                std::future::pending::<()>().await;
            });
        }
        let mut stuck = Self { _tasks: tasks, begun };
        for _ in 0..LARGE {
            let status = timeout(AT_ONCE, stuck.begun.recv()).await.unwrap().unwrap();
            assert!(status.ends_with("100") || status.ends_with("200"), "{status}");
        }
        stuck
    }

    /// None of them was answered since.
    #[track_caller]
    fn still(&mut self) {
        assert!(self.begun.try_recv().is_err(), "a tenant has {LARGE} at a time");
    }
}

#[tokio::test]
async fn whoever_trickles_large_bodies_and_answers_keeps_no_other_tenant_waiting() {
    let stack = Stack::with_echo().await;
    let http = Http::wanting_tokens(&stack).await;
    let acme = clients(&stack, &http, "acme", 3).await;
    let globex = &clients(&stack, &http, "globex", 1).await[0];
    let text = |bytes: usize| json!({"tool": "echo", "arguments": {"text": "x".repeat(bytes)}});
    let call = acme[0].ended("/v1/calls", &text(3 << 20)).await["call"].clone();
    let answers = ("GET", &*format!("/v1/calls/{}", call.as_str().unwrap()), "");
    let upload = format!("Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n", 8 << 20);
    // The gateway asks for the body once it has room for it; then less than 64 KiB a second comes.
    let uploads = ("POST", "/v1/calls", &*upload);
    for (requests, blanks) in [(answers, 0), (uploads, 1_200_000)] {
        let mut trickles = Stuck::of(&acme, requests, blanks).await;
        let answer = timeout(AT_ONCE, globex.post("/v1/calls", &text(1_500_000))).await;
        answer.expect("another tenant has its share").must(202);
        trickles.still();
        // Nor does a small body wait that does not say how long it is.
        let body =
            reqwest::Body::wrap_stream(futures_util::stream::iter([Ok::<_, std::io::Error>(text(10).to_string())]));
        let small = acme[0].request(Method::POST, "/v1/calls").header("content-type", "application/json").body(body);
        timeout(AT_ONCE, Answer::of(small)).await.expect("it needs no share").must(202);
    }
    stack.drained(AT_ONCE).await;
    stack.finish().await;
}

#[tokio::test]
async fn the_long_reads_of_a_tenant_keep_no_other_waiting_and_no_plain_list() {
    let stack = Stack::with_echo().await;
    let http = Http::wanting_tokens(&stack).await;
    let acme = clients(&stack, &http, "acme", 5).await;
    let globex = &clients(&stack, &http, "globex", 1).await[0];
    // Statistics wait for this until it is dropped.
    let mut lock = stack.db().begin().await.unwrap();
    sqlx::query("LOCK TABLE stats IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let mut reads = JoinSet::new();
    for http in acme.iter().cycle().take(100) {
        let http = http.clone();
        reads.spawn(async move { http.get("/v1/statistics/models").await.status });
    }
    until("as many wait for the lock as may read", async || {
        let waiting = "SELECT count(*) >= 2 FROM pg_stat_activity
                       WHERE datname = current_database() AND query LIKE '-- Sums of a kind%' AND wait_event_type = 'Lock'";
        stack.value::<bool>(waiting).await.then_some(())
    })
    .await;
    for (who, path) in [
        (globex, "/v1/calls"),
        (globex, "/v1/tasks"),
        (globex, "/v1/calls?tool=echo&contains=x"),
        (&acme[0], "/v1/calls"),
    ] {
        let answer = timeout(AT_ONCE, who.get(path)).await;
        answer.unwrap_or_else(|_| panic!("{path} waits for the reads of a tenant")).must(200);
    }
    drop(lock);
    reads.shutdown().await;
    stack.finish().await;
}
