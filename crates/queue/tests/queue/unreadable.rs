use redial_queue::Queue;

use crate::server::{Server, within};

const INTAKE: &str = "redial.intake.calls";

/// Receives until the server has delivered all messages, or the client or its connection fails.
async fn receive(queue: &Queue, count: usize) {
    let mut connections = queue.connections();
    let mut intake = queue.intake();
    let receive = async {
        let mut received = 0;
        while received < count {
            received += intake.next(10).await.len();
        }
    };
    within(10, async {
        tokio::select! {
            () = receive => {}
            _ = connections.changed() => {}
        }
    })
    .await;
}

#[tokio::test]
async fn messages_that_the_client_cannot_receive_are_found_and_discarded() {
    let cases = [
        ("NATS/1.0\r\ntraceparent: a\rb\r\n\r\n", false),
        ("NATS/2.0\r\na: b\r\n\r\n", false),
        ("NATS/1.0\r\na: b\r\n c\r\nd:\r\n\r\n", true),
    ];
    for (headers, readable) in cases {
        let server = Server::started().await;
        let queue = server.ready().await;
        assert!(queue.unreadable("INTAKE").await.unwrap().is_empty(), "there is no message");
        queue.put(INTAKE, &1).await.unwrap();
        server.publish_with_headers(INTAKE, headers).await;
        queue.put(INTAKE, &3).await.unwrap();
        assert!(queue.unreadable("INTAKE").await.unwrap().is_empty(), "nothing was delivered");
        receive(&queue, 3).await;
        let other = server.connect().await;
        let found = other.unreadable("INTAKE").await.unwrap();
        let sequences: Vec<u64> = found.iter().map(|message| message.stream_sequence).collect();
        assert_eq!(sequences, if readable { vec![] } else { vec![2] }, "{headers:?}");
        for message in found {
            assert_eq!(message.subject, INTAKE);
            other.discard(&message).await.unwrap();
        }
        other.health().await.unwrap();
        assert!(other.unreadable("INTAKE").await.unwrap().is_empty(), "{headers:?}");
        let left = server.jetstream().await.get_stream("INTAKE").await.unwrap().cached_info().state.messages;
        assert_eq!(left, if readable { 3 } else { 2 }, "{headers:?}");
    }
}
