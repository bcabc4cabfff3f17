//! Connections of a user and their subscriptions are limited; those of dispatchers and workers are not by the same number.

use redial_test_stack::until;

use super::server::Server;

const ACCESS: &str = r#"
[dispatcher]
password = "$TEST_DISPATCHER"
[tenants.acme.users]
alice = { roles = ["submit", "read"], password = "$TEST_PASSWORD" }
carl = { roles = ["read"], connections = 2, password = "$TEST_PASSWORD" }
[tenants.globex.users]
bob = { roles = ["submit"], password = "$TEST_PASSWORD" }
[workers.tools]
pools = ["default"]
password = "$TEST_PASSWORD"
"#;

#[tokio::test]
async fn a_user_has_so_many_connections_and_takes_none_of_others() {
    let server = Server::start(ACCESS).await;
    let mut held = Vec::new();
    for (user, most) in [("acme.alice", 64), ("acme.carl", 2)] {
        for _ in 0..most {
            held.push(server.connect(user).await);
        }
        let refused = server.try_connect(user).await.unwrap_err();
        assert!(refused.contains("maximum account active connections exceeded"), "{user}: {refused}");
    }
    for user in ["globex.bob", "dispatcher", "worker.tools"] {
        for _ in 0..if user == "globex.bob" { 1 } else { 65 } {
            held.push(server.try_connect(user).await.unwrap_or_else(|refused| panic!("{user}: {refused}")));
        }
    }
    // Its inbox is one, so this is one too many of one connection, and none too many of another.
    for n in 0..499 {
        held[0].subscribe(&format!("redial.events.acme.calls.{n}")).await;
    }
    held[1].subscribe("redial.events.acme.calls.1").await;
    let one_more = held[0].write(b"SUB redial.events.acme.calls.more more\r\n").await;
    let refused = held[0].flush().await;
    assert!(one_more.is_ok() && format!("{refused:?}").contains("maximum subscriptions exceeded"), "{refused:?}");
    held.remove(0);
    until("a connection is free", async || server.try_connect("acme.alice").await.ok()).await;
}
