use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use redial_proto::{ApiError, Code, subjects::Intake};
use redial_queue::{Origin, Queue, QueueError, Requests};

use crate::{
    TRACE,
    server::{Server, lost, within},
};

const WAIT: Duration = Duration::from_secs(5);

/// Returns once the server has read what this connection has sent: it answers in order, and may be about to start.
async fn is_read(queue: &Queue) {
    within(20, async {
        while queue.health().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Answers every request with its number plus one, and refuses odd numbers.
async fn answer(queue: &Queue) {
    let mut requests = queue.serve("redial.ctl.test", Some("dispatchers")).await.unwrap();
    is_read(queue).await;
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let number: u32 = serde_json::from_slice(&request.payload).unwrap();
            match (number % 2, &request.traceparent) {
                (1, _) => request.reply_error(&ApiError::new(Code::WrongState, "odd")).await,
                (_, Some(trace)) => request.reply(&format!("{number} {trace}")).await,
                (_, None) if number == 1000 => request.reply(&"x".repeat(2_000_000)).await,
                (_, None) => request.reply(&(number + 1)).await,
            }
        }
    });
}

#[tokio::test]
async fn requests_are_answered_or_refused_by_one_of_the_group() {
    let (server, queue) = Server::with_connection().await;
    answer(&queue).await;
    answer(&server.connect().await).await;
    let numbers: u32 = queue.request("redial.ctl.test", &4, WAIT).await.unwrap();
    assert_eq!(numbers, 5);
    let origin = Origin { traceparent: Some(TRACE), token: None };
    let traced: String = queue.request_from("redial.ctl.test", &4, WAIT, origin).await.unwrap();
    assert_eq!(traced, format!("4 {TRACE}"));
    let error = queue.request::<_, u32>("redial.ctl.test", &3, WAIT).await.unwrap_err();
    assert!(matches!(error, QueueError::Api(ApiError { code: Code::WrongState, .. })), "{error}");
    let error = queue.request::<_, u32>("redial.ctl.test", &1000, WAIT).await.unwrap_err();
    assert!(matches!(error, QueueError::Api(ApiError { code: Code::TooLarge, .. })), "{error}");
    let error = queue.request::<_, bool>("redial.ctl.test", &2, WAIT).await.unwrap_err();
    assert!(matches!(error, QueueError::Decode { .. }), "{error}");
}

/// Members join and leave, as dispatchers do that are replaced one after the other. A nats-server that stands still for over 100 ms
/// says that nothing is on its way, and may be wrong.
#[tokio::test]
async fn no_request_is_lost_when_a_member_of_the_group_leaves() {
    let server = Server::started().await;
    let asking = server.connect().await;
    answer(&server.connect().await).await;
    let ask = async |n: u32| {
        loop {
            match asking.request::<_, u32>("redial.ctl.test", &(2 * (n % 100)), WAIT).await {
                // Said by nats-server 2.9 for a moment while members come and go.
                Err(QueueError::NoResponders { .. }) => {}
                answer => return answer.err(),
            }
        }
    };
    let requests = stream::iter(0..50_000).map(ask).buffer_unordered(100).filter_map(async |error| error);
    let members = async {
        loop {
            let member = server.connect().await;
            let mut requests = member.serve("redial.ctl.test", Some("dispatchers")).await.unwrap();
            member.flush().await;
            for _ in 0..50 {
                requests.next().await.unwrap().reply(&1).await;
            }
            requests.leave().await;
            while let Some(request) = requests.next().await {
                request.reply(&1).await;
            }
            member.flush().await;
        }
    };
    let lost: Vec<QueueError> = tokio::select! {
        lost = requests.collect() => lost,
        () = members => unreachable!("it has no end"),
    };
    assert!(lost.is_empty(), "{} requests have no answer: {:?}", lost.len(), lost[0]);
}

/// Asks so often, and takes what comes for an answer.
async fn flood(asking: &Queue, count: u32, at_once: usize) {
    let ask = async |_| drop(asking.request::<_, u32>("redial.ctl.test", &1, Duration::from_millis(500)).await);
    stream::iter(0..count).map(ask).buffer_unordered(at_once).for_each(async |()| ()).await;
}

/// Returns a member of the group that has answered 200 requests.
async fn busy_member(asking: &Queue, member: &Queue) -> Requests {
    let mut requests = member.serve("redial.ctl.test", Some("dispatchers")).await.unwrap();
    is_read(member).await;
    let answering = async {
        for _ in 0..200 {
            requests.next().await.unwrap().reply(&1).await;
        }
    };
    within(20, async { tokio::join!(flood(asking, 200, 100), answering) }).await;
    requests
}

