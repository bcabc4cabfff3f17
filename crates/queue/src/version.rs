//! The version of the contract in the headers of messages: see [`redial_proto::contract`].

use async_nats::HeaderMap;
use redial_proto::{contract::FIRST_CONTRACT, subjects};

use crate::Queue;

impl Queue {
    /// Returns the version of the messages that this process sends.
    pub fn contract(&self) -> u32 {
        self.inner.contract
    }

    /// Returns what its messages say; nothing for the first version, so that it costs them no header.
    pub(crate) fn said(&self) -> Option<String> {
        (self.contract() > FIRST_CONTRACT).then(|| self.contract().to_string())
    }

    /// True if the sender of a message is of a newer version than this process. Anything but a number is ignored, as in
    /// other headers.
    pub(crate) fn is_newer(&self, headers: Option<&HeaderMap>) -> bool {
        said_by(headers).is_some_and(|contract| contract > self.contract())
    }
}

fn said_by(headers: Option<&HeaderMap>) -> Option<u32> {
    headers?.get(subjects::CONTRACT)?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_is_a_version() {
        let said = |said: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(subjects::CONTRACT, said);
            said_by(Some(&headers))
        };
        assert_eq!((said("2"), said("new"), said("-1"), said("")), (Some(2), None, None, None));
        assert_eq!(said_by(None), None);
    }
}
