//! The one error type of this crate. Services log it once and turn it into an `ApiError`.

use std::time::Duration;

use sqlx::{migrate::MigrateError, postgres::PgConnectOptions};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("database address: {0}; allowed: postgres://user:password@host:port/name, several host:port with commas")]
    BadAddress(String),
    /// The server, or a pooler before it, refused the login, or has no such database. Trying again would not help.
    #[error("Postgres at {address} refused the login of user {user:?}: {reason}; {remedy}")]
    Refused {
        /// `host:port/database`.
        address: String,
        user: String,
        reason: String,
        remedy: &'static str,
    },
    /// The login lacks a right.
    #[error("Postgres: {0}; run deploy/roles.sql in this database, and give each process the login of its role")]
    NoRight(String),
    /// A pooler lends each transaction another connection, and does not know which prepared statements that has.
    #[error(
        "the pooler before Postgres loses prepared statements ({0}); use PgBouncer 1.21 or newer with max_prepared_statements, \
         or pool_mode = session"
    )]
    LossyPooler(String),
    /// No host takes writes on the newest timeline: a standby was not promoted yet, or an old primary is all that is there.
    #[error("Postgres has no primary: {0}")]
    NoPrimary(String),
    /// A setting of the server breaks a promise of Redial.
    #[error("Postgres has {name} = {value}: {why}")]
    UnsafeSetting {
        name: &'static str,
        value: String,
        /// What it would break, and the remedy.
        why: &'static str,
    },
    /// The tables are not those of this version.
    #[error("the database's tables are not up to date ({0}): run `redial migrate`")]
    NotMigrated(String),
    /// No answer in time. Whether the statement took effect is unknown.
    #[error("Postgres did not answer within {0:?}")]
    Timeout(Duration),
    /// The search path of the login begins with another schema than the one that the tables are in.
    #[error(
        "the tables of Redial are in the schema public, and the search_path of this login begins with {0}: set it with \
         `ALTER ROLE … SET search_path = public`, or give Redial a database of its own"
    )]
    OtherSchema(String),
    /// A row holds what this version does not know.
    #[error("unexpected data in the database: {0}")]
    BadData(String),
    /// No partition of a table takes what is written.
    #[error(
        "{0}: the clock of this process is hours ahead of the database's, or no dispatcher could add partitions; \
         see the log of the dispatchers"
    )]
    NoPartition(String),
    /// Ids of this process would be hours old.
    #[error("the clock of this process is {0:?} behind the database's: set it right; until then it writes no new work")]
    ClockBehind(Duration),
    /// A registration needs one consumer more than a pool may have.
    #[error("pool {:?} has {} different sets of tools, which is the most allowed", .0.pool, .0.most)]
    FullPool(FullPool),
    /// A worker would be one more than its identity may have.
    #[error("a worker identity may have at most {0} workers that are alive")]
    TooManyWorkers(u32),
    /// A registration brings more tools than its worker identity may have.
    #[error("a worker identity may have at most {0} tools")]
    TooManyTools(i64),
    /// The specifications of a worker identity's tools take more bytes than they may.
    #[error("the tools of a worker identity may take at most {0} bytes")]
    TooLargeTools(i64),
    /// More of a worker identity would wait for an operator than may.
    #[error("at most {0} tools of a worker identity wait for an operator")]
    TooManyPending(i64),
    /// A migration that the database has is not one of this version, or not the same.
    #[error(
        "the database has migration {0} of another version of Redial: use that version, or a new database \
         (`redial dev`: another --folder)"
    )]
    OtherVersion(i64),
    /// A migration failed. Each is done whole or not at all.
    #[error(
        "migration {version} failed: {reason}; nothing of it is left, and {done} before it were applied: mend the cause \
         and run `redial migrate` again, it goes on there"
    )]
    Migration {
        version: i64,
        reason: String,
        /// How many this run had applied before.
        done: String,
    },
    #[error("migration: {0}")]
    Migrate(MigrateError),
    /// Anything that Postgres or the connection said.
    #[error("Postgres: {}", message(.0))]
    Sql(sqlx::Error),
}

/// No other set of tools fits into a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullPool {
    pub pool: String,
    /// The sets that it has, which are as many as are allowed.
    pub most: u32,
    /// The worker identity that has these sets, if not the whole pool has them: others use the pool, too.
    pub identity: Option<String>,
}

