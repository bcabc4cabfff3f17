//! Sessions of browsers that signed in with a token.

use std::time::Duration;

use redial_proto::TokenId;

use crate::{StoreError, Time, connect::Store};

const MAX_SESSIONS: i32 = 20;

/// A session as a gateway needs it.
#[derive(Clone, Debug)]
pub struct SessionRecord {
    pub token: TokenId,
    pub expires_at: Time,
    /// When this was read, by the database's clock.
    pub read_at: Time,
}

impl SessionRecord {
    /// True if it has expired this long after it was read.
    pub fn has_ended_by(&self, since_read: Duration) -> bool {
        self.expires_at <= self.read_at + since_read
    }
}

impl Store {
    /// Signs a browser in with a token, for so long at most; `None` if the token has ended. `hash` is the SHA-256 of
    /// the session's id. A token has 20 sessions at most: the oldest goes.
    pub async fn create_session(
        &self,
        hash: [u8; 32],
        token: &TokenId,
        longest: Duration,
    ) -> Result<Option<Time>, StoreError> {
        let seconds = longest.as_secs_f64();
        on_connection!(self, |db| {
            let created = sqlx::query_file_scalar!(
                "sql/create_session.sql",
                hash.as_slice(),
                token.as_str(),
                seconds,
                MAX_SESSIONS
            );
            created.fetch_optional(db).await
        })
    }

    /// Returns a session by the SHA-256 of its id; `None` if it is not on record.
    pub async fn session(&self, hash: [u8; 32]) -> Result<Option<SessionRecord>, StoreError> {
        let found = on_connection!(self, |db| {
            let found = sqlx::query!(
                r#"SELECT token, expires_at, clock_timestamp() AS "read_at!" FROM sessions WHERE sha256 = $1"#,
                hash.as_slice()
            );
            found.fetch_optional(db).await
        })?;
        let Some(row) = found else { return Ok(None) };
        let token = row.token.parse().map_err(|error| StoreError::BadData(format!("a session: {error}")))?;
        Ok(Some(SessionRecord { token, expires_at: row.expires_at, read_at: row.read_at }))
    }

    pub async fn end_session(&self, hash: [u8; 32]) -> Result<(), StoreError> {
        on_connection!(self, |db| {
            sqlx::query!("DELETE FROM sessions WHERE sha256 = $1", hash.as_slice()).execute(db).await
        })
        .map(|_| ())
    }
}
