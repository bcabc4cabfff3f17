//! The outside world of `place_order` and `send_receipt`: a warehouse that writes down what it was asked for and what
//! it did, and whose door can be closed. Behind a closed door orders wait, so a worker can be killed with one in hand.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};

use crate::ledger::Ledger;

/// Pause between two looks at the door.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The warehouse, as one worker sees it. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Warehouse {
    ledger: Ledger,
    /// The door is closed as long as this file exists.
    closed: Arc<Path>,
    client: Arc<str>,
}

impl Warehouse {
    /// Keeps its book in the folder: `warehouse.jsonl`; its door is `warehouse.closed`.
    pub(crate) fn new(folder: &Path, client: &str) -> Self {
        let closed: PathBuf = folder.join("warehouse.closed");
        Self { ledger: Ledger::new(folder.join("warehouse.jsonl")), closed: closed.into(), client: client.into() }
    }

    /// Does what takes an open door.
    pub(crate) async fn deliver(&self, key: &str, what: Value) -> std::io::Result<()> {
        self.note("asked", key, &what).await?;
        while self.closed.exists() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.note("done", key, &what).await
    }

    /// Does what can be done at any time.
    pub(crate) async fn write_to(&self, key: &str, what: Value) -> std::io::Result<()> {
        self.note("asked", key, &what).await?;
        self.note("done", key, &what).await
    }

    async fn note(&self, event: &str, key: &str, what: &Value) -> std::io::Result<()> {
        self.ledger.note(json!({"event": event, "key": key, "client": &*self.client, "what": what})).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn behind_a_closed_door_orders_wait() {
        let folder = tempfile::tempdir().unwrap();
        let door = folder.path().join("warehouse.closed");
        std::fs::write(&door, "").unwrap();
        let book = folder.path().join("warehouse.jsonl");
        let warehouse = Warehouse::new(folder.path(), "worker-a");
        warehouse.write_to("receipt", Value::Null).await.unwrap();
        assert!(std::fs::read_to_string(&book).unwrap().contains(r#""event":"done","key":"receipt""#));

        let order = tokio::spawn(async move { warehouse.deliver("order", Value::Null).await });
        while !std::fs::read_to_string(&book).unwrap().contains(r#""event":"asked","key":"order""#) {
            tokio::task::yield_now().await;
        }
        assert!(!std::fs::read_to_string(&book).unwrap().contains(r#""event":"done","key":"order""#));
        std::fs::remove_file(door).unwrap();
        order.await.unwrap().unwrap();
        assert!(std::fs::read_to_string(&book).unwrap().contains(r#""event":"done","key":"order""#));
    }
}