/// A server that must not be used, as an error of the library; it becomes [`StoreError::NoPrimary`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotUsable(pub(crate) String);

/// Returns the message without the line of the server's source code that the library would add.
pub(crate) fn message(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(db) => db.message().to_owned(),
        other => other.to_string(),
    }
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::VersionMissing(version) | MigrateError::VersionMismatch(version) => {
                Self::OtherVersion(version)
            }
            other => Self::Migrate(other),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Configuration(what) => Self::BadAddress(what.to_string()),
            sqlx::Error::Database(db) => {
                let (code, message) = (db.code().unwrap_or_default().into_owned(), db.message().to_owned());
                match code.as_str() {
                    CHECK if message.starts_with(NO_PARTITION) => Self::NoPartition(message),
                    NO_RIGHT => Self::NoRight(message),
                    TWICE_PREPARED | NOT_PREPARED => Self::LossyPooler(message),
                    _ => Self::Sql(sqlx::Error::Database(db)),
                }
            }
            sqlx::Error::Io(error) => match error.get_ref().and_then(|error| error.downcast_ref::<NotUsable>()) {
                Some(why) => Self::NoPrimary(why.0.clone()),
                None => Self::Sql(sqlx::Error::Io(error)),
            },
            other => Self::Sql(other),
        }
    }
}

impl StoreError {
    /// Makes the error of a connection: whether the server refused it, and whose login that was.
    pub(crate) fn of_connection(self, options: &PgConnectOptions) -> Self {
        let Self::Sql(sqlx::Error::Database(db)) = &self else { return self };
        let remedy = match db.code().as_deref() {
            Some(NO_DATABASE) => Some(SET_DATABASE),
            Some(code) if code.starts_with(LOGIN) => Some(SET_LOGIN),
            Some(PROTOCOL) => remedy_of_pooler(db.message()),
            _ => None,
        };
        let Some(remedy) = remedy else { return self };
        let (user, database) = (options.get_username(), options.get_database());
        Self::Refused {
            // Without a name, the database is that of the user.
            address: format!("{}:{}/{}", options.get_host(), options.get_port(), database.unwrap_or(user)),
            user: user.to_owned(),
            reason: db.message().to_owned(),
            remedy,
        }
    }

    /// True if whoever answers takes no parameters of sessions, as poolers do.
    pub(crate) fn is_about_parameters(&self) -> bool {
        matches!(self, Self::Refused { reason, .. } if reason.starts_with(PARAMETER))
    }

    /// True if the same statement may succeed when tried again: the connection broke, the server restarts, or the
    /// statement lost a deadlock. Whether a broken one took effect is unknown; guards and keys make that harmless.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Timeout(_) | Self::NoPartition(_) | Self::ClockBehind(_) | Self::NoPrimary(_) => true,
            Self::Sql(error) => is_transient(error),
            _ => false,
        }
    }
}

impl StoreError {
    /// True if Postgres was there and did not finish in time: of many things that were asked for at once, fewer may succeed.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Timeout(_) => true,
            other => other.is_lock_timeout() || other.is_statement_timeout(),
        }
    }

    /// True if others held a lock for longer than the statement was willing to wait.
    pub fn is_lock_timeout(&self) -> bool {
        self.has_code(LOCK_TIMEOUT)
    }

    /// True if a statement took longer than it may, or an operator cancelled it.
    pub(crate) fn is_statement_timeout(&self) -> bool {
        self.has_code(STATEMENT_TIMEOUT)
    }

    fn has_code(&self, code: &str) -> bool {
        matches!(self, Self::Sql(sqlx::Error::Database(db)) if db.code().as_deref() == Some(code))
    }

    /// True if a row holds what this version does not know: a newer version wrote it, or somebody changed it by hand.
    pub const fn is_unreadable(&self) -> bool {
        matches!(self, Self::BadData(_) | Self::Sql(sqlx::Error::Decode(_)))
    }

    /// True if what was to be written is on record already.
    pub(crate) fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Sql(sqlx::Error::Database(db)) if db.is_unique_violation())
    }

    /// True if Postgres cannot be reached or does not work: nothing that is asked for would succeed now.
    pub fn is_outage(&self) -> bool {
        let is_conflict = match self {
            Self::Sql(sqlx::Error::Database(db)) => {
                db.code().is_some_and(|code| code.starts_with("40")) || db.constraint() == Some(ONE_AT_A_TIME)
            }
            _ => false,
        };
        self.is_transient() && !self.is_timeout() && !is_conflict
    }
}

