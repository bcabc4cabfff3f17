use std::{
    io,
    net::{IpAddr, Ipv4Addr},
    sync::atomic::{AtomicUsize, Ordering},
};

use redial_proto::CallId;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use uuid::Uuid;

use super::*;

/// A name whose addresses change from one question to the next.
struct Rebinding {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Lookup for Rebinding {
    fn addresses(&self, _host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let n = self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = self.answers[n.min(self.answers.len() - 1)].clone();
        async move { Ok(answer) }.boxed()
    }
}

fn key() -> WebhookKey {
    WebhookKey::new(&"k".repeat(32)).unwrap()
}

async fn deliver(tool: &Tool, url: &str) -> ToolResult {
    let delivery = Delivery {
        webhook: Uuid::from_u128(7),
        url: url.to_owned(),
        event: "evt_1".to_owned(),
        key: key().id(),
        version: 1,
        previous_until: None,
        body: RawValue::from_string(r#"{"type":"call.succeeded"}"#.to_owned()).unwrap(),
    };
    let call = CallId::generate();
    let context = Context { call, idempotency_key: call.to_string(), ..Context::new(webhook::TOOL) };
    tool.run(context, serde_json::value::to_raw_value(&delivery).unwrap()).await
}

/// Starts a server that answers every request 204 and counts its connections.
async fn server() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (port, connections) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await;
        }
    });
    (port, connections)
}

fn tool(allowed: &str, answers: Vec<Vec<IpAddr>>) -> Tool {
    let lookup = Rebinding { answers, asked: AtomicUsize::new(0) };
    Tool::webhooks_with(key(), allowed.parse().unwrap(), Arc::new(lookup)).unwrap()
}

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 215, 14));
const PRIVATE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

#[tokio::test]
async fn a_name_that_is_bound_to_a_private_address_is_refused_when_the_connection_is_made() {
    let (port, connections) = server().await;
    for answers in [vec![vec![PRIVATE]], vec![vec![PUBLIC, PRIVATE]], vec![vec!["::ffff:127.0.0.1".parse().unwrap()]]] {
        let refused = deliver(&tool("", answers), &format!("https://rebind.example:{port}/")).await.unwrap_err();
        assert_eq!(refused.class, ErrorClass::Configuration, "{refused:?}");
        assert!(
            refused.message.contains("not on the public internet") && !refused.message.contains("127.0"),
            "{refused:?}"
        );
        assert!(!refused.effect_possible);
    }
    assert_eq!(connections.load(Ordering::Relaxed), 0, "nobody connected");
}

/// The check and the connection use the same answer: a second one would be that of the attacker.
#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_connected_to() {
    let (port, connections) = server().await;
    let allowed = "rebind.example";
    let tool = tool(allowed, vec![vec![PRIVATE], vec![PUBLIC]]);
    deliver(&tool, &format!("http://rebind.example:{port}/")).await.unwrap();
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn addresses_in_urls_are_checked_too() {
    let (port, connections) = server().await;
    let none = tool("", vec![vec![PRIVATE]]);
    let refused = deliver(&none, &format!("https://2130706433:{port}/")).await.unwrap_err();
    assert_eq!(refused.class, ErrorClass::Configuration, "{refused:?}");
    assert_eq!(connections.load(Ordering::Relaxed), 0);
    let allowed = tool("127.0.0.0/8", vec![vec![PRIVATE]]);
    assert_eq!(deliver(&allowed, &format!("http://127.0.0.1:{port}/")).await.unwrap().get(), r#"{"status":204}"#);
    let plain = deliver(&allowed, &format!("http://localhost:{port}/")).await.unwrap_err();
    assert!(plain.message.contains("https is needed"), "{plain:?}");
}

#[tokio::test]
async fn a_worker_with_another_key_says_so() {
    let other = WebhookKey::new(&"o".repeat(32)).unwrap();
    let lookup = Rebinding { answers: vec![vec![PRIVATE]], asked: AtomicUsize::new(0) };
    let tool = Tool::webhooks_with(other, Allowed::default(), Arc::new(lookup)).unwrap();
    let refused = deliver(&tool, "https://example.com/").await.unwrap_err();
    assert_eq!(refused.class, ErrorClass::Configuration);
    assert!(refused.message.contains("another REDIAL_WEBHOOK_KEY"), "{refused:?}");
}
