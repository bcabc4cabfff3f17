use std::{pin::pin, time::Duration};

use futures_util::FutureExt as _;
use redial_queue::{Queue, QueueConfig, QueueError};

use crate::{
    jobs, publish_jobs,
    server::{Server, lost, within},
};

const WAIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn connecting_waits_for_the_server() {
    let mut server = Server::started().await;
    server.kill().await;
    let config = server.config();
    let connecting = tokio::spawn(async move { Queue::connect(&config).await });
    assert!(tokio::time::timeout(Duration::from_millis(300), Queue::connect(&server.config())).await.is_err());
    server.start().await;
    let queue = within(20, connecting).await.unwrap().unwrap();
    assert!(queue.is_connected());
    queue.health().await.unwrap();
}

#[tokio::test]
async fn a_wrong_password_is_reported_at_once() {
    let server = Server::started().await;
    let right = server.config();
    within(20, Queue::connect(&right)).await.unwrap();
    let (start, host) = right.url.rsplit_once('@').unwrap();
    let user = start.rsplit_once(':').unwrap().0;
    let wrong = QueueConfig { url: format!("{user}:wrong@{host}"), ..right.clone() };
    let error = within(5, Queue::connect(&wrong)).await.err().unwrap();
    assert!(matches!(error, QueueError::Refused { .. }), "{error}");
    assert!(!error.to_string().contains("wrong"), "{error}");
}

#[tokio::test]
async fn a_missing_credentials_file_is_named() {
    let wrong = QueueConfig {
        url: "nats://127.0.0.1:1".into(),
        credentials: Some("/nowhere/x.creds".into()),
        ..QueueConfig::default()
    };
    let error = Queue::connect(&wrong).await.err().unwrap().to_string();
    assert!(error.contains("/nowhere/x.creds"), "{error}");
}

#[tokio::test]
async fn a_lost_connection_is_noticed_and_made_again() {
    let (mut server, queue) = Server::with_queue().await;
    let ended = queue.ended();
    let mut connections = queue.connections();
    connections.borrow_and_update();
    let mut heard = queue.subscribe("redial.events.x").await.unwrap();
    server.kill().await;
    lost(&queue).await;
    assert!(matches!(queue.health().await, Err(QueueError::Disconnected)));
    assert!(matches!(queue.connected(Duration::from_millis(1)).await, Err(QueueError::Disconnected)));
    server.start().await;
    within(20, connections.changed()).await.unwrap();
    within(20, queue.connected(Duration::from_secs(20))).await.unwrap();
    queue.publish("redial.events.x", &1).await.unwrap();
    assert_eq!(within(5, heard.next()).await.unwrap(), "1");
    assert!(ended.now_or_never().is_none(), "it is not the end of the client");
}

#[tokio::test]
async fn a_malformed_header_ends_the_client_and_everything_on_it_fails_at_once() {
    let server = Server::started().await;
    let (queue, other) = (server.ready().await, server.connect().await);
    let (ended, other_ended) = (queue.ended(), other.ended());
    let mut heard = queue.subscribe("redial.events.x").await.unwrap();
    // The server answers in order: it knows the subscription then.
    queue.health().await.unwrap();
    // The server accepts a carriage return in a value, and the client library does not survive it.
    server.publish_with_headers("redial.events.x", "NATS/1.0\r\ntraceparent: a\rb\r\n\r\n").await;
    within(5, ended).await;
    within(5, queue.ended()).await;
    assert!(!queue.is_connected());
    assert_eq!(within(1, heard.next()).await, None);
    let error = within(1, queue.request::<_, u32>("redial.ctl.x", &1, WAIT)).await.unwrap_err();
    assert!(matches!(error, QueueError::Ended), "{error}");
    assert!(error.is_outage() && !error.is_retryable());
    other.health().await.unwrap();
    assert!(other_ended.now_or_never().is_none(), "each client has an end of its own");
}

#[tokio::test]
async fn a_refused_login_is_not_the_end_of_the_client() {
    let (mut server, queue) = Server::with_queue().await;
    let mut ended = pin!(queue.ended());
    server.kill().await;
    // The client gives up a connection for which it was refused before it makes the next one.
    within(20, server.refuse_logins(3)).await;
    server.start().await;
    tokio::select! {
        () = &mut ended => panic!("the client ended"),
        connected = queue.connected(WAIT) => connected.unwrap(),
    }
}

#[tokio::test]
async fn a_dropped_queue_closes_its_connection() {
    let (_server, queue) = Server::with_queue().await;
    // Leaves a pull open and deliveries unanswered.
    publish_jobs(&queue, &jobs("default", 2)).await;
    let mut pull = queue.jobs("default").unwrap();
    let pulled = within(5, pull.pull(1, Duration::from_secs(5))).await.unwrap();
    pull.pull(5, Duration::from_secs(5)).await.unwrap();
    let mut connections = queue.connections();
    drop((queue, pull, pulled));
    // The watch ends with the connection's own task.
    within(5, async { while connections.changed().await.is_ok() {} }).await;
}
