//! Ids of calls in the form that a provider takes, unique in one request.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

use crate::Ids;

/// OpenAI takes 40 characters, Anthropic more.
const LONGEST: usize = 40;

/// Hands out ids.
pub(crate) struct Minted {
    form: Ids,
    used: HashSet<String>,
}

impl Minted {
    pub(crate) fn new(form: Ids) -> Self {
        Self { form, used: HashSet::new() }
    }

    /// The id itself where it fits and is new, else one that is made from it: the same in every request, so that a
    /// provider's cache of the conversation stays good.
    pub(crate) fn of(&mut self, id: &str) -> String {
        let fits = match self.form {
            Ids::Any => {
                (1..=LONGEST).contains(&id.len())
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

/// So many ASCII letters and digits that stand for a text; at most 12.
pub(crate) fn fingerprint(text: &str, length: usize) -> String {
    const SIGNS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let hash = Sha256::digest(text.as_bytes());
    let sign = |byte: &u8| char::from(SIGNS[usize::from(*byte) % SIGNS.len()]);
    hash.iter().take(length).map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kept_or_made_anew_and_always_unique() {
        let mut any = Minted::new(Ids::Any);
        assert_eq!(any.of("c12_3"), "c12_3");
        let again = any.of("c12_3");
        assert_ne!(again, "c12_3");
        for odd in ["", "a b", "订票", &"x".repeat(41)] {
            let made = any.of(odd);
            assert!(made.len() == 9 && made.bytes().all(|b| b.is_ascii_alphanumeric()), "{made}");
        }
        let mut nine = Minted::new(Ids::Nine);
        assert_eq!(nine.of("abcdef123"), "abcdef123");
        let ids: HashSet<String> = (0..1000).map(|n| nine.of(&format!("c1_{}", n % 500))).collect();
        assert!(ids.len() == 1000 && ids.iter().all(|id| id.len() == 9));
        assert_eq!(Minted::new(Ids::Nine).of("c1_1"), Minted::new(Ids::Nine).of("c1_1"));
    }
}
