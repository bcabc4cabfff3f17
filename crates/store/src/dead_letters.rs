//! Keeps messages that could not be taken, for an operator.

mod named;

use std::collections::{BTreeSet, HashMap};

use redial_proto::{
    ApiError, Code,
    limits::{self, MAX_ERROR_MESSAGE, shorten},
    subjects::{caller, results_identity},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(crate) use self::named::{calls_named, is_of};
use crate::{
    StoreError,
    columns::{clean, column, int},
    connect::{Store, Transaction},
    on_record::{OnRecord, lock_on_record},
};

/// The source of rejected submissions.
pub(crate) const INTAKE: &str = "intake";
/// The source of rejected reports.
const RESULTS: &str = "results";
/// Of each sender, a tenant or a worker identity, the newest messages are kept: so many, and so many bytes of them. So garbage
/// cannot fill the database. Messages without a known sender count as those of one.
const KEPT: i64 = 10_000;
const KEPT_BYTES: i64 = 256 * 1024 * 1024;
/// Messages beyond these that one statement deletes at most.
const TRIMMED: i64 = 5_000;
/// Errors of one message that are kept; the others are only counted.
const MAX_ERRORS: usize = 100;
/// What is kept of a message that names a call which is not on record.
const GONE: &str = "it names a call that is not on record, so its content was not kept";
/// Calls that a message may name; a message of reports names 256 at most. Whether they are on record is looked up.
const MAX_NAMED: usize = 1_000;
/// What is kept of a message that names more.
const TOO_MANY: &str = "it names too many calls, so its content was not kept";
/// Bytes of payloads in one statement. A larger payload gets its own.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Calls that the messages of one statement name.
const MAX_NAMED_AT_ONCE: usize = 4_000;

/// A message of a stream that was rejected, as a whole or in part: one row, however many of its entries are bad.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    pub rejections: Rejections,
    source: &'static str,
    /// Of a submission.
    tenant: Option<String>,
    /// Of the worker that sent reports.
    identity: Option<String>,
    payload: Vec<u8>,
    /// The calls that reports name; `None` if they are too many.
    calls: Option<Vec<Uuid>>,
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
    /// The error in words.
    pub message: String,
}

impl DeadLetter {
    /// Makes one of a message of the intake stream, unchanged. Its subject says whose it is.
    pub fn of_intake(subject: &str, payload: Vec<u8>, rejections: Rejections) -> Self {
        let tenant = caller(subject).map(|caller| caller.tenant.to_string());
        Self { rejections, source: INTAKE, tenant, identity: None, payload, calls: Some(Vec::new()) }
    }

    /// Makes one of a message of the result stream, unchanged. Its subject says which worker identity sent it.
    pub fn of_results(subject: &str, payload: Vec<u8>, rejections: Rejections) -> Self {
        let identity = results_identity(subject).map(|identity| identity.to_string());
        let calls = Some(calls_named(&payload)).filter(|calls| calls.len() <= MAX_NAMED);
        Self { rejections, source: RESULTS, tenant: None, identity, payload, calls }
    }

    fn named(&self) -> &[Uuid] {
        self.calls.as_deref().unwrap_or_default()
    }

    /// Says why its content is not kept: a call that it names may have been erased.
    fn withheld(&self, on_record: &HashMap<Uuid, OnRecord>) -> Option<&'static str> {
        match &self.calls {
            None => Some(TOO_MANY),
            Some(calls) => calls.iter().any(|call| !on_record.contains_key(call)).then_some(GONE),
        }
    }

    /// Returns the tenant of a submission, or of all the calls on record that reports name.
    fn tenant<'a>(&'a self, on_record: &'a HashMap<Uuid, OnRecord>) -> Option<&'a str> {
        let mut tenants = self.named().iter().filter_map(|call| on_record.get(call)).map(|call| call.tenant.as_str());
        let of_first = || tenants.next().filter(|first| tenants.all(|tenant| tenant == *first));
        self.tenant.as_deref().or_else(of_first)
    }

    /// Returns who sent it; empty if that is not known.
    fn sender(&self) -> &str {
        self.identity.as_deref().or(self.tenant.as_deref()).unwrap_or_default()
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

    /// Counts the errors that were added, kept or not.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns code and words of the first error.
    pub fn first(&self) -> (&str, &str) {
        let first = self.first.first();
        first.map_or((Code::Internal.as_str(), ""), |first| (first.code.as_str(), first.message.as_str()))
    }
}

impl Store {
    /// Keeps as many messages from the front as fit one statement, and removes them from `messages`. Messages that are
    /// left after an error are those that may not be on record. Of a report of a call that is not on record, only the fact is
    /// kept: what was erased must not come back. The oldest messages of the same senders go if there are too many of them.
    pub async fn insert_dead_letters(&self, messages: &mut Vec<DeadLetter>) -> Result<(), StoreError> {
        while !messages.is_empty() {
            let fitting = fitting(messages);
            self.insert(&messages[..fitting]).await?;
            let senders: BTreeSet<(&str, String)> =
                messages.drain(..fitting).map(|kept| (kept.source, kept.sender().to_owned())).collect();
            // They are on record, so this is no reason to insert them again. The next insertion trims as well.
            if let Err(error) = self.trim(&senders).await {
                tracing::warn!(%error, "Failed to delete the oldest dead letters of a sender");
            }
        }
        Ok(())
    }

