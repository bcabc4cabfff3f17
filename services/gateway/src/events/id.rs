//! Where a stream goes on: the id of the last event that the client has.

use axum::http::HeaderMap;
use redial_proto::limits::shorten;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{extract, problem::Problem, streams::sse::END};

/// Where to begin.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct After {
    /// The id of the last event that you have. The header `Last-Event-ID`, which browsers send when they connect again, comes
    /// first. Default: from the beginning.
    #[serde(default)]
    after: Option<String>,
}

impl After {
    pub(super) fn id<'a>(&'a self, headers: &'a HeaderMap) -> Option<&'a str> {
        extract::text(headers, "last-event-id").or(self.after.as_deref()).map(str::trim).filter(|id| !id.is_empty())
    }

    /// Returns the event after which the stream goes on, if any, as `read` reads its id.
    pub(super) fn position<E>(
        &self,
        headers: &HeaderMap,
        read: impl Fn(&str) -> Option<E>,
        allowed: &str,
    ) -> Result<Option<Position<E>>, Problem> {
        let position = |id: &str| match id {
            END => Ok(Position::End),
            id => read(id).map(Position::Event).ok_or_else(|| wrong(id, allowed)),
        };
        self.id(headers).map(position).transpose()
    }
}

pub(super) enum Position<E> {
    Event(E),
    End,
}

pub(super) fn wrong(id: &str, allowed: &str) -> Problem {
    let id = shorten(id, 100);
    Problem::invalid(format!(
        "the id of the last event is {id:?}; allowed: {allowed}, or no id for all from the beginning"
    ))
}

/// Reads a number as ids have it: digits, without leading zeros.
pub(super) fn number(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
