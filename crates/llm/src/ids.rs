//! Ids of calls in the form that a provider accepts, unique within one request.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

use crate::profile::Ids;

/// OpenAI accepts 40 characters, Anthropic more.
const MAX_LENGTH: usize = 40;

/// Makes the ids of one request.
pub(crate) struct CallIds {
    form: Ids,
    used: HashSet<String>,
}

impl CallIds {
    pub(crate) fn new(form: Ids) -> Self {
        Self { form, used: HashSet::new() }
    }

    /// Returns the id itself if it is valid and not used yet, else an id derived from it. The result is the same in
    /// every request, so that a provider's cache of the conversation stays valid.
    pub(crate) fn of(&mut self, id: &str) -> String {
        let fits = match self.form {
            Ids::Any => {
                (1..=MAX_LENGTH).contains(&id.len())
                    && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
            }
            Ids::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        };
        if fits && self.used.insert(id.to_owned()) {
            return id.to_owned();
        }
        for salt in 0_u64.. {
            let made = fingerprint(&format!("{salt} {id}"), 9);
            if self.used.insert(made.clone()) {
                return made;
            }
        }
        unreachable!("there are 36^9 ids")
    }
}

/// Hashes a text to `length` ASCII letters and digits; at most 32.
pub(crate) fn fingerprint(text: &str, length: usize) -> String {
    const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let hash = Sha256::digest(text.as_bytes());
    let letter = |byte: &u8| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]);
    hash.iter().take(length).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kept_or_replaced_and_always_unique() {
        let mut any = CallIds::new(Ids::Any);
        assert_eq!(any.of("c12_3"), "c12_3");
        assert_ne!(any.of("c12_3"), "c12_3");
        let mut nine = CallIds::new(Ids::Nine);
        assert_eq!(nine.of("abcdef123"), "abcdef123");
        let ids: HashSet<String> = (0..1000).map(|n| nine.of(&format!("c1_{}", n % 500))).collect();
        assert!(ids.len() == 1000 && ids.iter().all(|id| id.len() == 9));
        assert_eq!(CallIds::new(Ids::Nine).of("c1_1"), CallIds::new(Ids::Nine).of("c1_1"));
    }
}