    async fn insert(&self, messages: &[DeadLetter]) -> Result<(), StoreError> {
        let errors = messages.iter().map(|m| serde_json::to_string(&m.rejections.first));
        let errors = errors.collect::<Result<Vec<_>, _>>().map_err(|error| StoreError::BadData(error.to_string()))?;
        self.run_again(|| async {
            let mut transaction = self.begin().await?;
            write(&mut transaction, messages, &errors).await?;
            transaction.commit().await
        })
        .await
    }

    /// Deletes the oldest messages of senders that have too many.
    async fn trim(&self, senders: &BTreeSet<(&str, String)>) -> Result<(), StoreError> {
        let senders: Vec<&(&str, String)> = senders.iter().collect();
        let deleted = on_connection!(self, |db| {
            let done = sqlx::query_file!(
                "sql/trim_dead_letters.sql",
                &column(&senders, |(source, _)| *source) as &[&str],
                &column(&senders, |(_, sender)| sender.as_str()) as &[&str],
                KEPT,
                KEPT_BYTES,
                TRIMMED,
            )
            .execute(&mut *db)
            .await?;
            Ok(done.rows_affected())
        })?;
        if deleted > 0 {
            tracing::warn!(deleted, ?senders, "Deleted the oldest dead letters of senders that have too many");
        }
        Ok(())
    }
}

async fn write(transaction: &mut Transaction, messages: &[DeadLetter], errors: &[String]) -> Result<(), sqlx::Error> {
    let on_record = lock_on_record(transaction, messages.iter().flat_map(DeadLetter::named).copied()).await?;
    let withheld: Vec<Option<&str>> = column(messages, |message| message.withheld(&on_record));
    let kept: Vec<(&DeadLetter, &String, Option<&str>)> =
        messages.iter().zip(errors).zip(withheld).map(|((message, errors), why)| (message, errors, why)).collect();
    sqlx::query_file!(
        "sql/insert_dead_letters.sql",
        &column(&kept, |(m, ..)| m.source) as &[&str],
        &column(&kept, |(m, ..)| m.rejections.first().0) as &[&str],
        &column(&kept, |(m, _, why)| why.unwrap_or(m.rejections.first().1)) as &[&str],
        &column(&kept, |(m, _, why)| if why.is_some() { &[] } else { m.payload.as_slice() }) as &[&[u8]],
        &column(&kept, |(m, ..)| int(m.rejections.count)),
        &column(&kept, |(_, errors, why)| if why.is_none() { errors.as_str() } else { "[]" }) as &[&str],
        &column(&kept, |(m, ..)| m.tenant(&on_record)) as &[Option<&str>],
        &column(&kept, |(m, ..)| m.identity.as_deref()) as &[Option<&str>],
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}

/// Counts the messages that fit one statement; at least one.
fn fitting(messages: &[DeadLetter]) -> usize {
    let most = limits::fitting(messages.iter().map(|message| message.payload.len()), messages.len(), MAX_BYTES);
    limits::fitting(messages.iter().map(|message| message.named().len()), most, MAX_NAMED_AT_ONCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(bytes: usize) -> DeadLetter {
        DeadLetter::of_intake("redial.intake.acme.alice.submit.calls", vec![0; bytes], Rejections::default())
    }

    #[test]
    fn the_subject_says_who_sent_it_and_the_message_does_not() {
        let lie = br#"{"tenant":"globex","worker":"other-1","#.to_vec();
        let intake = |subject: &str| {
            let letter = DeadLetter::of_intake(subject, lie.clone(), Rejections::default());
            (letter.sender().to_owned(), letter.tenant, letter.identity)
        };
        assert_eq!(intake("redial.intake.acme.alice.submit.calls"), ("acme".to_owned(), Some("acme".to_owned()), None));
        let odd = intake("redial.intake.acme.alice.submit.more.calls");
        assert_eq!(odd, ("acme".to_owned(), Some("acme".to_owned()), None), "what it is for is not known");
        assert_eq!(intake("redial.intake.calls"), (String::new(), None, None));
        let report = DeadLetter::of_results("redial.results.tools", lie.clone(), Rejections::default());
        assert_eq!((report.sender(), &report.tenant, report.identity.as_deref()), ("tools", &None, Some("tools")));
        let unknown = DeadLetter::of_results("redial.results.a.b", lie, Rejections::default());
        assert_eq!((unknown.sender(), unknown.identity.as_deref()), ("", None));
    }

    #[test]
    fn statements_are_bounded_by_bytes() {
        assert_eq!(fitting(&vec![letter(1); 1_000]), 1_000);
        assert_eq!(fitting(&vec![letter(1_000_000); 1_000]), 4);
        assert_eq!(fitting(&[letter(64 * 1024 * 1024), letter(1)]), 1, "a huge message goes alone");
    }

    fn reports(calls: usize) -> DeadLetter {
        let named = (0..calls).map(|_| format!(r#"{{"call":"{}"}}"#, Uuid::now_v7())).collect::<Vec<_>>().concat();
        DeadLetter::of_results("redial.results.tools", named.into_bytes(), Rejections::default())
    }

    #[test]
    fn statements_are_bounded_by_the_calls_that_messages_name() {
        assert_eq!(fitting(&vec![reports(1_000); 10]), 4);
        let (most, more) = (reports(MAX_NAMED), reports(MAX_NAMED + 1));
        assert_eq!((most.named().len(), most.withheld(&HashMap::new())), (MAX_NAMED, Some(GONE)));
        assert_eq!((more.named().len(), more.withheld(&HashMap::new())), (0, Some(TOO_MANY)));
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
