//! Sessions of browsers: the cookie, and what is remembered of it.

use std::{
    collections::HashMap,
    fmt::Write as _,
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, header};
use parking_lot::{Mutex, MutexGuard};
use redial_store::{SessionRecord, Store};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use crate::{problem::Problem, refusals::Reason};

/// How long a token that was read counts as it was: a revoked one stops working after this.
pub(crate) const FRESH: Duration = Duration::from_secs(10);
/// Tokens that are remembered, and as many ids that nobody has, so that guessing costs no query each.
pub(crate) const REMEMBERED: usize = 10_000;
pub(crate) const COOKIE: &str = "redial_session";
/// How long a session lasts at most. It ends with its token if that is earlier.
pub(crate) const LONGEST: Duration = Duration::from_hours(12);
/// Of an id.
const RANDOM: usize = 32;

pub(crate) type SessionHash = [u8; 32];

/// Nothing was read, or too long ago: the database has to be asked.
pub(crate) struct Stale;

#[derive(Default)]
pub(crate) struct Sessions {
    known: Mutex<HashMap<SessionHash, (SessionRecord, Instant)>>,
    /// Ids that no session on record has. Apart from the others, which they must not displace.
    unknown: Mutex<HashMap<SessionHash, Instant>>,
}

impl Sessions {
    /// Reads a session as it is on record, or was less than [`FRESH`] ago; `None` if it has ended, or nobody has it.
    /// `lookups` are turns of those that are not remembered.
    pub(crate) async fn read(
        &self,
        store: &Store,
        lookups: &Semaphore,
        hash: SessionHash,
    ) -> Result<Option<SessionRecord>, Problem> {
        if let Ok(fresh) = self.fresh(hash) {
            return Ok(fresh);
        }
        let found = lock(&self.known).get(&hash).cloned();
        let mut _turn = None;
        if found.is_none() {
            _turn = lookups.acquire().await.ok();
            // The requests before this one may have had the same session.
            if let Ok(fresh) = self.fresh(hash) {
                return Ok(fresh);
            }
        }
        let read_at = Instant::now();
        match (store.session(hash).await, found) {
            // It was ended here while it was read.
            (Ok(Some(_)), _) if lock(&self.unknown).get(&hash).is_some_and(|at| *at >= read_at) => Ok(None),
            (Ok(Some(record)), _) => {
                remember(&self.known, hash, (record.clone(), read_at));
                Ok(alive((record, read_at)))
            }
            (Ok(None), _) => {
                lock(&self.known).remove(&hash);
                remember(&self.unknown, hash, read_at);
                Ok(None)
            }
            // During an outage the last that was read counts.
            (Err(error), Some(known)) if error.is_transient() => Ok(alive(known)),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Returns what was read of a session less than [`FRESH`] ago; `None`: it has ended, or nobody had it.
    fn fresh(&self, hash: SessionHash) -> Result<Option<SessionRecord>, Stale> {
        // First, because a read that began before the session was ended here may remember it.
        if lock(&self.unknown).get(&hash).is_some_and(|read_at| read_at.elapsed() < FRESH) {
            return Ok(None);
        }
        let known = lock(&self.known).get(&hash).filter(|(_, read_at)| read_at.elapsed() < FRESH).cloned();
        known.map(alive).ok_or(Stale)
    }

    /// Takes note that it was ended here.
    pub(crate) fn forget(&self, hash: SessionHash) {
        lock(&self.known).remove(&hash);
        remember(&self.unknown, hash, Instant::now());
    }
}

/// Returns the record, unless the session has ended since it was read.
fn alive((record, read_at): (SessionRecord, Instant)) -> Option<SessionRecord> {
    (!record.has_ended_by(read_at.elapsed())).then_some(record)
}

fn lock<T>(map: &Mutex<HashMap<SessionHash, T>>) -> MutexGuard<'_, HashMap<SessionHash, T>> {
    map.lock()
}

fn remember<T>(map: &Mutex<HashMap<SessionHash, T>>, hash: SessionHash, value: T) {
    let mut map = lock(map);
    if map.len() >= REMEMBERED {
        map.clear();
    }
    map.insert(hash, value);
}

/// Returns the session of a request. Two are no session: somebody else may have put one beside the other.
pub(crate) fn of(headers: &HeaderMap) -> Result<Option<SessionHash>, Problem> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let ids: Vec<&str> = pairs.filter(|(name, _)| *name == COOKIE).map(|(_, id)| id).collect();
    match ids.as_slice() {
        [] | [""] => Ok(None),
        [id] => Ok(Some(Sha256::digest(id).into())),
        _ => Err(Problem::unauthenticated(Reason::NoSession, None)),
    }
}

pub(crate) fn generate() -> (String, SessionHash) {
    let random: [u8; RANDOM] = rand::random();
    let mut id = String::with_capacity(2 * RANDOM);
    for byte in random {
        let _ = write!(id, "{byte:02x}");
    }
    let hash = Sha256::digest(&id).into();
    (id, hash)
}

/// Writes the cookie that a browser keeps for so long; 0 takes it away.
pub(crate) fn cookie(id: &str, seconds: u64, is_https: bool) -> String {
    let secure = if is_https { "; Secure" } else { "" };
    format!("{COOKIE}={id}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(cookies: &[&'static str]) -> HeaderMap {
        cookies.iter().map(|cookie| (header::COOKIE, HeaderValue::from_static(cookie))).collect()
    }

    #[test]
    fn a_session_is_one_cookie() {
        assert_eq!(of(&headers(&[])).unwrap(), None);
        assert_eq!(of(&headers(&["a=b; redial_session="])).unwrap(), None);
        let hash: SessionHash = Sha256::digest("x1").into();
        assert_eq!(of(&headers(&["a=b; redial_session=x1"])).unwrap(), Some(hash));
        assert!(of(&headers(&["redial_session=x1; redial_session=x2"])).is_err());
        assert!(of(&headers(&["redial_session=x1", "redial_session=x2"])).is_err());
        assert!(of(&headers(&["redial_session=; redial_session=x2"])).is_err());
    }
}
