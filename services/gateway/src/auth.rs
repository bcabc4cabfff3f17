//! Tokens: `Authorization: Bearer rdl_<id>_<secret>`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::http::HeaderValue;
use redial_proto::{ApiToken, Tenant, TokenId, User, UserRole};
use redial_store::{Store, TokenRecord};
use tokio::sync::Semaphore;

use crate::{
    config::GatewayConfig,
    identity::Identity,
    limits::{Limits, RequestLimits},
    problem::Problem,
    rights::Rights,
};

/// How long a token that was read counts as it was: a revoked one stops working after this.
const FRESH: Duration = Duration::from_secs(10);
/// Tokens that are remembered, and as many ids that nobody has, so that guessing costs no query each.
const REMEMBERED: usize = 10_000;
/// Tokens that are not remembered are read so many at a time.
const LOOKUPS: usize = 2;

/// The tokens that requests had lately.
pub(crate) struct Tokens {
    known: Mutex<HashMap<TokenId, Known>>,
    /// Ids that no token on record has, and when they were looked up. Apart from the others, which they must not displace.
    unknown: Mutex<HashMap<TokenId, Instant>>,
    /// Who asks without a token, and the limits of all such requests together.
    open: Option<(Tenant, User, Arc<Limits>)>,
    /// Of tokens that are not remembered.
    lookups: Semaphore,
    /// See [`GatewayConfig`].
    rate: u32,
    streams: u32,
}

#[derive(Clone)]
struct Known {
    record: Arc<TokenRecord>,
    limits: Arc<Limits>,
    read_at: Instant,
    used: bool,
}

impl Tokens {
    pub(crate) fn new(config: &GatewayConfig) -> Self {
        let (rate, streams) = (config.rate, config.streams);
        let open = config.without_token.clone();
        let open = open.map(|(tenant, user)| (tenant, user, Arc::new(Limits::new(rate, streams))));
        Self {
            known: Mutex::default(),
            unknown: Mutex::default(),
            open,
            lookups: Semaphore::new(LOOKUPS),
            rate,
            streams,
        }
    }

    /// Who sent a request, by its header `Authorization`, in the roles that the access file gives now.
    pub(crate) async fn identify(
        &self,
        store: &Store,
        rights: &Rights,
        authorization: Option<&HeaderValue>,
    ) -> Result<Identity, Problem> {
        let Some(value) = authorization else { return self.without_token() };
        let token: Option<ApiToken> = value.to_str().ok().and_then(|value| {
            let (scheme, token) = value.trim().split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().parse().ok())?
        });
        // Clients that insist on some key send one that is none of ours; where no token is needed it means nothing.
        let Some(token) = token else { return self.without_token() };
        let Known { record, limits, read_at, .. } =
            self.read(store, &token.id).await?.ok_or_else(Problem::unauthenticated)?;
        if !record.has_hash(token.hash()) || record.has_ended_by(read_at.elapsed()) {
            return Err(Problem::unauthenticated());
        }
        let (tenant, user, roles) = (record.tenant.clone(), record.user.clone(), record.roles.clone());
        let limits = RequestLimits::new(limits);
        let who = Identity::new((tenant, user), roles, limits, Some(token.id.clone()));
        let who = rights.narrow(who)?;
        self.mark_used(&token.id);
        Ok(who)
    }

    /// Returns once the token has expired, or was revoked or erased. While the database cannot be reached, it waits; only the expiry
    /// of a token that was read before is noticed then.
    pub(crate) async fn until_ended(&self, store: &Store, token: &TokenId) {
        loop {
            tokio::time::sleep(FRESH).await;
            if let Ok(known) = self.read(store, token).await
                && known.is_none_or(|known| known.record.has_ended_by(known.read_at.elapsed()))
            {
                return;
            }
        }
    }

    fn without_token(&self) -> Result<Identity, Problem> {
        let (tenant, user, limits) = self.open.clone().ok_or_else(Problem::unauthenticated)?;
        let (roles, limits) = (UserRole::ALL.iter().copied().collect(), RequestLimits::new(limits));
        Ok(Identity::new((tenant, user), roles, limits, None))
    }

    /// A token as it is on record, or was less than [`FRESH`] ago. `None`: nobody has it.
    async fn read(&self, store: &Store, id: &TokenId) -> Result<Option<Known>, Problem> {
        let found = self.known().get(id).cloned();
        if let Some(known) = found.as_ref().filter(|known| known.read_at.elapsed() < FRESH) {
            return Ok(Some(known.clone()));
        }
        if self.unknown().get(id).is_some_and(|read_at| read_at.elapsed() < FRESH) {
            return Ok(None);
        }
        // Requests with invented ids must not use up the connections.
        let _turn = match found {
            None => self.lookups.acquire().await.ok(),
            Some(_) => None,
        };
        let read_at = Instant::now();
        let record = match (store.token(id).await, &found) {
            (Ok(record), _) => record,
            // During an outage the last that was read counts.
            (Err(error), Some(known)) if error.is_transient() => return Ok(Some(known.clone())),
            (Err(error), _) => return Err(error.into()),
        };
        let Some(record) = record.map(Arc::new) else {
            self.known().remove(id);
            let mut unknown = self.unknown();
            if unknown.len() >= REMEMBERED {
                unknown.clear();
            }
            unknown.insert(id.clone(), read_at);
            return Ok(None);
        };
        let new_limits = || Arc::new(Limits::new(self.rate, self.streams));
        let limits = found.as_ref().map_or_else(new_limits, |known| known.limits.clone());
        let used = found.is_some_and(|known| known.used);
        let known = Known { record, limits, read_at, used };
        self.remember(id, known.clone());
        Ok(Some(known))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<TokenId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unknown(&self) -> MutexGuard<'_, HashMap<TokenId, Instant>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// If there are too many, the one that was read longest ago goes, and its limits with it; but none that has a request open.
    fn remember(&self, id: &TokenId, known: Known) {
        let mut all = self.known();
        if all.len() >= REMEMBERED && !all.contains_key(id) {
            let idle = all.iter().filter(|(_, known)| known.limits.are_idle());
            let oldest = idle.min_by_key(|(_, known)| known.read_at).map(|(id, _)| id.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        all.insert(id.clone(), known);
    }

    fn mark_used(&self, id: &TokenId) {
        if let Some(known) = self.known().get_mut(id) {
            known.used = true;
        }
    }

    /// The tokens that were used since the last time.
    pub(crate) fn take_used(&self) -> Vec<TokenId> {
        let mut all = self.known();
        let used = all.iter_mut().filter_map(|(id, known)| std::mem::take(&mut known.used).then(|| id.clone()));
        used.collect()
    }
}
