//! The kit itself, on real servers and processes.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use redial_testkit::{FaultProxy, Observer, Process, Reply, ScriptedHttp, Servers, Side, until};
use sqlx::{Connection as _, PgConnection};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

const LONG: Duration = Duration::from_secs(30);

fn address(url: &str) -> SocketAddr {
    let rest = url.rsplit('@').next().unwrap();
    rest.split('/').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn tests_share_postgres_and_nothing_else() {
    let (one, two) = (Servers::start().await, Servers::start().await);
    assert_eq!(one.postgres_url(), two.postgres_url());
    assert_ne!(one.database_url(), two.database_url());
    assert!(one.database_url().ends_with(&format!("/{}", one.database())));
    assert_ne!(one.nats_url(), two.nats_url());
    TcpStream::connect(address(one.postgres_url())).await.unwrap();
    let nats = address(two.nats_url());
    TcpStream::connect(nats).await.unwrap();
    let pid = two.nats_pid();
    drop(two);
    while Path::new(&format!("/proc/{pid}")).exists() {
        tokio::task::yield_now().await;
    }
    TcpStream::connect(nats).await.unwrap_err();
}

/// The tables of a database.
async fn tables(url: &str) -> i64 {
    let mut db = PgConnection::connect(url).await.unwrap();
    let tables = sqlx::query_scalar("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'");
    tables.fetch_one(&mut db).await.unwrap()
}

#[tokio::test]
async fn every_test_has_a_database_with_all_tables_until_it_ends() {
    let (one, two) = (Servers::start().await, Servers::start().await);
    tokio::join!(one.create_database(), two.create_database());
    let own = Servers::start_own().await;
    own.create_database().await;
    let expected = tables(own.database_url()).await;
    assert!(expected > 10, "{expected}");
    assert_eq!([tables(one.database_url()).await, tables(two.database_url()).await], [expected; 2]);
    let (server, ended) = (one.postgres_url().to_owned(), one.database().to_owned());
    drop(one);
    let mut db = PgConnection::connect(&server).await.unwrap();
    until("the database of the test that ended is gone", async || {
        let exists = sqlx::query_scalar::<_, bool>("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)");
        (!exists.bind(&ended).fetch_one(&mut db).await.unwrap()).then_some(())
    })
    .await;
    assert_eq!(tables(two.database_url()).await, expected);
}

#[tokio::test]
async fn own_servers_crash_and_come_back() {
    let mut servers = Servers::start_own().await;
    let (postgres, nats) = (address(servers.postgres_url()), address(servers.nats_url()));
    let before = (servers.postgres_pid(), servers.nats_pid());
    servers.kill_postgres().await;
    servers.kill_nats().await;
    TcpStream::connect(postgres).await.unwrap_err();
    TcpStream::connect(nats).await.unwrap_err();
    assert!(servers.nats_store().exists());
    servers.wipe_nats();
    servers.start_postgres().await;
    servers.start_nats().await;
    TcpStream::connect(postgres).await.unwrap();
    TcpStream::connect(nats).await.unwrap();
    assert!(servers.postgres_pid() != before.0 && servers.nats_pid() != before.1);
    servers.stop_postgres().await;
    servers.stop_nats().await;
}

/// A server that sends everything back.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    address
}

async fn round_trip(stream: &mut TcpStream, text: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(text).await?;
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back).await?;
    Ok(back)
}

#[tokio::test]
async fn half_of_a_torn_message_arrives() {
    let proxy = FaultProxy::start(echo().await).await;
    let mut open = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(round_trip(&mut open, b"whole").await.unwrap(), b"whole");
    proxy.truncate();
    open.write_all(b"12345678").await.unwrap();
    let mut rest = Vec::new();
    let _reset_or_ended = open.read_to_end(&mut rest).await;
    assert!(b"1234".starts_with(&rest), "{rest:?}");
    let mut fresh = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(round_trip(&mut fresh, b"whole").await.unwrap(), b"whole");
}

#[tokio::test]
async fn a_deafened_side_reads_later_and_a_lost_side_is_not_noticed() {
    let proxy = FaultProxy::start(echo().await).await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    for side in [Side::Client, Side::Server] {
        proxy.deafen(side, true);
        stream.write_all(b"late").await.unwrap();
        let mut byte = [0];
        assert!(timeout(Duration::from_millis(100), stream.read(&mut byte)).await.is_err(), "{side:?} heard something");
        proxy.deafen(side, false);
        let mut text = [0; 4];
        stream.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"late");
    }
    proxy.lose(Side::Server);
    // Without a notice the client takes the silence for a slow server.
    stream.write_all(b"anybody?").await.unwrap();
    let mut byte = [0];
    assert!(timeout(Duration::from_millis(100), stream.read(&mut byte)).await.is_err());
    let mut fresh = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(round_trip(&mut fresh, b"here").await.unwrap(), b"here");
    proxy.cut();
    proxy.connections(0).await;
}

#[tokio::test]
async fn an_answer_counts_only_if_it_was_asked_for_since() {
    let proxy = FaultProxy::start(echo().await).await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(round_trip(&mut stream, b"before").await.unwrap(), b"before");
    proxy.black_hole(true);
    stream.write_all(b"held back").await.unwrap();
    assert!(timeout(Duration::from_millis(100), proxy.answers()).await.is_err());
    proxy.black_hole(false);
    let mut held = [0; 9];
    stream.read_exact(&mut held).await.unwrap();
    let answers = proxy.answers();
    tokio::pin!(answers);
    assert!(timeout(Duration::from_millis(100), &mut answers).await.is_err(), "that was asked before");
    assert_eq!(round_trip(&mut stream, b"after").await.unwrap(), b"after");
    timeout(LONG, answers).await.unwrap();
}