/// SQLSTATE class: invalid authorization.
const LOGIN: &str = "28";
const SET_LOGIN: &str = "set the right user and password in database_url";
/// SQLSTATE: the database does not exist.
const NO_DATABASE: &str = "3D000";
const SET_DATABASE: &str = "set the right database in database_url, or create this one";
/// SQLSTATE: the login lacks a right.
const NO_RIGHT: &str = "42501";
/// SQLSTATE: a prepared statement is there already, or is not there.
const TWICE_PREPARED: &str = "42P05";
const NOT_PREPARED: &str = "26000";
/// SQLSTATE: a protocol violation, which is what PgBouncer (1.18) calls all that goes wrong before a session begins.
const PROTOCOL: &str = "08P01";
const PARAMETER: &str = "unsupported startup parameter";
/// SQLSTATE: a check was violated; also a row that no partition takes.
const CHECK: &str = "23514";
const NO_PARTITION: &str = "no partition of relation";
/// SQLSTATE: a write on a server that takes none, as after a failover.
const READ_ONLY: &str = "25006";
const STATEMENT_TIMEOUT: &str = "57014";
const LOCK_TIMEOUT: &str = "55P03";
/// SQLSTATE: the server closed the connection, because this machine stood still in the middle of a transaction.
const IDLE_IN_TRANSACTION: &str = "25P03";

/// Two tasks of a conversation that start at once meet at this index, and one of them is rolled back: it has to wait.
const ONE_AT_A_TIME: &str = "tasks_running";

/// Returns what to do if a pooler will never make a connection; `None` if it may, as once its server is back. Only the
/// text tells.
fn remedy_of_pooler(text: &str) -> Option<&'static str> {
    let says = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if text.starts_with(PARAMETER) {
        Some("take it out of database_url")
    } else if says(&["authentication failed", "no such user", "role \"", "login rejected", "pg_hba.conf"]) {
        Some(SET_LOGIN)
    } else if says(&["SSL required"]) {
        Some("set sslmode=require in database_url")
    } else if says(&["no such database", "does not exist"]) {
        Some(SET_DATABASE)
    } else if says(&["permission denied"]) {
        Some("run deploy/roles.sql in this database")
    } else {
        None
    }
}

/// True for SQLSTATE classes that pass by themselves: 08 connection, 40 rollback (deadlock, serialisation), 53
/// resources, 55P03 lock timeout, 57 operator intervention (shutdown, 57P03 starting up), 25006 read-only: a standby,
/// or a primary that is fenced, 25P03 idle in a transaction for too long. Postgres documentation, appendix A.
fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(db) if db.code().as_deref() == Some(PROTOCOL) => remedy_of_pooler(db.message()).is_none(),
        sqlx::Error::Database(db) => {
            db.code().is_some_and(|code| {
                ["08", "40", "53", "57"].iter().any(|class| code.starts_with(class))
                    || [LOCK_TIMEOUT, READ_ONLY, IDLE_IN_TRANSACTION].contains(&code.as_ref())
            }) || db.constraint() == Some(ONE_AT_A_TIME)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_a_pooler_says_the_text_tells_whether_it_passes() {
        for final_one in [
            "unsupported startup parameter: extra_float_digits",
            "unsupported startup parameter in options: jit",
            "password authentication failed",
            "SASL authentication failed",
            "no such user: redial",
            "role \"redial\" is not permitted to log in",
            "no pg_hba.conf entry for host \"10.0.0.1\", user \"redial\", database \"redial\", no encryption",
            "SSL required",
            "no such database: redial",
            "server login has been failing, cached error: FATAL: database \"redial\" does not exist (server_login_retry)",
            "permission denied for database \"redial\"",
        ] {
            assert!(remedy_of_pooler(final_one).is_some(), "{final_one}");
        }
        for passing in [
            "pgbouncer cannot connect to server",
            "server login has been failing, try again later (server_login_retry)",
            "server login has been failing, cached error: connect failed (server_login_retry)",
            "the database system is starting up",
            "no more connections allowed (max_client_conn)",
            "query_wait_timeout",
            "server conn crashed?",
            "the database is being suspended",
        ] {
            assert_eq!(remedy_of_pooler(passing), None, "{passing}");
        }
    }
}
