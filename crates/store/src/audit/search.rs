//! Arguments and results of calls: which of them may contain a text, how large they are, and what they are. Sizes come
//! first, so that what is read at once stays bounded, whatever a call holds.

use std::collections::HashMap;

use redial_proto::CallId;
use uuid::Uuid;

use super::history::uuids;
use crate::{Store, StoreError};

/// Bytes of payloads that are read at once. A single call may have more: 16 MiB of arguments, and as much of a result.
const AT_ONCE: i64 = 8 * 1024 * 1024;
/// Calls whose payloads are read at once.
const CALLS_AT_ONCE: usize = 500;

/// Texts that a call must contain, as far as its JSON can be compared without parsing it.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// In its arguments, each of them.
    pub arguments: Vec<String>,
    /// In its result, each of them.
    pub output: Vec<String>,
    /// In either, each of them.
    pub anywhere: Vec<String>,
}

/// What a call was asked and what it answered.
#[derive(Clone, Debug)]
pub struct Payload {
    pub call: CallId,
    /// As the tool gets them: JSON.
    pub arguments: String,
    /// The result of a call that succeeded: JSON.
    pub output: Option<String>,
}

struct Sized {
    call: Uuid,
    bytes: i64,
}

struct RawPayload {
    call: Uuid,
    arguments: String,
    output: Option<String>,
}

impl Store {
    /// Returns those of these calls that may contain the texts, newest first, in groups that [`Store::payloads`] may
    /// read at once. JSON can write a text with escapes, so the caller must look itself.
    pub async fn may_contain(&self, calls: &[CallId], texts: &Texts) -> Result<Vec<Vec<CallId>>, StoreError> {
        let ids = uuids(calls);
        let Texts { arguments, output, anywhere } = texts;
        let rows = on_connection!(self, |db| {
            sqlx::query_file_as!(Sized, "sql/search.sql", &ids, arguments, output, anywhere).fetch_all(db).await
        })?;
        Ok(groups(&rows))
    }

    /// Returns arguments and results of calls, newest first.
    pub async fn payloads(&self, calls: &[CallId]) -> Result<Vec<Payload>, StoreError> {
        let ids = uuids(calls);
        let rows =
            on_connection!(self, |db| sqlx::query_file_as!(RawPayload, "sql/payloads.sql", &ids).fetch_all(db).await)?;
        let payload = |RawPayload { call, arguments, output }| Payload { call: CallId(call), arguments, output };
        Ok(rows.into_iter().map(payload).collect())
    }

    /// Estimates the bytes of the record of a call; 0 if it is not on record.
    pub async fn record_bytes(&self, call: CallId) -> Result<usize, StoreError> {
        let sizes = self.record_sizes(&[call]).await?;
        Ok(sizes.iter().map(|sized| usize::try_from(sized.bytes).unwrap_or(0)).sum())
    }

    /// Returns these calls, newest first, in groups that [`Store::records_of`] may read at once.
    pub async fn record_groups(&self, calls: &[CallId]) -> Result<Vec<Vec<CallId>>, StoreError> {
        Ok(groups(&self.record_sizes(calls).await?))
    }

    /// Groups all these calls in their order, also those that are not on record.
    pub async fn groups_in_order(&self, calls: &[CallId]) -> Result<Vec<Vec<CallId>>, StoreError> {
        // However large it is; somebody waits for the notice of its end.
        if let [call] = calls {
            return Ok(vec![vec![*call]]);
        }
        let on_record = self.record_sizes(calls).await?;
        let bytes: HashMap<Uuid, i64> = on_record.into_iter().map(|one| (one.call, one.bytes)).collect();
        let sized = |call: &CallId| Sized { call: call.0, bytes: bytes.get(&call.0).copied().unwrap_or_default() };
        Ok(groups(&calls.iter().map(sized).collect::<Vec<_>>()))
    }

    /// Returns the sizes, newest first.
    async fn record_sizes(&self, calls: &[CallId]) -> Result<Vec<Sized>, StoreError> {
        let ids = uuids(calls);
        on_connection!(self, |db| sqlx::query_file_as!(Sized, "sql/record_sizes.sql", &ids).fetch_all(db).await)
    }
}

fn groups(calls: &[Sized]) -> Vec<Vec<CallId>> {
    let (mut groups, mut bytes) = (Vec::<Vec<CallId>>::new(), 0);
    for call in calls {
        bytes += call.bytes;
        let has_room = |group: &&mut Vec<CallId>| bytes <= AT_ONCE && group.len() < CALLS_AT_ONCE;
        if let Some(group) = groups.last_mut().filter(has_room) {
            group.push(CallId(call.call));
        } else {
            groups.push(vec![CallId(call.call)]);
            bytes = call.bytes;
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_bounded_by_bytes_and_by_calls() {
        let sizes = |bytes: &[i64]| -> Vec<usize> {
            let calls: Vec<_> = bytes.iter().map(|bytes| Sized { call: Uuid::nil(), bytes: *bytes }).collect();
            groups(&calls).iter().map(Vec::len).collect()
        };
        assert_eq!(sizes(&[]), [0_usize; 0]);
        assert_eq!(sizes(&[AT_ONCE / 2, AT_ONCE / 2, 1, AT_ONCE * 4, 1, 1]), [2, 1, 1, 2]);
        assert_eq!(sizes(&[1; CALLS_AT_ONCE + 1]), [CALLS_AT_ONCE, 1]);
    }
}