#[tokio::test]
async fn a_cut_ends_open_connections_only() {
    let proxy = FaultProxy::start(echo().await).await;
    let mut open = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(round_trip(&mut open, b"one").await.unwrap(), b"one");
    proxy.connections(1).await;
    proxy.cut();
    proxy.connections(0).await;
    round_trip(&mut open, b"two").await.unwrap_err();
    let mut fresh = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(round_trip(&mut fresh, b"three").await.unwrap(), b"three");
}

#[tokio::test]
async fn a_black_hole_swallows_until_it_is_closed() {
    let proxy = FaultProxy::start(echo().await).await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(round_trip(&mut stream, b"one").await.unwrap(), b"one");
    proxy.black_hole(true);
    stream.write_all(b"two").await.unwrap();
    let mut back = [0; 3];
    timeout(Duration::from_millis(100), stream.read_exact(&mut back)).await.unwrap_err();
    proxy.black_hole(false);
    timeout(LONG, stream.read_exact(&mut back)).await.unwrap().unwrap();
    assert_eq!(&back, b"two");
}

#[tokio::test]
async fn a_delay_delays_and_a_new_target_is_for_new_connections() {
    let (proxy, url) = FaultProxy::before(&format!("nats://user:word@{}/x", echo().await)).await;
    assert_eq!(url, format!("nats://user:word@{}/x", proxy.address()));
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    proxy.delay(Duration::from_millis(30));
    let began = std::time::Instant::now();
    round_trip(&mut stream, b"one").await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(60), "{:?}", began.elapsed());
    proxy.delay(Duration::ZERO);

    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap();
    proxy.target(nobody);
    assert_eq!(round_trip(&mut stream, b"two").await.unwrap(), b"two");
    let mut refused = TcpStream::connect(proxy.address()).await.unwrap();
    round_trip(&mut refused, b"three").await.unwrap_err();
}

async fn post(url: &str, body: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let length = body.len();
    let text = format!("POST /{path} HTTP/1.1\r\nHost: {host}\r\nX-Mark: m\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn http_answers_by_script_and_remembers() {
    let http = ScriptedHttp::start().await;
    let busy = Reply::status(503).header("Retry-After", "1");
    http.script("/pay", [busy, Reply::hang_up(), Reply::json("{\"ok\":true}")]);
    let first = post(&http.url("/pay?x=1"), "{\"n\":1}").await;
    assert!(first.starts_with("HTTP/1.1 503 ") && first.contains("retry-after: 1\r\n"), "{first}");
    assert_eq!(post(&http.url("/pay"), "2").await, "");
    for _ in 0..2 {
        let last = post(&http.url("/pay"), "3").await;
        assert!(last.starts_with("HTTP/1.1 200 ") && last.ends_with("\r\n\r\n{\"ok\":true}"), "{last}");
    }
    assert!(post(&http.url("/other"), "").await.starts_with("HTTP/1.1 404 "));
    let requests = http.requests();
    assert_eq!(requests.len(), 5);
    assert_eq!((requests[0].query.as_str(), requests[0].text().as_str()), ("x=1", "{\"n\":1}"));
    assert_eq!(requests[0].header("x-mark"), Some("m"));
    assert!(requests[1].at >= requests[0].at);
}

#[tokio::test]
async fn a_request_is_known_before_it_is_answered() {
    let http = ScriptedHttp::start().await;
    http.script("/slow", [Reply::status(200).after(LONG * 100)]);
    let url = http.url("/slow");
    let asking = tokio::spawn(async move { post(&url, "hello").await });
    assert_eq!(timeout(LONG, http.arrived(1)).await.unwrap().text(), "hello");
    assert!(!asking.is_finished());
    drop(http);
    assert_eq!(timeout(LONG, asking).await.unwrap().unwrap(), "", "closed without an answer");
}

#[tokio::test]
async fn a_process_is_watched_paused_and_killed() {
    let script = "trap 'echo asked to end >&2; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let process = Process::start("sh", |command| {
        command.args(["-c", script]);
    });
    assert_eq!(process.line("ready").await, "ready");
    process.pause();
    process.terminate();
    let stat = format!("/proc/{}/stat", process.pid());
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
        tokio::task::yield_now().await;
    }
    assert!(!process.output().contains("asked"));
    process.resume();
    assert_eq!(process.line("asked").await, "asked to end");
    assert_eq!(process.ended().await.code(), Some(7));
}

#[tokio::test]
#[should_panic(expected = "ended without a line \"never\"; its output:\nonly this")]
async fn a_missing_line_shows_the_received_lines() {
    let process = Process::start("echo", |command| {
        command.arg("only this");
    });
    process.line("never").await;
}

#[tokio::test]
async fn an_observer_reads_the_tables_and_survives_an_outage() {
    let mut servers = Servers::start_own().await;
    servers.create_database().await;
    let observer = Observer::new(servers.database_url());
    assert_eq!(observer.live_besides(&[]).await, Some(0));
    let mut db = PgConnection::connect(servers.database_url()).await.unwrap();
    let write = "INSERT INTO tools (name, spec, registered_by) VALUES ('t', '{}', 'w')";
    sqlx::query(write).execute(&mut db).await.unwrap();
    assert_eq!(observer.registered(&["t".to_owned()]).await, Some(1));
    servers.kill_postgres().await;
    assert_eq!(observer.live_besides(&[]).await, None);
    servers.start_postgres().await;
    until("the observer sees again", async || observer.live_besides(&[]).await).await;
}
