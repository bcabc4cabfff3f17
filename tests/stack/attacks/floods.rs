//! Users and workers that send as much as they can, or what stops those who read it.

use redial_proto::subjects::{self, Intake};
use redial_test_stack::until;

use super::world::World;

/// nats-server stores what a sender calls a status, and a client takes it for one of the server.
#[tokio::test]
async fn messages_with_a_status_hold_up_no_stream() {
    let world = World::start().await;
    let flood = |subject: &str| {
        let header = "NATS/1.0 404 x\r\n\r\n";
        let one = format!("HPUB {subject} {} {}\r\n{header}{{}}\r\n", header.len(), header.len() + 2);
        one.repeat(1_000).into_bytes()
    };
    world.raw("worker.rogue").await.send_raw(&flood("redial.results.rogue")).await;
    world.raw("globex.bob").await.send_raw(&flood("redial.intake.globex.bob.submit.calls")).await;
    let alice = world.user("acme.alice").await;
    let put = br#"{"tool":"echo","arguments":{},"key":"stream"}"#.as_slice();
    alice.put_intake(Intake::Calls, put.into(), None).await.unwrap();
    until("the call of the stream has ended", async || {
        (world.count("calls WHERE tenant = 'acme' AND key = 'stream' AND state = 'succeeded'").await == 1).then_some(())
    })
    .await;
    world.stop().await;
}

/// The client of a dispatcher does not survive each subject that nats-server stores.
#[tokio::test]
async fn nobody_may_publish_to_odd_subjects() {
    let world = World::start().await;
    let mut bob = world.raw("globex.bob").await;
    for odd in [b"\xff".as_slice(), "\u{3000}".as_bytes(), b"x.calls", b"other"] {
        for below in
            ["redial.intake.globex.bob.submit.", "redial.api.globex.bob.submit.", "redial.api.globex.bob.read."]
        {
            let lines = [b"PUB ", below.as_bytes(), odd, b" 2\r\n{}\r\n"].concat();
            bob.refusals.clear();
            bob.send_raw(&lines).await;
            assert!(bob.refusals.iter().any(|said| said.contains("Permissions Violation")), "{below}{odd:?}");
        }
    }
    let subject = subjects::intake(
        &"globex".parse().unwrap(),
        &"bob".parse().unwrap(),
        redial_proto::UserRole::Submit,
        Intake::Calls,
    );
    bob.refusals.clear();
    bob.publish(&subject, "", "", "{}").await;
    assert_eq!(bob.refusals, Vec::<String>::new());
    world.stop().await;
}
