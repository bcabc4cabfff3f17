//! Messages of the job stream: a job, or several in a pack.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CallId;

/// A message of the job stream: "this call wants an attempt". Only a hint; a claim decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// The call.
    pub call: CallId,
    /// The number that the attempt will have if the claim is granted; from 1.
    pub attempt: u32,
    /// The tool's name: a worker returns jobs of tools that it does not have.
    pub tool: String,
    /// Size of the arguments in bytes: a worker claims only as many jobs as fit one reply.
    #[serde(default)]
    pub bytes: u32,
}

/// A message of the job stream with several jobs of one tool, published where nothing waits for a single one. It is divisible: a worker
/// claims those that it has free slots for, and gives the others back with its claim ([`crate::ClaimRequest::returned`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pack {
    /// The tool's name.
    pub tool: String,
    /// At most 64 jobs.
    pub jobs: Vec<PackedJob>,
}

/// One job of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PackedJob {
    /// As in [`Job`].
    pub call: CallId,
    /// As in [`Job`].
    pub attempt: u32,
    /// As in [`Job`].
    #[serde(default)]
    pub bytes: u32,
}

/// What a message of the job stream may be.
#[derive(Deserialize)]
#[serde(untagged)]
enum JobMessage {
    Pack(Pack),
    Job(Job),
}

impl Pack {
    /// The jobs of a message of the job stream: of a pack, or one alone.
    pub fn read(payload: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(match serde_json::from_slice(payload)? {
            JobMessage::Pack(pack) => pack,
            JobMessage::Job(Job { call, attempt, tool, bytes }) => {
                Self { tool, jobs: vec![PackedJob { call, attempt, bytes }] }
            }
        })
    }
}

impl PackedJob {
    /// The job by itself.
    pub fn of_tool(self, tool: &str) -> Job {
        Job { call: self.call, attempt: self.attempt, tool: tool.to_owned(), bytes: self.bytes }
    }
}

/// Jobs of a pack that a worker has no free slots for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReturnedPack {
    /// The consumer that brought them.
    pub consumer: String,
    /// The jobs.
    pub pack: Pack,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_alone_is_a_pack_of_one() {
        let call = CallId::generate();
        let one = PackedJob { call, attempt: 2, bytes: 7 };
        let alone = serde_json::to_vec(&one.of_tool("t")).unwrap();
        let pack = Pack { tool: "t".to_owned(), jobs: vec![one] };
        assert_eq!(Pack::read(&alone).unwrap(), pack);
        assert_eq!(Pack::read(&serde_json::to_vec(&pack).unwrap()).unwrap(), pack);
        assert!(Pack::read(br#""no job""#).is_err() && Pack::read(br#"{"call":1}"#).is_err());
    }
}
