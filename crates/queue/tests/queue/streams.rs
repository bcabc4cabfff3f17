use std::time::Duration;

use redial_queue::QueueError;

use crate::{
    jobs, publish_jobs,
    server::{Server, ensure, within},
};

#[tokio::test]
async fn ensuring_is_idempotent_and_notices_a_wiped_store() {
    let mut server = Server::started().await;
    let (queue, other) = (server.connect().await, server.connect().await);
    // One may be refused while the other's stream is being created, and tries again.
    tokio::join!(within(20, ensure(&queue)), within(20, ensure(&other)));
    let first = queue.ensure_streams().await.unwrap();
    assert_eq!(other.ensure_streams().await.unwrap(), first);
    server.restart().await;
    within(20, ensure(&queue)).await;
    assert_eq!(queue.ensure_streams().await.unwrap().jobs_created, first.jobs_created);
    server.wipe().await;
    within(20, ensure(&queue)).await;
    assert!(queue.ensure_streams().await.unwrap().jobs_created > first.jobs_created);
}

#[tokio::test]
async fn settings_that_cannot_work_are_named() {
    let (server, queue) = Server::with_connection().await;
    let config = async_nats::jetstream::stream::Config {
        name: "JOBS".into(),
        subjects: vec!["redial.jobs.>".into()],
        ..Default::default()
    };
    server.jetstream().await.create_stream(config).await.unwrap();
    let error = queue.ensure_streams().await.unwrap_err();
    assert!(matches!(&error, QueueError::Settings { field: "retention", .. }), "{error}");
    assert!(!error.is_retryable());
}

/// The ids of all who may publish to a stream are one namespace, so an id that another sender used must not drop a message.
#[tokio::test]
async fn ids_are_compared_for_as_short_a_time_as_nats_server_takes() {
    let (server, _queue) = Server::with_queue().await;
    let info = server.jetstream().await.get_stream("INTAKE").await.unwrap().cached_info().clone();
    assert_eq!(info.config.duplicate_window, Duration::from_millis(100));
}

#[tokio::test]
async fn pools_are_disjoint_and_their_names_are_subject_tokens_in_any_script() {
    let (_server, queue) = Server::with_queue().await;
    queue.ensure_jobs("模型").await.unwrap();
    queue.ensure_jobs("模型").await.unwrap();
    assert!(publish_jobs(&queue, &jobs("模型", 3)).await.iter().all(Result::is_ok));
    assert_eq!(queue.ensure_jobs("模型").await.unwrap().pending, 3);
    assert_eq!(queue.ensure_jobs("default").await.unwrap().pending, 0);
    let pulled = queue.jobs("模型").unwrap().pull(2, std::time::Duration::from_secs(5)).await.unwrap();
    let backlog = queue.ensure_jobs("模型").await.unwrap();
    assert_eq!((pulled.len(), backlog.pending, backlog.unacked), (2, 1, 2));
    for pool in ["*", "a.b", ">", "", "a b"] {
        assert!(matches!(queue.ensure_jobs(pool).await, Err(QueueError::Name(_))), "{pool:?}");
        assert!(matches!(publish_jobs(&queue, &jobs(pool, 1)).await[0], Err(QueueError::Name(_))), "{pool:?}");
    }
}

#[tokio::test]
async fn a_full_stream_refuses_and_loses_nothing() {
    let (server, queue) = Server::with_connection().await;
    let config = async_nats::jetstream::stream::Config {
        name: "JOBS".into(),
        subjects: vec!["redial.jobs.>".into()],
        retention: async_nats::jetstream::stream::RetentionPolicy::WorkQueue,
        discard: async_nats::jetstream::stream::DiscardPolicy::New,
        max_messages: 5,
        ..Default::default()
    };
    server.jetstream().await.create_stream(config).await.unwrap();
    within(20, ensure(&queue)).await;
    let results = publish_jobs(&queue, &jobs("default", 8)).await;
    assert!(results[..5].iter().all(Result::is_ok));
    for refused in &results[5..] {
        assert!(matches!(refused, Err(error @ QueueError::Full { .. }) if error.is_retryable()), "{refused:?}");
    }
}
