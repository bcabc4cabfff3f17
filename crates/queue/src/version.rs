//! The version of the contract in the headers of messages: see [`redial_proto::contract`].

use async_nats::HeaderMap;
use redial_proto::{CONTRACT, contract::FIRST_CONTRACT, subjects};

/// What messages of this process say; nothing for the first version, so that it costs them no header.
pub(crate) fn said() -> Option<String> {
    (CONTRACT > FIRST_CONTRACT).then(|| CONTRACT.to_string())
}

/// Whether the sender of a message is of a newer version than this process. Anything but a number is ignored, as in other headers.
pub(crate) fn is_newer(headers: Option<&HeaderMap>) -> bool {
    let said = headers.and_then(|headers| headers.get(subjects::CONTRACT));
    said.and_then(|said| said.as_str().parse::<u32>().ok()).is_some_and(|contract| contract > CONTRACT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_larger_number_is_newer() {
        let newer = |said: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(subjects::CONTRACT, said);
            is_newer(Some(&headers))
        };
        assert!(newer(&(CONTRACT + 1).to_string()));
        assert!(!newer(&CONTRACT.to_string()) && !newer("new") && !newer("-1") && !newer(""));
        assert!(!is_newer(None));
    }
}
