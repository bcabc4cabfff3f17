//! The test's database, asked and changed without the store.

use redial_testkit::until;
use sqlx::{AssertSqlSafe, FromRow, postgres::PgRow};

use super::Stack;

impl Stack {
    /// Runs statements. A dispatcher may lock the same tables in another order, so they may be chosen to end a deadlock, and
    /// run again.
    pub async fn execute(&self, statements: &str) {
        let run = || sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&self.db);
        until("no deadlock ends the statements", async || match run().await {
            Ok(_) => Some(()),
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("40P01") => None,
            Err(error) => panic!("{error}: {statements}"),
        })
        .await;
    }

    pub async fn rows<R: for<'r> FromRow<'r, PgRow> + Send + Unpin>(&self, query: &str) -> Vec<R> {
        sqlx::query_as(AssertSqlSafe(query.to_owned())).fetch_all(&self.db).await.unwrap()
    }

    /// Returns the values of a query for one column.
    pub async fn values<T: Send + Unpin>(&self, query: &str) -> Vec<T>
    where
        (T,): for<'r> FromRow<'r, PgRow>,
    {
        self.rows::<(T,)>(query).await.into_iter().map(|(value,)| value).collect()
    }

    /// Returns the value of a query for one column of one row.
    pub async fn value<T: Send + Unpin>(&self, query: &str) -> T
    where
        (T,): for<'r> FromRow<'r, PgRow>,
    {
        let value = self.values(query).await.pop();
        value.unwrap_or_else(|| panic!("no row: {query}"))
    }

    /// Waits until a query for one truth is true; while it has no row, it is not.
    pub async fn holds(&self, what: &str, query: &str) {
        until(what, async || self.values(query).await.contains(&true).then_some(())).await;
    }

    /// Counts the rows of a table, perhaps with a condition.
    pub async fn count(&self, from: &str) -> i64 {
        self.value(&format!("SELECT count(*) FROM {from}")).await
    }

    /// Waits until a table has so many rows, perhaps with a condition.
    pub async fn counts(&self, wanted: i64, from: &str) {
        self.holds(&format!("{wanted} rows of {from}"), &format!("SELECT count(*) = {wanted} FROM {from}")).await;
    }
}
