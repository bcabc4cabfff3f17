//! What the arguments and results of calls must hold.

use redial_proto::CallId;

use super::{
    FoundCall, Payload, Texts,
    json_search::{self, Condition},
};
use crate::{Store, StoreError};

/// What must be in the arguments and results of calls. Every condition narrows.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    pub arguments: Vec<Condition>,
    pub output: Vec<Condition>,
    /// In either.
    pub text: Option<String>,
}

impl Inside {
    pub fn is_empty(&self) -> bool {
        self.arguments.is_empty() && self.output.is_empty() && self.text.is_none()
    }

    fn texts(&self) -> Texts {
        let needles = |conditions: &[Condition]| conditions.iter().filter_map(Condition::needle).collect();
        Texts {
            arguments: needles(&self.arguments),
            output: needles(&self.output),
            anywhere: self.text.iter().cloned().collect(),
        }
    }

    fn hold(&self, payload: &Payload) -> bool {
        let Payload { arguments, output, .. } = payload;
        let in_output = |condition: &Condition| output.as_ref().is_some_and(|output| condition.holds(output));
        let anywhere = |text: &String| {
            json_search::contains(arguments, text)
                || output.as_ref().is_some_and(|output| json_search::contains(output, text))
        };
        self.arguments.iter().all(|condition| condition.holds(arguments))
            && self.output.iter().all(in_output)
            && self.text.iter().all(anywhere)
    }
}

impl Store {
    /// Returns those of these calls, newest first, that hold all this.
    pub async fn holding(&self, calls: &[FoundCall], inside: &Inside) -> Result<Vec<FoundCall>, StoreError> {
        if inside.is_empty() {
            return Ok(calls.to_vec());
        }
        let ids: Vec<CallId> = calls.iter().map(|found| found.call).collect();
        let mut matching = Vec::new();
        for group in self.may_contain(&ids, &inside.texts()).await? {
            let payloads = self.payloads(&group).await?;
            matching.extend(payloads.iter().filter(|payload| inside.hold(payload)).map(|payload| payload.call));
        }
        // Both are newest first.
        let mut matching = matching.into_iter().peekable();
        Ok(calls.iter().filter(|found| matching.next_if_eq(&found.call).is_some()).copied().collect())
    }
}
