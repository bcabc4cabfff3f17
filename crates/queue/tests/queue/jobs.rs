use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use redial_proto::{Job, subjects::Intake};
use redial_queue::{Delivery, OutgoingJob, Queue};
use redial_testkit::RawNats;

use crate::{
    TRACE, job, jobs, publish_jobs,
    server::{Server, within},
};

const WAIT: Duration = Duration::from_secs(20);

fn decode(delivery: &Delivery) -> Job {
    serde_json::from_slice(&delivery.payload).unwrap()
}

/// Publishes jobs until all are acknowledged. A server that stood still for a moment has them all the same, and takes none twice.
pub(crate) async fn publish_all(queue: &Queue, sent: &[OutgoingJob]) {
    within(60, async {
        while !publish_jobs(queue, sent).await.iter().all(Result::is_ok) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn every_job_is_pulled_once_and_never_more_than_asked_for() {
    let (_server, queue) = Server::with_queue().await;
    let sent = jobs("default", 5000);
    publish_all(&queue, &sent).await;
    let mut pull = queue.jobs("default").unwrap();
    let mut seen = HashSet::new();
    for max in [1, 7, 64, 256].into_iter().cycle() {
        let pulled = within(30, pull.pull(max, WAIT)).await.unwrap();
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
async fn a_delivery_has_its_facts_and_only_a_new_publication_is_stored_again() {
    let (_server, queue) = Server::with_queue().await;
    let before = chrono::Utc::now();
    let sent = OutgoingJob { traceparent: Some(TRACE.into()), ..job("default") };
    publish_all(&queue, std::slice::from_ref(&sent)).await;
    let after = chrono::Utc::now();
    let pulled = queue.jobs("default").unwrap().pull(10, WAIT).await.unwrap();
    assert_eq!(decode(&pulled[0]), sent.job);
    assert_eq!((pulled[0].delivered, pulled[0].stream_sequence), (1, 1));
    assert_eq!(pulled[0].traceparent(), Some(TRACE));
    assert_eq!(pulled[0].subject(), "redial.jobs.default.echo");
    let stored = pulled[0].stored_at;
    assert!(before <= stored && stored <= after, "{before} {stored} {after}");
    // Only a new publication is stored again.
    let again = OutgoingJob { publish_no: 2, ..sent.clone() };
    for sent in [&sent, &again] {
        publish_all(&queue, std::slice::from_ref(sent)).await;
    }
    assert_eq!(queue.ensure_jobs("default").await.unwrap().pending, 1);
}

/// nats-server cuts a client off that has 64 MiB to read.
#[tokio::test]
async fn a_pull_brings_8_mib_at_most_and_the_next_ones_the_rest() {
    let (server, queue) = Server::with_queue().await;
    let mut raw = RawNats::connect(&server.config().url).await;
    for _ in 0..20 {
        raw.publish("redial.jobs.default.echo", &vec![b' '; 900 * 1024]).await;
    }
    let mut one = queue.jobs("default").unwrap();
    let mut pulled = within(30, one.pull(64, WAIT)).await.unwrap();
    pulled.extend(within(30, one.end()).await);
    assert_eq!(pulled.len(), 9, "so many fit");
    let mut another = queue.jobs("default").unwrap();
    while pulled.len() < 20 {
        // That the next one does not fit is no error.
        pulled.extend(within(30, another.pull(64, WAIT)).await.unwrap());
    }
    for delivery in &pulled {
        delivery.ack().await;
    }
}

#[tokio::test]
async fn a_dropped_pull_loses_nothing() {
    let (_server, queue) = Server::with_queue().await;
    let publish = async {
        for _ in 0..200 {
            publish_all(&queue, &[job("default")]).await;
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
                for delivery in &pulled {
                    assert_eq!(delivery.delivered, 1);
                    // Otherwise it comes again after 30 s.
                    delivery.ack().await;
                }
                seen += pulled.len();
            }
        }
    };
    within(120, async { tokio::join!(publish, pull) }).await;
}

#[tokio::test]
async fn answers_decide_whether_a_job_is_delivered_again() {
    let (_server, queue) = Server::with_queue().await;
    let sent = jobs("default", 3);
    publish_all(&queue, &sent).await;
    let (mut pull, mut pulled) = (queue.jobs("default").unwrap(), Vec::new());
    while pulled.len() < 3 {
        pulled.extend(pull.pull(3 - pulled.len(), WAIT).await.unwrap());
    }
    pulled[0].ack().await;
    pulled[1].nak(Duration::from_millis(50)).await;
    pulled[2].term().await;
    let again = within(30, pull.pull(3, WAIT)).await.unwrap();
    assert_eq!((decode(&again[0]), again[0].delivered), (sent[1].job.clone(), 2));
    again[0].ack().await;
    within(20, async {
        while queue.ensure_streams().await.map_or(1, |streams| streams.jobs) > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn ending_a_pull_leaves_nothing_behind() {
    let (server, queue) = Server::with_queue().await;
    let late = loop {
        let mut pull = queue.jobs("default").unwrap();
        let asked = Instant::now();
        assert!(pull.pull(3, Duration::from_millis(1)).await.unwrap().is_empty());
        publish_all(&queue, &jobs("default", 1)).await;
        let late = within(20, pull.end()).await;
        if !late.is_empty() {
            break late;
        }
        // The server forgets a request after 2 s.
        assert!(asked.elapsed() > Duration::from_millis(1500), "it was given to nobody");
        server.jetstream().await.get_stream("JOBS").await.unwrap().purge().await.unwrap();
    };
    assert_eq!(late.len(), 1);
    publish_all(&queue, &jobs("default", 1)).await;
    let backlog = queue.ensure_jobs("default").await.unwrap();
    assert_eq!((backlog.pending, backlog.unacked), (1, 1));
}

#[tokio::test]
async fn results_and_intake_arrive_in_order() {
    let (_server, queue) = Server::with_queue().await;
    for number in 0..500 {
        within(20, async { while queue.put("redial.results.tools", &number).await.is_err() {} }).await;
    }
    within(20, async { while queue.put_intake(Intake::Calls, "[1]".into(), Some(TRACE)).await.is_err() {} }).await;
    let mut results = queue.results();
    let mut next = 0;
    while next < 500 {
        for delivery in within(20, results.next(128)).await {
            let number: u32 = serde_json::from_slice(&delivery.payload).unwrap();
            // It was put again if its acknowledgement came too late.
            assert!(number == next || number + 1 == next, "{number} instead of {next}");
            delivery.ack().await;
            next = number + 1;
        }
    }
    let intake = within(20, queue.intake().next(10)).await;
    assert_eq!((&intake[0].payload[..], intake[0].traceparent()), (&b"[1]"[..], Some(TRACE)));
}
