//! Retry budgets: tokens per tool, shared by all dispatchers. The arithmetic is the caller's.

use crate::{Store, StoreError};

impl Store {
    /// Lets `spend` change the bucket of each of these tools, one dispatcher at a time. It gets the tool, its tokens
    /// (`None` for a tool without a bucket) and the seconds since their last change, and returns the new tokens.
    pub async fn spend_budgets(
        &self,
        tools: &[String],
        mut spend: impl FnMut(&str, Option<f64>, f64) -> f64,
    ) -> Result<(), StoreError> {
        self.run(async |db| {
            let mut transaction = sqlx::Connection::begin(db).await?;
            let rows = sqlx::query!(
                r#"SELECT tool, tokens,
                          extract(epoch FROM clock_timestamp() - updated_at)::double precision AS "seconds!"
                   FROM retry_budgets WHERE tool = ANY($1) ORDER BY tool FOR UPDATE"#,
                tools,
            )
            .fetch_all(&mut *transaction)
            .await?;
            let tokens: Vec<f64> = tools
                .iter()
                .map(|tool| match rows.iter().find(|row| row.tool == *tool) {
                    Some(row) => spend(tool, Some(row.tokens), row.seconds),
                    None => spend(tool, None, 0.0),
                })
                .collect();
            sqlx::query!(
                "INSERT INTO retry_budgets (tool, tokens)
                 SELECT * FROM UNNEST($1::text[], $2::double precision[])
                 ON CONFLICT (tool) DO UPDATE SET tokens = EXCLUDED.tokens, updated_at = clock_timestamp()",
                tools,
                &tokens,
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await
        })
        .await
    }
}
