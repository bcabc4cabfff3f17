//! nats-server as a process: start, crash, restart, refusals. The tests of the queue cover streams.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
};

use redial_servers::{Nats, NatsConfig, Server as _, ServerError, Signal, Supervised};

/// Connects with these options and returns the server's answer to a PING: `PONG` or an error.
fn ping(port: u16, options: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    write!(stream, "CONNECT {options}\r\nPING\r\n").unwrap();
    let mut answers = BufReader::new(stream).lines().map_while(Result::ok);
    answers.find(|line| !line.starts_with("INFO ")).unwrap_or_default()
}

fn credentials(nats: &Nats) -> String {
    let url = nats.url();
    let password = url.strip_prefix("nats://redial:").unwrap().split('@').next().unwrap();
    format!("{{\"verbose\":false,\"user\":\"redial\",\"pass\":\"{password}\"}}")
}

#[tokio::test]
async fn only_its_user_is_accepted_and_address_and_store_survive_stop_and_crash() {
    let temp = tempfile::tempdir().unwrap();
    let nats = Nats::start(NatsConfig::new(temp.path())).await.unwrap();
    let url = nats.url();
    for stranger in ["{}", r#"{"user":"redial","pass":"wrong"}"#, r#"{"user":"","pass":""}"#] {
        assert!(ping(nats.port(), stranger).contains("Authorization Violation"), "{stranger}");
    }
    assert!(nats.store().join("jetstream").is_dir(), "nothing in {}", nats.store().display());
    fs::write(temp.path().join("lock"), "1").unwrap();
    let error = Nats::start(NatsConfig::new(temp.path())).await.unwrap_err();
    assert!(matches!(error, ServerError::FolderInUse { .. }), "{error}");
    nats.stop().await;
    let nats = Nats::start(NatsConfig::new(temp.path())).await.unwrap();
    assert_eq!(nats.url(), url);
    nats.kill().await;
    let nats = Nats::start(NatsConfig::new(temp.path())).await.unwrap();
    assert_eq!(nats.url(), url);
    assert_eq!(ping(nats.port(), &credentials(&nats)), "PONG");
}

#[tokio::test]
async fn a_taken_port_is_reported_and_a_failed_start_quotes_the_log() {
    let temp = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = Nats::start(NatsConfig { port: Some(port), ..NatsConfig::new(temp.path()) }).await.unwrap_err();
    assert!(matches!(error, ServerError::PortTaken { port: found, .. } if found == port), "{error}");
    let store = temp.path().join("a file");
    fs::write(&store, "").unwrap();
    let error = Nats::start(NatsConfig { store: Some(store), ..NatsConfig::new(temp.path()) }).await.unwrap_err();
    assert!(matches!(error, ServerError::Ended { .. }), "{error}");
    assert!(error.to_string().contains("JetStream"), "{error}");
}

#[tokio::test]
async fn a_supervised_server_is_restarted_until_it_is_stopped() {
    let temp = tempfile::tempdir().unwrap();
    let supervised = Supervised::start::<Nats>(NatsConfig::new(temp.path())).await.unwrap();
    let mut pids = supervised.pid();
    for _ in 0..2 {
        let before = pids.borrow_and_update().unwrap();
        let victim = rustix::process::Pid::from_raw(i32::try_from(before).unwrap()).unwrap();
        rustix::process::kill_process(victim, Signal::KILL).unwrap();
        pids.wait_for(|now| now.is_some_and(|now| now != before)).await.unwrap();
        assert!(ping(supervised.port(), "{}").contains("Authorization Violation"));
    }
    let port = supervised.port();
    supervised.stop().await;
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
}
