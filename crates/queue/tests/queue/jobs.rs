use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use redial_proto::{Job, subjects::Intake};
use redial_queue::{Delivery, OutgoingJob};

use crate::{
    TRACE, job, jobs,
    server::{Server, within},
};

const WAIT: Duration = Duration::from_secs(5);

fn decode(delivery: &Delivery) -> Job {
    serde_json::from_slice(&delivery.payload).unwrap()
}

#[tokio::test]
async fn every_job_is_pulled_once_and_never_more_than_asked_for() {
    let server = Server::started().await;
    let queue = server.ready().await;
    let sent = jobs("default", 5000);
    assert!(queue.publish_jobs(&sent).await.iter().all(Result::is_ok));
    let mut pull = queue.jobs("default").unwrap();
    let mut seen = HashSet::new();
    for max in [1, 7, 64, 256].into_iter().cycle() {
        let pulled = within(10, pull.pull(max, WAIT)).await.unwrap();
        assert!((1..=max).contains(&pulled.len()));
        for delivery in &pulled {
            delivery.ack().await;
            assert!(seen.insert(decode(delivery).call), "delivered twice");
        }
        // The next, smaller request is still larger than the undelivered rest of this one.
        if seen.len() == sent.len() {
            break;
        }
    }
    assert_eq!(seen, sent.iter().map(|job| job.job.call).collect());
}

#[tokio::test]
async fn a_delivery_has_its_facts() {
    let server = Server::started().await;
    let queue = server.ready().await;
    let before = chrono::Utc::now();
    let sent = OutgoingJob { traceparent: Some(TRACE.into()), ..job("default") };
    queue.publish_jobs(std::slice::from_ref(&sent)).await.remove(0).unwrap();
    let after = chrono::Utc::now();
    let pulled = queue.jobs("default").unwrap().pull(10, WAIT).await.unwrap();
    assert_eq!(decode(&pulled[0]), sent.job);
    assert_eq!((pulled[0].delivered, pulled[0].stream_sequence), (1, 1));
    assert_eq!(pulled[0].traceparent(), Some(TRACE));
    assert_eq!(pulled[0].subject(), "redial.jobs.default.echo");
    let stored = pulled[0].stored_at;
    assert!(before <= stored && stored <= after, "{before} {stored} {after}");
}

#[tokio::test]
async fn a_job_that_arrives_between_two_calls_is_not_lost() {
    let server = Server::started().await;
    let queue = server.ready().await;
    let mut pull = queue.jobs("default").unwrap();
    assert!(pull.pull(3, Duration::from_millis(20)).await.unwrap().is_empty());
    queue.publish_jobs(&jobs("default", 3)).await;
    let mut pulled = Vec::new();
    while pulled.len() < 3 {
        pulled.extend(within(5, pull.pull(3 - pulled.len(), WAIT)).await.unwrap());
    }
    assert!(pulled.iter().all(|delivery| delivery.delivered == 1));
}

#[tokio::test]
async fn a_dropped_pull_loses_nothing() {
    let server = Server::started().await;
    let queue = server.ready().await;
    let publish = async {
        for _ in 0..200 {
            queue.publish_jobs(&[job("default")]).await.remove(0).unwrap();
        }
    };
    let pull = async {
        let mut pull = queue.jobs("default").unwrap();
        let mut seen = 0;
        while seen < 200 {
            // Polled once, then dropped: sometimes after it took a message.
            let next = pull.pull(256, WAIT);
            if let Ok(pulled) = tokio::time::timeout(Duration::from_micros(100), next).await {
                let pulled = pulled.unwrap();
                assert!(pulled.iter().all(|delivery| delivery.delivered == 1));
                seen += pulled.len();
            }
        }
    };
    within(20, async { tokio::join!(publish, pull) }).await;
}

#[tokio::test]
async fn only_a_new_publication_is_stored_again() {
    let server = Server::started().await;
    let queue = server.ready().await;
    let first = job("default");
    let second = OutgoingJob { publish_no: 2, ..first.clone() };
    for sent in [&first, &first, &second] {
        queue.publish_jobs(std::slice::from_ref(sent)).await.remove(0).unwrap();
    }
    assert_eq!(queue.jobs_depth("default").await.unwrap().pending, 2);
}

#[tokio::test]
async fn answers_decide_whether_a_job_is_delivered_again() {
    let server = Server::started().await;
    let queue = server.ready().await;
    let sent = jobs("default", 3);
    queue.publish_jobs(&sent).await;
    let (mut pull, mut pulled) = (queue.jobs("default").unwrap(), Vec::new());
    while pulled.len() < 3 {
        pulled.extend(pull.pull(3 - pulled.len(), WAIT).await.unwrap());
    }
    pulled[0].ack().await;
    pulled[1].nak(Duration::from_millis(50)).await;
    pulled[2].term().await;
    let again = within(5, pull.pull(3, WAIT)).await.unwrap();
    assert_eq!((decode(&again[0]), again[0].delivered), (sent[1].job.clone(), 2));
    again[0].ack().await;
    within(5, async {
        while queue.ensure_streams().await.unwrap().jobs > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn ending_a_pull_leaves_nothing_behind() {
    let server = Server::started().await;
    let queue = server.ready().await;
    let late = loop {
        let mut pull = queue.jobs("default").unwrap();
        let asked = Instant::now();
        assert!(pull.pull(3, Duration::from_millis(1)).await.unwrap().is_empty());
        queue.publish_jobs(&jobs("default", 1)).await;
        let late = within(5, pull.end()).await;
        if !late.is_empty() {
            break late;
        }
        // The server forgets a request after 2 s.
        assert!(asked.elapsed() > Duration::from_millis(1500), "it was given to nobody");
        server.jetstream().await.get_stream("JOBS").await.unwrap().purge().await.unwrap();
    };
    assert_eq!(late.len(), 1);
    queue.publish_jobs(&jobs("default", 1)).await;
    let backlog = queue.jobs_depth("default").await.unwrap();
    assert_eq!((backlog.pending, backlog.unacked), (1, 1));
}

#[tokio::test]
async fn results_and_intake_arrive_in_order() {
    let server = Server::started().await;
    let queue = server.ready().await;
    for number in 0..500 {
        queue.put("redial.results.tools", &number).await.unwrap();
    }
    queue.put_intake(Intake::Calls, "[1]".into(), Some(TRACE)).await.unwrap();
    let mut results = queue.results();
    let mut next = 0;
    while next < 500 {
        for delivery in within(5, results.next(128)).await {
            assert_eq!(delivery.payload, next.to_string());
            delivery.ack().await;
            next += 1;
        }
    }
    let intake = within(5, queue.intake().next(10)).await;
    assert_eq!((&intake[0].payload[..], intake[0].traceparent()), (&b"[1]"[..], Some(TRACE)));
}