async fn answer_the_last(requests: &mut Requests) {
    requests.leave().await;
    while let Some(request) = requests.next().await {
        request.reply(&1).await;
    }
}

async fn nobody_listens(asking: &Queue) {
    let error = asking.request::<_, u32>("redial.ctl.test", &1, WAIT).await.unwrap_err();
    assert!(matches!(error, QueueError::NoResponders { .. }), "{error}");
}

/// The server counts from the last connection on: it would go on sending to a client that has taken its last requests.
#[tokio::test]
async fn a_member_that_was_disconnected_before_leaves_too() {
    let mut server = Server::started().await;
    let (asking, member) = (server.connect().await, server.connect().await);
    let mut requests = busy_member(&asking, &member).await;
    let mut connections = member.connections();
    server.restart().await;
    within(20, connections.changed()).await.unwrap();
    within(20, asking.connected(WAIT)).await.unwrap();
    member.flush().await;
    // Until the server knows the subscription again, nobody listens.
    let asks = async {
        loop {
            flood(&asking, 1, 1).await;
        }
    };
    tokio::select! {
        () = within(20, asks) => unreachable!("it has no end"),
        request = requests.next() => request.unwrap().reply(&1).await,
    }
    within(20, async { tokio::join!(flood(&asking, 150, 20), answer_the_last(&mut requests)) }).await;
    nobody_listens(&asking).await;
}

#[tokio::test]
async fn a_member_that_is_disconnected_leaves_too() {
    let mut server = Server::started().await;
    let (asking, member) = (server.connect().await, server.connect().await);
    let mut requests = busy_member(&asking, &member).await;
    server.kill().await;
    lost(&member).await;
    let back = async {
        server.start().await;
        asking.connected(WAIT).await.unwrap();
        flood(&asking, 150, 20).await;
    };
    within(60, async { tokio::join!(back, answer_the_last(&mut requests)) }).await;
    drop(requests);
    within(20, member.connected(WAIT)).await.unwrap();
    is_read(&member).await;
    nobody_listens(&asking).await;
}

/// Nobody asks it anything while it leaves.
#[tokio::test]
async fn a_member_that_nobody_asks_leaves_too() {
    let (_server, queue) = Server::with_connection().await;
    let mut requests = queue.serve("redial.ctl.test", Some("dispatchers")).await.unwrap();
    is_read(&queue).await;
    requests.leave().await;
    assert!(within(5, requests.next()).await.is_none());
    nobody_listens(&queue).await;
}

#[tokio::test]
async fn a_header_that_is_no_trace_context_is_ignored() {
    let (server, queue) = Server::with_connection().await;
    answer(&queue).await;
    let client = server.client().await;
    for header in ["", "00-a-b-01", &format!("{TRACE}\0"), &format!("{TRACE}-{}", "x".repeat(50_000))] {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("traceparent", header);
        let reply = client.request_with_headers("redial.ctl.test", headers, "4".into()).await.unwrap();
        assert_eq!(reply.payload, "5", "{header:?}");
    }
}

#[tokio::test]
async fn a_request_without_a_responder_fails_at_once_and_without_a_reply_in_time() {
    let (_server, queue) = Server::with_connection().await;
    let error = within(20, queue.request::<_, u32>("redial.ctl.nobody", &1, Duration::from_mins(1))).await.unwrap_err();
    assert_eq!(error.to_string(), "redial.ctl.nobody: no dispatcher is listening");
    assert!(error.is_retryable());
    let _silent = queue.serve("redial.ctl.silent", None).await.unwrap();
    let error = queue.request::<_, u32>("redial.ctl.silent", &1, Duration::from_millis(100)).await.unwrap_err();
    assert!(matches!(error, QueueError::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_and_keeps_the_connection() {
    let (_server, queue) = Server::with_queue().await;
    let connections = queue.connections();
    let mut heard = queue.subscribe("redial.events.>").await.unwrap();
    let large = "x".repeat(1_100_000);
    for refused in [
        queue.publish("redial.events.x", &large).await,
        queue.put("redial.results.tools", &large).await,
        queue.put_intake(Intake::Calls, large.clone().into(), None).await,
        queue.request::<_, u32>("redial.ctl.test", &large, WAIT).await.map(|_| ()),
    ] {
        assert!(matches!(refused, Err(QueueError::TooLarge { max: 1_024_000, .. })), "{refused:?}");
    }
    queue.publish("redial.events.x", &"small").await.unwrap();
    assert_eq!(within(5, heard.next()).await, "\"small\"");
    assert!(!connections.has_changed().unwrap(), "the connection was lost");
}
