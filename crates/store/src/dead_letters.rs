//! Keeps messages that could not be taken, for an operator.

mod named;

use redial_proto::{
    ApiError, Code,
    limits::{MAX_ERROR_MESSAGE, shorten},
};
use serde::{Deserialize, Serialize};

use uuid::Uuid;

pub(crate) use self::named::{calls_named, is_of, tenant_of};
use crate::{
    StoreError,
    columns::{clean, column, int},
    connect::Store,
};

/// The source of rejected submissions; the other one is that of reports.
pub(crate) const INTAKE: &str = "intake";
/// Errors of one message that are kept; the others are only counted.
const MAX_ERRORS: usize = 100;
/// What is kept of a message that names a call which is not on record.
const GONE: &str = "it names a call that is not on record, so its content was not kept";
/// Bytes of payloads in one statement. A larger payload gets its own.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A message of a stream that was rejected, as a whole or in part: one row, however many of its entries are bad.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// `intake` or `results`.
    pub source: &'static str,
    /// Why.
    pub rejections: Rejections,
    /// The message, unchanged.
    pub payload: Vec<u8>,
}

/// What is wrong with a message. Bounded: a message of 1 MB can hold half a million bad entries.
#[derive(Clone, Debug, Default)]
pub struct Rejections {
    first: Vec<Rejection>,
    count: u32,
}

/// What is wrong with one entry of a message, or with the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// Position of the entry in its batch, from 0; `None` if the error is about the whole message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// A code of `docs/errors`.
    pub code: String,
    /// The same in words.
    pub message: String,
}

impl DeadLetter {
    /// The tenant of a submission, as far as it can be read.
    fn tenant(&self) -> Option<String> {
        if self.source == INTAKE { tenant_of(&self.payload).map(|tenant| clean(&tenant)) } else { None }
    }

    /// The calls that reports name.
    fn calls(&self) -> Vec<Uuid> {
        if self.source == INTAKE { Vec::new() } else { calls_named(&self.payload) }
    }
}

impl Rejections {
    /// Adds an error; the first hundred are kept, the others counted.
    pub fn add(&mut self, position: Option<usize>, error: &ApiError) {
        self.count = self.count.saturating_add(1);
        if self.first.len() < MAX_ERRORS {
            self.first.push(Rejection {
                position: position.map(|position| u32::try_from(position).unwrap_or(u32::MAX)),
                code: error.code.as_str().to_owned(),
                message: shorten(&clean(&error.message), MAX_ERROR_MESSAGE),
            });
        }
    }

    /// Errors that were added, kept or not.
    pub const fn count(&self) -> u32 {
        self.count
    }

    fn first(&self) -> (&str, &str) {
        let first = self.first.first();
        first.map_or((Code::Internal.as_str(), ""), |first| (first.code.as_str(), first.message.as_str()))
    }
}

impl Store {
    /// Keeps as many messages from the front as fit one statement, and removes them from `messages`. Messages that are
    /// left after an error are those that may not be on record. Of a report of a call that is not on record, only the fact is
    /// kept: what was erased must not come back.
    pub async fn insert_dead_letters(&self, messages: &mut Vec<DeadLetter>) -> Result<(), StoreError> {
        while !messages.is_empty() {
            let fitting = fitting(messages);
            self.insert(&messages[..fitting]).await?;
            messages.drain(..fitting);
        }
        Ok(())
    }

    async fn insert(&self, messages: &[DeadLetter]) -> Result<(), StoreError> {
        let errors = messages.iter().map(|m| serde_json::to_string(&m.rejections.first));
        let errors = errors.collect::<Result<Vec<_>, _>>().map_err(|error| StoreError::BadData(error.to_string()))?;
        let tenants = column(messages, DeadLetter::tenant);
        let named: Vec<(i32, Uuid)> =
            (1..).zip(messages).flat_map(|(n, m)| m.calls().into_iter().map(move |c| (n, c))).collect();
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let done = sqlx::query_file!(
                "sql/insert_dead_letters.sql",
                &column(messages, |m| m.source) as &[&str],
                &column(messages, |m| m.rejections.first().0) as &[&str],
                &column(messages, |m| m.rejections.first().1) as &[&str],
                &column(messages, |m| m.payload.as_slice()) as &[&[u8]],
                &column(messages, |m| int(m.rejections.count)),
                &errors,
                &tenants as &[Option<String>],
                &column(&named, |(position, _)| *position),
                &column(&named, |(_, call)| *call),
                GONE,
            )
            .execute(&mut *db)
            .await?;
            Ok(db.done(done))
        })
        .await
        .map(|_| ())
    }
}

/// How many messages fit one statement; at least one.
fn fitting(messages: &[DeadLetter]) -> usize {
    let mut bytes = 0_usize;
    let fits = |message: &&DeadLetter| {
        bytes = bytes.saturating_add(message.payload.len());
        bytes <= MAX_BYTES
    };
    messages.iter().take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(bytes: usize) -> DeadLetter {
        DeadLetter { source: "intake", rejections: Rejections::default(), payload: vec![0; bytes] }
    }

    #[test]
    fn statements_are_bounded_by_bytes() {
        assert_eq!(fitting(&vec![letter(1); 1_000]), 1_000);
        assert_eq!(fitting(&vec![letter(1_000_000); 1_000]), 4);
        assert_eq!(fitting(&[letter(64 * 1024 * 1024), letter(1)]), 1, "a huge message goes alone");
    }

    #[test]
    fn the_first_errors_are_kept_and_all_are_counted() {
        let mut rejections = Rejections::default();
        for position in 0..1_000 {
            rejections.add(Some(position), &ApiError::new(Code::InvalidMessage, "\0".repeat(10_000)));
        }
        assert_eq!((rejections.count(), rejections.first.len()), (1_000, 100));
        assert_eq!(rejections.first[99].position, Some(99));
        assert!(rejections.first.iter().all(|error| error.message.len() <= MAX_ERROR_MESSAGE));
        assert_eq!(rejections.first().0, "invalid_message");
    }
}
