use std::time::Duration;

use redial_queue::QueueError;
use redial_servers::Signal;

use crate::{
    jobs,
    jobs::publish_all,
    publish_jobs,
    server::{Server, ensure, lost, within},
};

const WAIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_missing_consumer_is_noticed_and_so_is_its_return() {
    let (_server, queue) = Server::with_connection().await;
    within(20, async { while queue.ensure_streams().await.is_err() {} }).await;
    let mut pull = queue.jobs("default").unwrap();
    let error = within(20, pull.pull(1, WAIT)).await.err().unwrap();
    assert!(matches!(error, QueueError::Missing { .. }), "{error}");
    let again = within(20, pull.pull(1, WAIT)).await.err().unwrap();
    assert!(matches!(again, QueueError::Missing { .. }), "{again}");
    queue.ensure_jobs("default").await.unwrap();
    publish_all(&queue, &jobs("default", 1)).await;
    assert_eq!(within(20, pull.pull(1, WAIT)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_pull_and_the_jobs_survive_a_killed_server() {
    let (mut server, queue) = Server::with_queue().await;
    publish_all(&queue, &jobs("other", 100)).await;
    let mut pull = queue.jobs("default").unwrap();
    let pulling = tokio::spawn(async move {
        loop {
            match pull.pull(4, Duration::from_mins(1)).await {
                // The server was away for so long that the pull says so.
                Err(error) if error.is_outage() => {}
                pulled => return pulled,
            }
        }
    });
    server.restart().await;
    let other = server.connect().await;
    within(20, ensure(&other)).await;
    publish_all(&other, &jobs("default", 4)).await;
    // At its own limit the pull would bring nothing.
    assert!(!within(120, pulling).await.unwrap().unwrap().is_empty());
    other.ensure_jobs("other").await.unwrap();
    assert_eq!(other.ensure_jobs("other").await.unwrap().pending, 100);
}

#[tokio::test]
async fn result_loops_survive_a_wiped_store() {
    let (mut server, queue) = Server::with_queue().await;
    let mut results = queue.results();
    queue.put("redial.results.tools", &1).await.unwrap();
    within(20, results.next(10)).await[0].ack().await;
    let waiting = tokio::spawn(async move { results.next(10).await });
    server.wipe().await;
    within(20, ensure(&queue)).await;
    queue.put("redial.results.tools", &2).await.unwrap();
    assert_eq!(within(30, waiting).await.unwrap()[0].payload, "2");
}

#[tokio::test]
async fn a_consumer_that_is_ahead_of_its_stream_is_created_again() {
    let (mut server, queue) = Server::with_queue().await;
    let mut results = queue.results();
    for number in 0..5 {
        queue.put("redial.results.tools", &number).await.unwrap();
        within(20, results.next(10)).await[0].ack().await;
    }
    publish_all(&queue, &jobs("default", 20)).await;
    let mut pull = queue.jobs("default").unwrap();
    for delivery in within(20, pull.pull(20, WAIT)).await.unwrap() {
        delivery.ack().await;
    }
    for stream in ["JOBS", "RESULTS"] {
        server.lose_messages(stream).await;
    }
    within(20, ensure(&queue)).await;
    publish_all(&queue, &jobs("default", 3)).await;
    queue.put("redial.results.tools", &7).await.unwrap();
    assert!(!within(30, pull.pull(3, WAIT)).await.unwrap().is_empty());
    assert_eq!(within(30, results.next(10)).await[0].payload, "7");
}

#[tokio::test]
async fn publishing_to_a_stopped_server_times_out() {
    let (server, queue) = Server::with_queue().await;
    server.signal(Signal::STOP);
    // One after the other they would take 100 s.
    let results = within(60, publish_jobs(&queue, &jobs("default", 50))).await;
    server.signal(Signal::CONT);
    assert!(results.iter().all(|result| matches!(result, Err(QueueError::Timeout { .. }))), "{results:?}");
}

#[tokio::test]
async fn publishing_without_a_connection_fails_at_once() {
    let (mut server, queue) = Server::with_queue().await;
    server.kill().await;
    lost(&queue).await;
    let results = within(1, publish_jobs(&queue, &jobs("default", 5000))).await;
    assert!(results.iter().all(|result| matches!(result, Err(QueueError::Disconnected))));
    assert!(matches!(within(20, queue.put("redial.results.tools", &1)).await, Err(QueueError::Disconnected)));
}
