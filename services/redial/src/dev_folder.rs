//! The folder of `redial dev`: who runs in it, and its addresses for other commands.
//!
//! A running `redial dev` holds a lock on `dev.lock`, which the system releases when the process ends, however it ends. So
//! a `dev.json` without a held lock was left behind.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use redial_worker::WebhookKey;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(crate) const DEV_FOLDER: &str = ".redial";
const FILE: &str = "dev.json";
const LOCK: &str = "dev.lock";
const WEBHOOK_KEY: &str = "webhook.key";

/// A command looks at the lock for a moment; a `redial dev` that starts just then tries again for so long.
const PATIENCE: Duration = Duration::from_millis(500);

/// The addresses of a running `redial dev`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DevAddresses {
    pub(crate) pid: u32,
    pub(crate) started_at: Option<DateTime<Utc>>,
    pub(crate) nats_url: String,
    pub(crate) nats_pid: Option<u32>,
    pub(crate) database_url: String,
    pub(crate) postgres_pid: Option<u32>,
    pub(crate) http_url: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum DevState {
    None,
    /// One that runs; without addresses it is just starting.
    Running(Option<DevAddresses>),
    /// One that ended without cleaning up, because it was killed or the machine went down.
    Stale(DevAddresses),
}

/// Held by a running `redial dev`.
#[derive(Debug)]
pub(crate) struct DevLock(#[expect(dead_code, reason = "the lock lasts as long as the file is open")] File);

impl DevAddresses {
    pub(crate) fn path(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(Self::path(folder)).ok()?).ok()
    }

    /// Replaces the file atomically. Only this user may read it, because it contains passwords.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        use io::Write;
        let path = Self::path(folder);
        let draft = path.with_extension("draft");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(serde_json::to_string_pretty(self)?.as_bytes())?;
        fs::rename(draft, path)
    }

    /// Writes `process 1234, started 2026-11-23 08:00:00Z (5 min ago)`.
    pub(crate) fn who(&self, now: DateTime<Utc>) -> String {
        match self.started_at {
            Some(at) => {
                let ago = (now - at).to_std().unwrap_or_default();
                let ago = humantime::format_duration(Duration::from_secs(ago.as_secs()));
                format!("process {}, started {} ({ago} ago)", self.pid, at.format("%Y-%m-%d %H:%M:%SZ"))
            }
            None => format!("process {}", self.pid),
        }
    }
}

pub(crate) fn state(folder: &Path) -> DevState {
    let addresses = DevAddresses::read(folder);
    match File::open(folder.join(LOCK)).map(|lock| lock.try_lock_shared()) {
        Ok(Ok(())) => addresses.map_or(DevState::None, DevState::Stale),
        Ok(Err(TryLockError::WouldBlock)) => DevState::Running(addresses),
        // Of another user: what it says is all there is.
        Ok(Err(TryLockError::Error(_))) | Err(_) => {
            addresses.map_or(DevState::None, |found| DevState::Running(Some(found)))
        }
    }
}

/// Takes a folder; `Ok(None)` if another `redial dev` has it.
pub(crate) fn take(folder: &Path) -> io::Result<Option<DevLock>> {
    let path = folder.join(LOCK);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(DevLock(file))),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(None),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(20)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Returns the key that the secrets of webhooks are derived from: made once, and only this user may read it.
pub(crate) fn webhook_key(folder: &Path) -> anyhow::Result<WebhookKey> {
    use io::Write;
    let path = folder.join(WEBHOOK_KEY);
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Ok(mut file) => write!(file, "{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    Ok(WebhookKey::new(&fs::read_to_string(&path)?)?)
}

/// Removes user and password from an address, which is to be shown.
pub(crate) fn public(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("{scheme}://{}{path}", authority.rsplit_once('@').map_or(authority, |(_, host)| host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_starting_holds_the_folder_before_its_addresses_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let held = take(folder.path()).unwrap().unwrap();
        assert!(matches!(state(folder.path()), DevState::Running(None)));
        assert!(take(folder.path()).unwrap().is_none());
        drop(held);
        assert!(matches!(state(folder.path()), DevState::None));
    }
}
