//! The airline behind `book_flight`, which records every request.

use std::time::Duration;

use serde_json::Value;

use crate::ledger::Ledger;

/// How long the airline takes to answer.
const LATENCY: Duration = Duration::from_millis(100);

/// The airline's API. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Airline {
    ledger: Ledger,
}

impl Airline {
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self { ledger }
    }

    /// Books a flight and returns the booking number. Requests with the same key are the same booking.
    pub(crate) async fn book(&self, key: &str, flight: Value) -> std::io::Result<String> {
        tokio::time::sleep(LATENCY).await;
        self.ledger.append(key, flight).await?;
        Ok(booking_number(key))
    }
}

/// Six letters, derived from the key with FNV-1a.
fn booking_number(key: &str) -> String {
    let hash = key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (0..6).map(|digit| char::from(b'A' + u8::try_from(hash / 26_u64.pow(digit) % 26).unwrap_or(0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_is_one_booking_and_every_request_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("airline.jsonl");
        let airline = Airline::new(Ledger::new(file.clone(), "worker-a"));
        let first = airline.book("key 1", Value::Null).await.unwrap();
        assert_eq!(airline.book("key 1", Value::Null).await.unwrap(), first);
        assert_ne!(airline.book("key 2", Value::Null).await.unwrap(), first);
        assert!(first.len() == 6 && first.chars().all(|letter| letter.is_ascii_uppercase()), "{first}");
        let lines = std::fs::read_to_string(file).unwrap();
        assert_eq!(lines.lines().filter(|line| line.contains("key 1") && line.contains("worker-a")).count(), 2);
    }
}
