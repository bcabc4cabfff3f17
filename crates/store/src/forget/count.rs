//! Counts what an erasure would erase.

use redial_proto::{ForgetCounts, ForgetReply, OpenWork};

use super::{begin, letters, tombstone::Scope};
use crate::{StoreError, columns::unsigned, connect::Store};

/// What is counted of each kind.
const MOST: i64 = 100_000;

impl Store {
    /// Counts up to 100,000 of each kind. What takes too long is not counted, and the answer says that there is more.
    pub async fn count_erasure(&self, scope: &Scope) -> Result<ForgetReply, StoreError> {
        let (tenant, conversation) = (scope.tenant.as_str(), scope.conversation.as_deref());
        let mut reply = ForgetReply { done: true, ..ForgetReply::default() };
        // What took too long once would do so again.
        let may_pass = |error: &StoreError| error.is_transient() && !error.is_timeout();
        let tasks = self.run_again_if(may_pass, || async {
            let mut db = begin(self).await?;
            let row = sqlx::query_file!("sql/forget_count_tasks.sql", tenant, conversation, MOST);
            let row = row.fetch_one(&mut *db).await?;
            db.commit().await?;
            let counts = ForgetCounts {
                tasks: unsigned(row.tasks),
                messages: unsigned(row.messages),
                steps: unsigned(row.steps),
                keys: unsigned(row.keys),
                tokens: unsigned(row.tokens),
                ..ForgetCounts::default()
            };
            Ok((counts, OpenWork { tasks: unsigned(row.open), calls: 0 }))
        });
        add(&mut reply, tasks.await)?;
        let calls = self.run_again_if(may_pass, || async {
            let mut db = begin(self).await?;
            let row = sqlx::query_file!("sql/forget_count_calls.sql", tenant, conversation, MOST);
            let row = row.fetch_one(&mut *db).await?;
            db.commit().await?;
            let counts = ForgetCounts {
                calls: unsigned(row.calls),
                model_turns: unsigned(row.model_turns),
                attempts: unsigned(row.attempts),
                late_reports: unsigned(row.late_reports),
                keys: unsigned(row.keys),
                ..ForgetCounts::default()
            };
            Ok((counts, OpenWork { tasks: 0, calls: unsigned(row.open) }))
        });
        add(&mut reply, calls.await)?;
        let mut after = Some(0);
        while let Some(letter) = after {
            let (dead_letters, last) = on_connection!(self, |db| letters::count(&mut *db, scope, letter).await)?;
            reply.counts.dead_letters += dead_letters;
            after = last;
        }
        Ok(reply)
    }
}

fn add(reply: &mut ForgetReply, counted: Result<(ForgetCounts, OpenWork), StoreError>) -> Result<(), StoreError> {
    let (counts, open) = match counted {
        Err(error) if error.is_timeout() => {
            reply.more = true;
            return Ok(());
        }
        counted => counted?,
    };
    reply.counts.add(&counts);
    reply.open = OpenWork { tasks: reply.open.tasks + open.tasks, calls: reply.open.calls + open.calls };
    let ForgetCounts { tasks, messages, steps, calls, attempts, late_reports, .. } = counts;
    reply.more |= [tasks, messages, steps, calls, attempts, late_reports].contains(&unsigned(MOST));
    Ok(())
}
