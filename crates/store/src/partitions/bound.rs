//! Bounds what is kept before a partition is dropped, or Postgres would read all of it while everybody waits.

use std::{
    io::{self, ErrorKind},
    time::Duration,
};

use tokio::time::sleep;

use crate::{
    StoreError,
    columns::int,
    connect::{Connection, Store},
    partitions::Partition,
};

/// How long a statement that only adds a bound may take.
const ADD_TIMEOUT: &str = "SET statement_timeout = '5s'";
/// Validation takes as long as it takes. It waits for nobody but vacuum, and only vacuum waits behind it; Postgres ends an automatic
/// vacuum that somebody waits for after 1 s (`deadlock_timeout`).
const VALIDATE_SETTINGS: &str = "SET statement_timeout = 0; SET lock_timeout = '3s'";
/// Makes Postgres end the statement of a dispatcher that is gone, if it has that setting (14 and newer).
const NOTICE_LOSS: &str =
    "SELECT set_config(name, '1000', false) FROM pg_settings WHERE name = 'client_connection_check_interval'";
/// Between two looks at whether Postgres still works on it.
const LOOK: Duration = Duration::from_secs(30);
/// After so many looks that found nothing, the connection counts as lost: an answer may be on its way at the first one.
const LOOKS: u32 = 2;

impl Store {
    /// Says to Postgres that what is kept lies below the end of the oldest partition, and has that validated. Returns false if others
    /// use the tables.
    ///
    /// Validation reads all that is kept, which may take hours, and keeps nobody from reading or writing; it ends when this future is
    /// dropped. Once it has succeeded for a partition, it is not repeated.
    pub async fn bound_kept(&self, partition: Partition) -> Result<bool, StoreError> {
        let number = int(partition.number);
        let add = self.run_apart(async |db| {
            sqlx::raw_sql(ADD_TIMEOUT).execute(&mut **db).await?;
            bound(db, number, false).await
        });
        let done = match add.await {
            Ok(()) => self.validate(number).await,
            failed => failed,
        };
        match done {
            Ok(()) => Ok(true),
            Err(error) if error.is_lock_timeout() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn validate(&self, number: i32) -> Result<(), StoreError> {
        let prepared = async {
            let mut db = self.checkout().await?;
            sqlx::raw_sql(VALIDATE_SETTINGS).execute(&mut *db).await?;
            sqlx::raw_sql(NOTICE_LOSS).execute(&mut *db).await?;
            let backend = sqlx::query_scalar!(r#"SELECT pg_backend_pid() AS "pid!""#).fetch_one(&mut *db).await?;
            Ok((db, backend))
        };
        let (mut db, backend) = self.run(prepared).await?;
        // The connection is closed afterwards, whatever comes of it: its settings are no other statement's.
        self.run_without_limit(async {
            tokio::select! {
                done = bound(&mut db, number, true) => done,
                () = self.until_idle(backend) => {
                    Err(sqlx::Error::Io(io::Error::new(ErrorKind::ConnectionAborted, "the connection was lost")))
                }
            }
        })
        .await
    }

    /// Waits until Postgres works on nothing for this backend. A network that went silent does not say that a connection was lost.
    async fn until_idle(&self, backend: i32) {
        let mut idle = 0;
        while idle < LOOKS {
            sleep(LOOK).await;
            let looked = once_on_connection!(self, |db| {
                let is_active = sqlx::query_scalar!(
                    r#"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND state = 'active') AS "is_active!""#,
                    backend
                );
                is_active.fetch_one(db).await
            });
            // During an outage nobody knows; whatever works on it ends then.
            idle = looked.map_or(idle, |is_active| if is_active { 0 } else { idle + 1 });
        }
    }
}

async fn bound(db: &mut Connection, number: i32, validate: bool) -> Result<(), sqlx::Error> {
    sqlx::query!("SELECT bound_kept_calls($1, $2)", number, validate).execute(&mut **db).await.map(drop)
}
