//! Identifiers. All are UUIDs on the wire except a worker's id, which is readable.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::WorkerIdentity;

/// Identifies a call. UUID version 7, so ids sort by the time of submission: the audit and retention use that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CallId(pub Uuid);

impl CallId {
    /// A new id, greater than every id made before by this process.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }
}

/// Identifies a task. UUID version 7, like a call's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TaskId(pub Uuid);

impl TaskId {
    /// A new id, greater than every id made before by this process.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }
}

/// Makes a claim idempotent: the same claim sent twice is granted once and answered twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ClaimId(pub Uuid);

impl ClaimId {
    /// A new random id.
    pub fn generate() -> Self {
        Self(Uuid::new_v4())
    }
}

/// Identifies a redrive within its tenant. Whoever asks for it makes the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RedriveId(pub Uuid);

impl RedriveId {
    /// A new random id.
    pub fn generate() -> Self {
        Self(Uuid::new_v4())
    }
}

macro_rules! uuid_text {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}
uuid_text!(CallId);
uuid_text!(TaskId);
uuid_text!(ClaimId);
uuid_text!(RedriveId);

/// Identifies one run of a worker process: a readable name and a random part, so that a restarted worker has a new id.
/// It is one token of a NATS subject: ASCII letters, digits, `-` and `_`, at most 64 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct WorkerId(String);

impl WorkerId {
    /// A fresh id of a worker with this identity: the identity, `-`, and twelve hexadecimal digits.
    pub fn generate(identity: &WorkerIdentity) -> Self {
        let random = Uuid::new_v4().simple().to_string();
        Self(format!("{identity}-{}", &random[..12]))
    }

    /// The identity that it belongs to: what precedes the last `-`, and all of it if there is none.
    pub fn identity(&self) -> WorkerIdentity {
        WorkerIdentity::of_name(self.0.rsplit_once('-').map_or(&self.0, |(identity, _)| identity))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WorkerId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if (1..=64).contains(&text.len()) && text.chars().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("worker id {text:?}: 1 to 64 ASCII letters, digits, '-' and '_' are allowed"))
        }
    }
}

impl<'de> Deserialize<'de> for WorkerId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_ids_are_subject_tokens() {
        let identity = WorkerIdentity::of_name("hôte.example com");
        let id = WorkerId::generate(&identity);
        assert_eq!(id.identity(), identity);
        assert_eq!(id.as_str().parse::<WorkerId>().as_ref(), Ok(&id));
        assert!("a.b".parse::<WorkerId>().is_err());
        assert!("".parse::<WorkerId>().is_err());
    }
}
