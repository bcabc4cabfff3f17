//! The outside world of `book_flight`: an airline that takes bookings, and writes down every request.

use std::{path::PathBuf, sync::Arc, time::Duration};

use serde_json::{Value, json};

use crate::ledger::Ledger;

/// How long the airline takes for an answer.
const ANSWER: Duration = Duration::from_millis(100);

/// The airline, as one worker sees it. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Airline {
    ledger: Ledger,
    client: Arc<str>,
}

impl Airline {
    pub(crate) fn new(file: PathBuf, client: &str) -> Self {
        Self { ledger: Ledger::new(file), client: client.into() }
    }

    /// Books, and returns the number of the booking. The same key is the same booking, however often it is sent.
    pub(crate) async fn book(&self, key: &str, flight: Value) -> std::io::Result<String> {
        tokio::time::sleep(ANSWER).await;
        self.ledger.note(json!({"key": key, "client": &*self.client, "flight": flight})).await?;
        Ok(number(key))
    }
}

/// Six letters made of the key (FNV-1a).
fn number(key: &str) -> String {
    let hash = key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (0..6).map(|place| char::from(b'A' + u8::try_from(hash / 26_u64.pow(place) % 26).unwrap_or(0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_is_a_booking_and_every_request_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("airline.jsonl");
        let airline = Airline::new(file.clone(), "worker-a");
        let first = airline.book("key 1", Value::Null).await.unwrap();
        assert_eq!(airline.book("key 1", Value::Null).await.unwrap(), first);
        assert_ne!(airline.book("key 2", Value::Null).await.unwrap(), first);
        assert!(first.len() == 6 && first.chars().all(|letter| letter.is_ascii_uppercase()), "{first}");
        let lines = std::fs::read_to_string(file).unwrap();
        assert_eq!(lines.lines().filter(|line| line.contains("key 1") && line.contains("worker-a")).count(), 2);
    }
}
