//! Finds the primary among the hosts of an address, and notices when it is another one.
//!
//! With several hosts, a task for each asks it again and again what it is, over a connection of its own; the pool connects
//! to the one that [`elect`] names. With one host there is nothing to choose: it is asked on each new connection. In both
//! cases the newest timeline that was seen is remembered, so that an old primary that returns is not used.

use std::{io, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use sqlx::{ConnectOptions as _, PgConnection, PgPool, Postgres, pool::PoolConnection, postgres::PgConnectOptions};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    address::Address,
    report::{Newest, NoPrimary, Report, elect},
};
use crate::{StoreError, error::NotUsable};

/// Between two questions to a host while all is well, and while there is no primary that answers.
const CALM: Duration = Duration::from_secs(1);
const SEARCHING: Duration = Duration::from_millis(100);
/// A host that takes longer to answer counts as one that does not.
const ANSWER: Duration = Duration::from_secs(1);
/// It is waited for so much longer: on a busy machine a new connection would take even longer, and none would ever be ready.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two lines in the log that there is no primary.
const TELL: Duration = Duration::from_secs(10);
/// At first, all hosts are waited for so long: one that answers at once may be an old primary.
const ALL: Duration = Duration::from_millis(500);

/// Which server is used.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    host: usize,
    /// When it was started, if it was asked.
    started: i64,
    /// Since when it is used.
    since: Instant,
}

/// The hosts of an address. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    shared: Arc<Shared>,
    /// They end with the last clone.
    watchers: Arc<Watchers>,
}

#[derive(Debug)]
struct Shared {
    options: Vec<PgConnectOptions>,
    /// Standbys may be used, too.
    any: bool,
    chosen: watch::Sender<Option<Chosen>>,
    seen: Mutex<Seen>,
    /// Something failed: look now.
    failed: Notify,
    began: Instant,
}

/// What the hosts said last.
#[derive(Debug, Default)]
struct Seen {
    newest: Option<Newest>,
    /// By host: `None` if it was not asked yet.
    readings: Vec<Option<Result<Report, StoreError>>>,
    /// Why there is no primary.
    why: Option<String>,
    /// When the log said so.
    told: Option<Instant>,
    /// The start of the primary of which the log said that no commit waits for a standby.
    unprotected: Option<i64>,
}

#[derive(Debug)]
struct Watchers(Vec<JoinHandle<()>>);

