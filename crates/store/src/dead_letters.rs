//! Keeps messages that could not be taken, for an operator.

use redial_proto::Code;

use crate::{StoreError, columns::clean, connect::Store};

/// A message that could not be read as a submission or a report.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// `intake` or `results`.
    pub source: &'static str,
    /// Why.
    pub code: Code,
    /// The same in words.
    pub message: String,
    /// The message, unchanged.
    pub payload: Vec<u8>,
}

impl Store {
    /// Keeps messages.
    pub async fn insert_dead_letters(&self, messages: &[DeadLetter]) -> Result<(), StoreError> {
        let sources: Vec<&str> = messages.iter().map(|m| m.source).collect();
        let codes: Vec<&str> = messages.iter().map(|m| m.code.as_str()).collect();
        let texts: Vec<String> = messages.iter().map(|m| clean(&m.message)).collect();
        let payloads: Vec<&[u8]> = messages.iter().map(|m| m.payload.as_slice()).collect();
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let done = sqlx::query_file!(
                "sql/insert_dead_letters.sql",
                &sources as &[&str],
                &codes as &[&str],
                &texts,
                &payloads as &[&[u8]],
            )
            .execute(&mut *db)
            .await?;
            Ok(db.done(done))
        })
        .await
        .map(|_| ())
    }
}
