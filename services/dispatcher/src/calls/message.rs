//! Messages that submit calls: one, or a batch.

use redial_engine::tools::Tools;
use redial_proto::{ApiError, Code, Submission, SubmitBatch, limits};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::serve::decode;

/// A message of one submission or of many; each is readable or not on its own.
pub(crate) enum Message {
    /// The reply is one result.
    Single(Box<Result<Submission, ApiError>>),
    /// The reply is a list of results.
    Batch(Vec<Result<Submission, ApiError>>),
}

impl Message {
    /// Reads a message. The error is about the message as a whole.
    pub(crate) fn read(payload: &[u8]) -> Result<Self, ApiError> {
        #[derive(Deserialize)]
        struct Probe<'a> {
            #[serde(borrow)]
            calls: Option<&'a RawValue>,
        }
        if decode::<Probe<'_>>(payload)?.calls.is_none() {
            return Ok(Self::Single(Box::new(decode(payload))));
        }
        let batch: SubmitBatch = decode(payload)?;
        if batch.calls.len() > limits::MAX_BATCH {
            let message = format!("calls holds {} submissions; allowed: {}", batch.calls.len(), limits::MAX_BATCH);
            return Err(ApiError::new(Code::TooLarge, message));
        }
        Ok(Self::Batch(batch.calls.iter().map(|call| decode(call.get().as_bytes())).collect()))
    }

    /// Returns true if a submission names a tool that is not among these.
    pub(crate) fn names_unknown(&self, tools: &Tools) -> bool {
        self.submissions().iter().flatten().any(|submission| !tools.contains_key(&submission.tool))
    }

    /// Returns true if a submission has arguments whose check may take long.
    pub(crate) fn is_costly(&self, tools: &Tools) -> bool {
        self.submissions().iter().flatten().any(|submission| is_costly(submission, tools))
    }

    fn submissions(&self) -> &[Result<Submission, ApiError>] {
        match self {
            Self::Single(submission) => std::slice::from_ref(&**submission),
            Self::Batch(submissions) => submissions,
        }
    }

    /// Returns the submissions, and whether they were a batch.
    pub(crate) fn into_submissions(self) -> (Vec<Result<Submission, ApiError>>, bool) {
        match self {
            Self::Single(submission) => (vec![*submission], false),
            Self::Batch(submissions) => (submissions, true),
        }
    }
}

/// Returns true if the check of its arguments may take long.
pub(crate) fn is_costly(submission: &Submission, tools: &Tools) -> bool {
    let bytes = submission.arguments.get().len();
    tools.get(&submission.tool).is_some_and(|tool| !tool.schema.is_cheap(bytes))
}
