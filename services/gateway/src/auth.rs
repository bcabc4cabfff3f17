//! Who sent a request: tokens (`Authorization: Bearer rdl_<id>_<secret>`), and sessions of browsers that signed in with one.

use std::{collections::HashMap, sync::Arc, time::Instant};

use axum::http::{HeaderMap, header};
use parking_lot::{Mutex, MutexGuard};
use redial_proto::{ApiToken, Tenant, TokenId, User, UserRole};
use redial_store::{Store, Time, TokenRecord};
use tokio::sync::Semaphore;

use crate::{
    config::GatewayConfig,
    identity::Identity,
    limits::{Limits, RequestLimits},
    problem::Problem,
    refusals::Reason,
    rights::Rights,
    sessions::{self, FRESH, REMEMBERED, SessionHash, Sessions, Stale},
};

/// Tokens that are not remembered are read so many at a time.
const LOOKUPS: usize = 2;

pub(crate) struct Tokens {
    known: Mutex<HashMap<TokenId, Known>>,
    /// Ids that no token on record has, and when they were looked up. Apart from the others, which they must not displace.
    unknown: Mutex<HashMap<TokenId, Instant>>,
    /// Who asks without a token.
    open: Option<(Tenant, User)>,
    sessions: Sessions,
    lookups: Semaphore,
    limits: Arc<Limits>,
}

#[derive(Clone)]
struct Known {
    record: Arc<TokenRecord>,
    read_at: Instant,
    used: bool,
}

impl Tokens {
    pub(crate) fn new(config: &GatewayConfig, limits: Arc<Limits>) -> Self {
        Self {
            known: Mutex::default(),
            unknown: Mutex::default(),
            open: config.without_token.clone(),
            sessions: Sessions::default(),
            lookups: Semaphore::new(LOOKUPS),
            limits,
        }
    }