impl Watchers {
    fn stop(&self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Hosts {
    /// Makes the hosts of an address. `prepare`: the options of a pool from those of a host.
    pub(crate) fn new(address: Address, prepare: impl Fn(PgConnectOptions) -> PgConnectOptions) -> Self {
        let options: Vec<PgConnectOptions> = address.hosts.into_iter().map(prepare).collect();
        let only = Chosen { host: 0, started: 0, since: Instant::now() };
        let shared = Shared {
            any: address.any,
            chosen: watch::Sender::new((options.len() == 1).then_some(only)),
            seen: Mutex::new(Seen { readings: options.iter().map(|_| None).collect(), ..Seen::default() }),
            options,
            failed: Notify::new(),
            began: Instant::now(),
        };
        Self { shared: Arc::new(shared), watchers: Arc::new(Watchers(Vec::new())) }
    }

    pub(crate) fn are_several(&self) -> bool {
        self.shared.options.len() > 1
    }

    /// Returns the options of the first host, with which a pool begins.
    pub(crate) fn first(&self) -> PgConnectOptions {
        self.shared.options[0].clone()
    }

    /// Begins to ask the hosts, if there are several, and to point the pool to the primary.
    pub(crate) fn watch(self, pool: &PgPool) -> Self {
        let hosts = if self.shared.options.len() > 1 { 0..self.shared.options.len() } else { 0..0 };
        let watch = |host| tokio::spawn(ask_again_and_again(Arc::clone(&self.shared), host, pool.clone()));
        Self { watchers: Arc::new(Watchers(hosts.map(watch).collect())), shared: self.shared }
    }

    /// Stops asking.
    pub(crate) fn close(&self) {
        self.watchers.stop();
    }

    /// Returns a connection of the pool to the primary.
    pub(crate) async fn acquire(&self, pool: &PgPool) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        let mut chosen = self.shared.chosen.subscribe();
        loop {
            if chosen.wait_for(Option::is_some).await.is_err() {
                return Err(sqlx::Error::PoolClosed);
            }
            tokio::select! {
                connection = pool.acquire() => {
                    if connection.is_err() {
                        self.shared.failed.notify_waiters();
                    }
                    return connection;
                }
                _ = chosen.changed() => {}
            }
        }
    }

    /// Waits until another server is used than now.
    pub(crate) fn switched(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut chosen = self.shared.chosen.subscribe();
        let now = chosen.borrow_and_update().map(|chosen| chosen.since);
        async move {
            let is_another =
                |chosen: &Option<Chosen>| now.is_some() && chosen.is_some_and(|chosen| Some(chosen.since) != now);
            if chosen.wait_for(is_another).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// True if a connection of this age is one to the server that is used.
    pub(crate) fn is_current(&self, age: Duration) -> bool {
        let chosen = *self.shared.chosen.borrow();
        self.shared.options.len() == 1 || chosen.is_some_and(|chosen| age < chosen.since.elapsed())
    }

    /// Fails unless the server of a new connection may be used.
    pub(crate) async fn check(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        if self.shared.any {
            return Ok(());
        }
        let report = Report::of(connection).await?;
        let mut seen = self.shared.seen();
        match report.objection(seen.newest) {
            None => {
                seen.newest = Some(Newest::with(seen.newest, &report));
                seen.why = None;
                let may_fail_over = report.is_followed || self.are_several();
                if may_fail_over
                    && !report.is_synchronous
                    && seen.unprotected.replace(report.started) != Some(report.started)
                {
                    tracing::warn!(
                        "Found no synchronous standby of Postgres: a failover loses the last commits, and with them accepted calls \
                         and grants, so that an unsafe tool may run twice; set synchronous_standby_names"
                    );
                }
                Ok(())
            }
            Some(why) => {
                let why = match self.shared.options.as_slice() {
                    [only] => format!("{} {why}", name(only)),
                    _ => why,
                };
                seen.why = Some(why.clone());
                Err(no_primary(why))
            }
        }
    }

    /// Makes the error of a caller that got no connection in time: why there is no primary, if that is known.
    pub(crate) fn timed_out(&self) -> sqlx::Error {
        self.shared.failed.notify_waiters();
        self.shared.seen().why.clone().map_or(sqlx::Error::PoolTimedOut, no_primary)
    }

    /// Returns the error for good, if no host will ever let this user in.
    pub(crate) fn refused(&self) -> Option<StoreError> {
        self.shared.refused()
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock()
    }

    /// Takes a host's answer into account. The pool connects to another server from here on if that is the primary now.
    fn note(&self, host: usize, reading: Result<Report, StoreError>, pool: &PgPool) {
        let mut seen = self.seen();
        if let Ok(report) = &reading {
            seen.newest = Some(Newest::with(seen.newest, report));
        }
        seen.readings[host] = Some(reading);
        if seen.readings.iter().any(Option::is_none) && self.began.elapsed() < ALL {
            return;
        }
        let reports: Vec<Option<Report>> =
            seen.readings.iter().map(|reading| reading.as_ref()?.as_ref().ok().cloned()).collect();
        let elected = if self.any { self.any_of(&reports) } else { elect(&reports, seen.newest) };
        match elected {
            Ok(host) => {
                seen.why = None;
                let started = reports[host].as_ref().map_or(0, |report| report.started);
                self.choose(host, started, pool);
            }
            Err(no_primary) => {
                // One that does not answer may be busy; connections to it are tried. One that says that it is none is left.
                let leave = |chosen: &Option<Chosen>| chosen.is_some_and(|chosen| reports[chosen.host].is_some());
                let why = self.why(&seen, &no_primary);
                if seen.told.is_none_or(|told| told.elapsed() >= TELL) {
                    tracing::warn!(why, "Found no primary among the hosts of Postgres");
                    seen.told = Some(Instant::now());
                }
                seen.why = Some(why);
                self.chosen.send_if_modified(|chosen| leave(chosen) && chosen.take().is_some());
            }
        }
    }

    /// Chooses a host that answers: the one that is used, or the first.
    fn any_of(&self, reports: &[Option<Report>]) -> Result<usize, NoPrimary> {
        let chosen = self.chosen.borrow().map(|chosen| chosen.host).filter(|host| reports[*host].is_some());
        chosen.or_else(|| reports.iter().position(Option::is_some)).ok_or(NoPrimary::Objections(Vec::new()))
    }

    fn choose(&self, host: usize, started: i64, pool: &PgPool) {
        let before = *self.chosen.borrow();
        if before.is_some_and(|before| (before.host, before.started) == (host, started)) {
            return;
        }
        pool.set_connect_options(self.options[host].clone());
        self.chosen.send_replace(Some(Chosen { host, started, since: Instant::now() }));
        let primary = name(&self.options[host]);
        match before.map(|before| before.host) {
            None => tracing::info!(primary, "Found the primary of Postgres"),
            Some(used) if used == host => tracing::warn!(primary, "Noticed a restart of the primary of Postgres"),
            Some(_) => tracing::warn!(primary, "Switched to another primary of Postgres"),
        }
    }

    /// Lists each host, and why it is not used.
    fn why(&self, seen: &Seen, found: &NoPrimary) -> String {
        let name_of = |host: usize| name(&self.options[host]);
        let objections = match found {
            NoPrimary::Several(hosts) => {
                let several = hosts.iter().map(|host| name_of(*host)).collect::<Vec<_>>().join(" and ");
                return format!("{several} take writes, and neither has a newer timeline: stop all but the one to use");
            }
            NoPrimary::Objections(objections) => objections,
        };
        let told = seen.readings.iter().enumerate().map(|(host, reading)| {
            let why = objections.iter().find(|(of, _)| *of == host).map(|(_, why)| why.as_str());
            match (reading, why) {
                (Some(Err(error)), _) => format!("{}: {error}", name_of(host)),
                (_, why) => format!("{} {}", name_of(host), why.unwrap_or("has not answered yet")),
            }
        });
        told.collect::<Vec<_>>().join("; ")
    }

    /// True if the chosen server answered when it was asked last.
    fn is_calm(&self) -> bool {
        let chosen = *self.chosen.borrow();
        let seen = self.seen();
        chosen.is_some_and(|chosen| matches!(seen.readings[chosen.host], Some(Ok(_))))
    }

    fn refused(&self) -> Option<StoreError> {
        let mut seen = self.seen();
        let is_final =
            |reading: &Option<Result<Report, StoreError>>| matches!(reading, Some(Err(error)) if !error.is_transient());
        if self.options.len() == 1 || !seen.readings.iter().all(is_final) {
            return None;
        }
        let first = seen.readings.first_mut()?.take()?.err()?;
        Some(first.of_connection(&self.options[0]))
    }
}

async fn ask_again_and_again(shared: Arc<Shared>, host: usize, pool: PgPool) {
    let mut connection = None;
    loop {
        let reading = {
            let asking = ask(&mut connection, &shared.options[host]);
            tokio::pin!(asking);
            if let Ok(reading) = timeout(ANSWER, &mut asking).await {
                Some(reading)
            } else {
                shared.note(host, Err(StoreError::Timeout(ANSWER)), &pool);
                timeout(PATIENCE, asking).await.ok()
            }
        };
        match reading {
            Some(reading) => {
                if reading.is_err() {
                    connection = None;
                }
                shared.note(host, reading.map_err(StoreError::from), &pool);
            }
            None => connection = None,
        }
        let pause = if shared.is_calm() { CALM } else { SEARCHING };
        tokio::select! {
            () = sleep(pause) => {}
            () = shared.failed.notified() => sleep(SEARCHING / 4).await,
        }
    }
}

async fn ask(connection: &mut Option<PgConnection>, options: &PgConnectOptions) -> Result<Report, sqlx::Error> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(options.connect().await?),
    };
    Report::of(connection).await
}

/// Makes an error that passes: a primary will be there.
fn no_primary(why: String) -> sqlx::Error {
    sqlx::Error::Io(io::Error::other(NotUsable(why)))
}

/// Writes `host:port`, without the login.
pub(crate) fn name(options: &PgConnectOptions) -> String {
    format!("{}:{}", options.get_host(), options.get_port())
}
