//! Tokens: `Authorization: Bearer rdl_<id>_<secret>`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, header};
use redial_proto::{Code, UserRole};
use redial_store::TokenRecord;
use sha2::{Digest, Sha256};

use crate::{gateway::Gateway, identity::Identity, limits::Limits, problem::Problem};

/// How long a token that was read counts as it was: a revoked one stops to work after this.
const FRESH: Duration = Duration::from_secs(10);
/// Tokens that are remembered; unknown ones too, so that guessing costs no query each.
const REMEMBERED: usize = 10_000;

/// The tokens that requests had lately.
#[derive(Default)]
pub(crate) struct Tokens {
    known: Mutex<HashMap<String, Known>>,
    /// Of requests without a token.
    open: Mutex<Option<Arc<Limits>>>,
}

#[derive(Clone)]
struct Known {
    token: Option<Arc<TokenRecord>>,
    limits: Arc<Limits>,
    read_at: Instant,
    used: bool,
}

impl Gateway {
    /// Who sent a request, by its headers.
    pub(crate) async fn identify(&self, headers: &HeaderMap) -> Result<Identity, Problem> {
        let Some(value) = headers.get(header::AUTHORIZATION) else { return self.without_token() };
        let token = value.to_str().ok().and_then(|value| {
            let (scheme, token) = value.trim().split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        let (id, secret) = token.and_then(parts).ok_or_else(unauthenticated)?;
        let Known { token, limits, .. } = self.token(id).await?;
        let token = token.ok_or_else(unauthenticated)?;
        let is_right = same(&Sha256::digest(secret.as_bytes()), &token.secret_sha256);
        let now = chrono::Utc::now();
        let is_valid = token.revoked_at.is_none() && token.expires_at.is_none_or(|end| now < end);
        if !is_right || !is_valid {
            return Err(unauthenticated());
        }
        self.tokens.mark_used(id);
        Ok(Identity { tenant: token.tenant.clone(), user: token.user.clone(), roles: token.roles.clone(), limits })
    }

    fn without_token(&self) -> Result<Identity, Problem> {
        let Some((tenant, user)) = &self.config.without_token else {
            return Err(unauthenticated());
        };
        let limits = self
            .tokens
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| self.limits())
            .clone();
        let roles = UserRole::ALL.iter().copied().collect();
        Ok(Identity { tenant: tenant.clone(), user: user.clone(), roles, limits })
    }

    async fn token(&self, id: &str) -> Result<Known, Problem> {
        let found = self.tokens.known().get(id).cloned();
        if let Some(known) = found.as_ref().filter(|known| known.read_at.elapsed() < FRESH) {
            return Ok(known.clone());
        }
        let read_at = Instant::now();
        let token = match self.store.token(id).await {
            Ok(token) => token.map(Arc::new),
            // During an outage the last that was read counts.
            Err(error) if error.is_transient() && found.is_some() => return found.ok_or_else(unauthenticated),
            Err(error) => return Err(error.into()),
        };
        let limits = found.as_ref().map_or_else(|| self.limits(), |known| known.limits.clone());
        let used = found.is_some_and(|known| known.used);
        let known = Known { token, limits, read_at, used };
        self.tokens.remember(id, known.clone());
        Ok(known)
    }

    fn limits(&self) -> Arc<Limits> {
        Arc::new(Limits::new(self.config.rate, self.config.streams))
    }
}

impl Tokens {
    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, id: &str, known: Known) {
        let mut all = self.known();
        if all.len() >= REMEMBERED {
            all.retain(|_, known| known.token.is_some() && known.read_at.elapsed() < FRESH);
        }
        if all.len() < REMEMBERED {
            all.insert(id.to_owned(), known);
        }
    }

    fn mark_used(&self, id: &str) {
        if let Some(known) = self.known().get_mut(id) {
            known.used = true;
        }
    }

    /// The tokens that were used since the last time.
    pub(crate) fn take_used(&self) -> Vec<String> {
        let mut all = self.known();
        let used = all.iter_mut().filter(|(_, known)| std::mem::take(&mut known.used));
        used.map(|(id, _)| id.clone()).collect()
    }
}

/// Id and secret of a token.
fn parts(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.strip_prefix("rdl_")?.split_once('_')?;
    let fits = |text: &str| (1..=100).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (fits(id) && fits(secret)).then_some((id, secret))
}

/// Compares in the same time, whatever differs.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |different, (one, other)| different | (one ^ other)) == 0
}

/// The same for everything that is wrong with a token, so that nobody learns which ids exist.
fn unauthenticated() -> Problem {
    let message = "the token is missing, unknown, expired or revoked; allowed: Authorization: Bearer rdl_<id>_<secret>, \
                   from `redial token create`";
    Problem::new(Code::Unauthenticated, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_taken_apart() {
        assert_eq!(parts("rdl_abc_def"), Some(("abc", "def")));
        for wrong in ["", "rdl_", "rdl_a", "rdl_a_", "rdl__b", "rdl_a_b_c", "rdl_a_b c", "xyz_a_b"] {
            assert_eq!(parts(wrong), None, "{wrong:?}");
        }
        assert!(same(b"ab", b"ab") && !same(b"ab", b"ac") && !same(b"ab", b"abc"));
    }
}
