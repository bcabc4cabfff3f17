use std::time::{Duration, Instant};

use redial_queue::QueueError;
use redial_servers::Signal;

use crate::{
    jobs,
    server::{Server, ensure, within},
};

const WAIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_missing_consumer_is_noticed_and_so_is_its_return() {
    let server = Server::started().await;
    let queue = server.connect().await;
    within(20, async { while queue.ensure_streams().await.is_err() {} }).await;
    let mut pull = queue.jobs("default").unwrap();
    let error = within(20, pull.pull(1, WAIT)).await.err().unwrap();
    assert!(matches!(error, QueueError::Missing { .. }), "{error}");
    let again = within(20, pull.pull(1, WAIT)).await.err().unwrap();
    assert!(matches!(again, QueueError::Missing { .. }), "{again}");
    queue.ensure_jobs("default").await.unwrap();
    queue.publish_jobs(&jobs("default", 1)).await;
    assert_eq!(within(20, pull.pull(1, WAIT)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_pull_survives_a_killed_server() {
    let mut server = Server::started().await;
    let queue = server.ready().await;
    let mut pull = queue.jobs("default").unwrap();
    let pulling = tokio::spawn(async move { pull.pull(4, WAIT).await });
    server.restart().await;
    let other = server.connect().await;
    within(20, ensure(&other)).await;
    let published = Instant::now();
    assert!(other.publish_jobs(&jobs("default", 4)).await.iter().all(Result::is_ok));
    assert!(!within(10, pulling).await.unwrap().unwrap().is_empty());
    assert!(published.elapsed() < Duration::from_secs(5), "{:?}", published.elapsed());
}

#[tokio::test]
async fn result_loops_survive_a_wiped_store() {
    let mut server = Server::started().await;
    let queue = server.ready().await;
    let mut results = queue.results();
    queue.put("redial.results.tools", &1).await.unwrap();
    within(5, results.next(10)).await[0].ack().await;
    let waiting = tokio::spawn(async move { results.next(10).await });
    server.wipe().await;
    within(20, ensure(&queue)).await;
    queue.put("redial.results.tools", &2).await.unwrap();
    assert_eq!(within(10, waiting).await.unwrap()[0].payload, "2");
}

#[tokio::test]
async fn a_consumer_that_is_ahead_of_its_stream_is_created_again() {
    let mut server = Server::started().await;
    let queue = server.ready().await;
    let mut results = queue.results();
    for number in 0..5 {
        queue.put("redial.results.tools", &number).await.unwrap();
        within(5, results.next(10)).await[0].ack().await;
    }
    assert!(queue.publish_jobs(&jobs("default", 20)).await.iter().all(Result::is_ok));
    let mut pull = queue.jobs("default").unwrap();
    for delivery in within(5, pull.pull(20, WAIT)).await.unwrap() {
        delivery.ack().await;
    }
    for stream in ["JOBS", "RESULTS"] {
        server.lose_messages(stream).await;
    }
    within(20, ensure(&queue)).await;
    assert!(queue.publish_jobs(&jobs("default", 3)).await.iter().all(Result::is_ok));
    queue.put("redial.results.tools", &7).await.unwrap();
    assert!(!within(10, pull.pull(3, WAIT)).await.unwrap().is_empty());
    assert_eq!(within(10, results.next(10)).await[0].payload, "7");
}

#[tokio::test]
async fn jobs_outlive_a_killed_server() {
    let mut server = Server::started().await;
    let queue = server.ready().await;
    assert!(queue.publish_jobs(&jobs("default", 100)).await.iter().all(Result::is_ok));
    server.restart().await;
    within(20, ensure(&queue)).await;
    assert_eq!(queue.jobs_depth("default").await.unwrap().pending, 100);
}

#[tokio::test]
async fn publishing_to_a_stopped_server_times_out() {
    let server = Server::started().await;
    let queue = server.ready().await;
    server.signal(Signal::STOP);
    let started = Instant::now();
    let results = queue.publish_jobs(&jobs("default", 50)).await;
    let took = started.elapsed();
    server.signal(Signal::CONT);
    assert!(results.iter().all(|result| matches!(result, Err(QueueError::Timeout { .. }))), "{results:?}");
    assert!(took < Duration::from_secs(15), "{took:?}");
}

#[tokio::test]
async fn publishing_without_a_connection_fails_at_once() {
    let mut server = Server::started().await;
    let queue = server.ready().await;
    server.kill().await;
    within(10, async {
        while queue.is_connected() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let results = within(1, queue.publish_jobs(&jobs("default", 5000))).await;
    assert!(results.iter().all(|result| matches!(result, Err(QueueError::Disconnected))));
    assert!(matches!(within(5, queue.put("redial.results.tools", &1)).await, Err(QueueError::Disconnected)));
}
