use std::time::Duration;

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
    assert_eq!(within(5, heard.next()).await, "1");
}

#[tokio::test]
async fn a_malformed_header_costs_one_message() {
    let server = Server::started().await;
    let (queue, other) = (server.ready().await, server.connect().await);
    let mut connections = queue.connections();
    let mut heard = queue.subscribe("redial.events.x").await.unwrap();
    let mut requests = queue.serve("redial.ctl.x", Some("dispatchers")).await.unwrap();
    let mut jobs = queue.jobs("default").unwrap();
    assert!(within(5, jobs.pull(1, Duration::from_millis(10))).await.unwrap().is_empty(), "a pull is open");
    for _ in 0..2 {
        // The server accepts a carriage return in a value, and the client of the library does not survive it.
        server.publish_with_headers("redial.events.x", "NATS/1.0\r\ntraceparent: a\rb\r\n\r\n").await;
        within(20, connections.changed()).await.unwrap();
        within(20, queue.connected(WAIT)).await.unwrap();
        // Whatever is asked for is found again on the other client. A message is lost until its subscription is made there.
        let event = async {
            loop {
                other.publish("redial.events.x", &1).await.unwrap();
                if let Ok(event) = tokio::time::timeout(Duration::from_millis(100), heard.next()).await {
                    return event;
                }
            }
        };
        assert_eq!(within(20, event).await, "1");
        let answer =
            async { while other.request::<_, u32>("redial.ctl.x", &1, Duration::from_millis(500)).await.is_err() {} };
        let serving = async {
            loop {
                requests.next().await.unwrap().reply(&2).await;
            }
        };
        tokio::select! {
            () = within(20, answer) => {}
            () = serving => unreachable!(),
        }
        publish_jobs(&other, &super::jobs("default", 1)).await;
        let job = async {
            loop {
                if let Ok(found) = jobs.pull(1, Duration::from_secs(1)).await
                    && let Some(job) = found.into_iter().next()
                {
                    return job;
                }
            }
        };
        within(60, job).await.ack().await;
    }
}

#[tokio::test]
async fn a_refused_login_is_not_the_end_of_the_client() {
    let (mut server, queue) = Server::with_queue().await;
    server.kill().await;
    // The client gives up a connection for which it was refused before it makes the next one.
    within(20, server.refuse_logins(3)).await;
    server.start().await;
    queue.connected(WAIT).await.unwrap();
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