    /// Returns who sent a request, in the roles of the access file now: by its `Authorization`, else by its session.
    pub(crate) async fn identify(
        &self,
        store: &Store,
        rights: &Rights,
        headers: &HeaderMap,
    ) -> Result<Identity, Problem> {
        if let Some(value) = headers.get(header::AUTHORIZATION) {
            let token: Option<ApiToken> = value.to_str().ok().and_then(|value| {
                let (scheme, token) = value.trim().split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().parse().ok())?
            });
            // Clients that insist on some key send one that is none of ours; where no token is needed it means nothing. It never
            // means the session of the browser that sends it.
            let Some(token) = token else { return self.without_token(Reason::Malformed) };
            let refused = |reason| Problem::unauthenticated(reason, Some(&token.id));
            let known = self.read(store, &token.id).await?.ok_or_else(|| refused(Reason::Unknown))?;
            if !known.record.has_hash(token.hash()) {
                return Err(refused(Reason::WrongSecret));
            }
            return self.known_user(rights, &known, None);
        }
        let Some(session) = sessions::of(headers)? else { return self.without_token(Reason::Missing) };
        // A session that has ended never means whoever reaches this gateway: that could be somebody with more rights.
        let gone = || Problem::unauthenticated(Reason::NoSession, None);
        let found = self.sessions.read(store, &self.lookups, session).await?.ok_or_else(gone)?;
        let known = self.read(store, &found.token).await?.ok_or_else(gone)?;
        self.known_user(rights, &known, Some((session, found.expires_at)))
    }

    /// Returns the user of a token that has not ended.
    fn known_user(
        &self,
        rights: &Rights,
        known: &Known,
        session: Option<(SessionHash, Time)>,
    ) -> Result<Identity, Problem> {
        let Known { record, read_at, .. } = known;
        if record.has_ended_by(read_at.elapsed()) {
            let reason = if record.revoked_at.is_some() { Reason::Revoked } else { Reason::Expired };
            return Err(Problem::unauthenticated(reason, Some(&record.id)));
        }
        let (tenant, user, roles) = (record.tenant.clone(), record.user.clone(), record.roles.clone());
        let limits = RequestLimits::new(self.limits.clone(), tenant.clone());
        let who = Identity::new((tenant, user), roles, limits, Some(record.id.clone()));
        let expires_at = session.map(|(_, expires_at)| expires_at).or(record.expires_at);
        let who = rights.narrow(Identity { session: session.map(|(hash, _)| hash), expires_at, ..who })?;
        self.mark_used(&record.id);
        Ok(who)
    }

    /// Signs a browser in with the token of a request; returns the id of its session, and when that ends.
    pub(crate) async fn sign_in(&self, store: &Store, who: &Identity) -> Result<(String, Time), Problem> {
        let refused = |reason| Problem::unauthenticated(reason, who.token.as_ref());
        let token = who.token.as_ref().ok_or_else(|| refused(Reason::Missing))?;
        let (id, hash) = sessions::generate();
        let created = store.create_session(hash, token, sessions::LONGEST).await?;
        // It was valid a moment ago.
        Ok((id, created.ok_or_else(|| refused(Reason::Revoked))?))
    }

    /// Ends the session of a request, if it has one.
    pub(crate) async fn sign_out(&self, store: &Store, who: &Identity) -> Result<(), Problem> {
        if let Some(session) = who.session {
            store.end_session(session).await?;
            self.sessions.forget(session);
        }
        Ok(())
    }

    /// Returns once the session has expired or was ended. While the database cannot be reached, it waits.
    pub(crate) async fn until_signed_out(&self, store: &Store, session: SessionHash) {
        loop {
            tokio::time::sleep(FRESH).await;
            if let Ok(None) = self.sessions.read(store, &self.lookups, session).await {
                return;
            }
        }
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

    /// Returns whoever may ask without a token, or why a request without one is refused.
    fn without_token(&self, reason: Reason) -> Result<Identity, Problem> {
        let refused = || Problem::unauthenticated(reason, None);
        let (tenant, user) = self.open.clone().ok_or_else(refused)?;
        let limits = RequestLimits::new(self.limits.clone(), tenant.clone());
        let roles = UserRole::ALL.iter().copied().collect();
        Ok(Identity::new((tenant, user), roles, limits, None))
    }

    /// Reads a token as it is on record, or was less than [`FRESH`] ago; `None`: nobody has it.
    async fn read(&self, store: &Store, id: &TokenId) -> Result<Option<Known>, Problem> {
        if let Ok(fresh) = self.fresh(id) {
            return Ok(fresh);
        }
        let found = self.known().get(id).cloned();
        // Requests with invented ids must not use up the connections.
        let mut _turn = None;
        if found.is_none() {
            _turn = self.lookups.acquire().await.ok();
            // The requests before this one may have had the same token.
            if let Ok(fresh) = self.fresh(id) {
                return Ok(fresh);
            }
        }
        let read_at = Instant::now();
        let record = match (store.token(id).await, found) {
            (Ok(record), _) => record,
            // During an outage the last that was read counts.
            (Err(error), Some(known)) if error.is_transient() => return Ok(Some(known)),
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
        Ok(Some(self.remember(id, record, read_at)))
    }

    /// Returns what was read of a token less than [`FRESH`] ago; `None`: nobody had it.
    fn fresh(&self, id: &TokenId) -> Result<Option<Known>, Stale> {
        if let Some(known) = self.known().get(id).filter(|known| known.read_at.elapsed() < FRESH) {
            return Ok(Some(known.clone()));
        }
        let is_unknown = self.unknown().get(id).is_some_and(|read_at| read_at.elapsed() < FRESH);
        if is_unknown { Ok(None) } else { Err(Stale) }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<TokenId, Known>> {
        self.known.lock()
    }

    fn unknown(&self) -> MutexGuard<'_, HashMap<TokenId, Instant>> {
        self.unknown.lock()
    }

    /// Remembers a token. If there are too many, the one that was read longest ago goes.
    fn remember(&self, id: &TokenId, record: Arc<TokenRecord>, read_at: Instant) -> Known {
        let mut all = self.known();
        if all.len() >= REMEMBERED && !all.contains_key(id) {
            let oldest = all.iter().min_by_key(|(_, known)| known.read_at).map(|(id, _)| id.clone());
            oldest.and_then(|oldest| all.remove(&oldest));
        }
        let used = all.get(id).is_some_and(|known| known.used);
        let known = Known { record, read_at, used };
        all.insert(id.clone(), known.clone());
        known
    }

    fn mark_used(&self, id: &TokenId) {
        if let Some(known) = self.known().get_mut(id) {
            known.used = true;
        }
    }

    /// Takes the tokens that were used since the last time.
    pub(crate) fn take_used(&self) -> Vec<TokenId> {
        let mut all = self.known();
        let used = all.iter_mut().filter_map(|(id, known)| std::mem::take(&mut known.used).then(|| id.clone()));
        used.collect()
    }
}
