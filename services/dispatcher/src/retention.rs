//! Prunes calls and conversations that ended long ago, and always what nobody reads any more.

use std::{
    future::ready,
    sync::Arc,
    time::{Duration, Instant},
};

use redial_store::{Pruned, Store, StoreError, Time};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    context::Context,
    partitions::{
        self,
        drop::{Dropping, Slow},
    },
    wait::until,
};

/// Between two passes, at least.
const INTERVAL: Duration = Duration::from_mins(1);
/// Between two looks for pieces that have expired.
const PIECES: Duration = Duration::from_secs(20);
/// A pause is this many times as long as the pass before it: what stays for good is looked at in each.
const REST: u32 = 9;
/// Calls that one statement looks at.
const CALLS: u32 = 1_000;
/// Tasks that one statement looks at: each may be the last of a long conversation.
const TASKS: u32 = 100;
/// After so many batches that were not too large, larger ones are tried again.
const SOON_AGAIN: u32 = 10;
/// Other rows that one statement deletes.
const ROWS: u32 = 1_000;
/// A worker that was not seen for so long is forgotten; with a shorter retention, after that.
const GONE: Duration = Duration::from_hours(24);
/// Late reports, dead letters and redrives are kept for so long if no retention is set.
const KEPT: Duration = Duration::from_hours(30 * 24);
/// What users did is kept for so long, or as long as calls if that is longer. What changed nothing is kept like dead letters.
const ACTIONS_KEPT: Duration = Duration::from_hours(366 * 24);
/// Tokens are kept for so long after their end.
const ENDED_TOKENS: Duration = Duration::from_hours(90 * 24);
/// What is not in the statistics yet is kept for so much longer at most.
const UNCOUNTED: Duration = Duration::from_hours(1);
/// So is what a webhook has not been told of: as long as one delivery is tried.
const UNTOLD: Duration = Duration::from_hours(24);

/// Deletes what nobody reads any more, again and again.
pub(crate) async fn clean_up(context: Arc<Context>, shutdown: CancellationToken) {
    loop {
        let began = Instant::now();
        if let Err(error) = clean(&context, &shutdown).await {
            tracing::warn!(%error, "Failed to clean up");
        }
        if rest(&shutdown, began.elapsed()).await.is_none() {
            return;
        }
    }
}

/// Deletes pieces of bodies that have expired, again and again. Apart from [`clean_up`], whose pauses grow with its work: whoever puts
/// pieces fast must not make them stay.
pub(crate) async fn expire_pieces(context: Arc<Context>, shutdown: CancellationToken) {
    while until(&shutdown, sleep(PIECES)).await.is_some() {
        repeat("pieces", &shutdown, || context.store.delete_expired_pieces(ROWS)).await;
    }
}

/// Deletes calls and conversations that ended long ago, again and again, if a retention is set. Apart from [`clean_up`], because it may
/// take long.
pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let Some(age) = context.config.retention else { return };
    let mut slow = None;
    loop {
        let worked = prune(&context.store, &shutdown, age, &mut slow).await;
        if rest(&shutdown, worked).await.is_none() {
            return;
        }
    }
}

/// Pauses after a pass that took so long; `None` if the dispatcher stops.
async fn rest(shutdown: &CancellationToken, took: Duration) -> Option<()> {
    until(shutdown, sleep(INTERVAL.max(took * REST))).await
}

/// Deletes what would otherwise collect without end, also without a retention.
async fn clean(context: &Context, shutdown: &CancellationToken) -> Result<(), StoreError> {
    let (store, retention) = (&context.store, context.config.retention);
    let now = store.now().await?;
    let (gone, kept) = (now - retention.map_or(GONE, |age| age.min(GONE)), now - retention.unwrap_or(KEPT));
    repeat("workers", shutdown, || store.delete_gone_workers(gone, ROWS)).await;
    repeat("late reports", shutdown, || store.delete_late_reports(kept, ROWS)).await;
    repeat("dead letters", shutdown, || store.delete_dead_letters(kept, ROWS)).await;
    let actions_kept = now - retention.map_or(ACTIONS_KEPT, |age| age.max(ACTIONS_KEPT));
    repeat("actions", shutdown, || store.delete_old_actions(actions_kept, kept, ROWS)).await;
    repeat("redrives", shutdown, || store.delete_old_redrives(kept, ROWS)).await;
    repeat("tokens", shutdown, || store.delete_ended_tokens(now - ENDED_TOKENS, ROWS)).await;
    repeat("tombstones", shutdown, || store.delete_empty_tombstones(now, ROWS)).await;
    repeat("statistics", shutdown, || store.delete_old_stats(now, ROWS)).await;
    Ok(())
}

/// Deletes batches of rows until no full one is left.
async fn repeat<F>(what: &str, shutdown: &CancellationToken, batch: impl Fn() -> F)
where
    F: Future<Output = Result<u64, StoreError>>,
{
    while !shutdown.is_cancelled() {
        match batch().await {
            Ok(rows) => {
                if rows > 0 {
                    tracing::info!(what, rows, "Deleted old rows");
                }
                if rows < u64::from(ROWS) {
                    return;
                }
            }
            Err(error) => return tracing::warn!(what, %error, "Failed to delete old rows"),
        }
    }
}

/// Deletes what ended before this age: conversations, partitions, and single calls. A failure of one part does not keep the others.
/// Returns how long that took.
async fn prune(store: &Store, shutdown: &CancellationToken, age: Duration, slow: &mut Option<Slow>) -> Duration {
    let began = Instant::now();
    let found = async { Ok::<_, StoreError>((cutoff(store, age).await?, store.partitions().await?)) };
    let (cutoff, partitions) = match found.await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "Failed to prune");
            return began.elapsed();
        }
    };
    let plan = partitions::plan(&partitions, cutoff, age);
    let tasks = |after, limit| store.prune_tasks(cutoff, plan.rows_until, after, limit);
    report("tasks", pass(TASKS, shutdown, tasks, |after| store.next_task(after)).await);
    // Calls of tasks that are still on record count as needed, whatever happened to the pass.
    let mut dropping = Dropping::new(store, shutdown, cutoff, slow);
    // If a partition stays, this also deletes what the tasks deleted above have left to it.
    let rows_until = dropping.run(&plan).await;
    let calls = |after, limit| store.prune_calls(cutoff, rows_until, after, limit);
    report("calls", pass(CALLS, shutdown, calls, |_| ready(Ok(None))).await);
    began.elapsed()
}

/// Returns the time before whose ends calls are deleted. It waits for the statistics and for webhooks, but not for
/// long: they may be held up by anything.
async fn cutoff(store: &Store, age: Duration) -> Result<Time, StoreError> {
    let cutoff = store.now().await? - age;
    let counted = store.uncounted_since().await?.unwrap_or(cutoff).max(cutoff - UNCOUNTED);
    let told = store.untold_since().await?.unwrap_or(cutoff).max(cutoff - UNTOLD);
    Ok(cutoff.min(counted).min(told))
}

fn report(what: &str, pass: (u64, Option<StoreError>)) {
    let (deleted, error) = pass;
    if deleted > 0 {
        tracing::info!(what, deleted, "Pruned what ended long ago");
    }
    if let Some(error) = error {
        tracing::warn!(what, %error, "Failed to prune; the next pass begins at the oldest again");
    }
}

/// Goes once through a table, batch by batch, each behind the last id that the one before it looked at. A batch that takes
/// too long is halved; a single row that does is left out: `next` is the id behind another. Returns the number of deleted
/// rows, and the error that ended the pass early.
async fn pass<F, N>(
    mut limit: u32,
    shutdown: &CancellationToken,
    batch: impl Fn(Uuid, u32) -> F,
    next: impl Fn(Uuid) -> N,
) -> (u64, Option<StoreError>)
where
    F: Future<Output = Result<Pruned, StoreError>>,
    N: Future<Output = Result<Option<Uuid>, StoreError>>,
{
    let (mut after, mut deleted, most, mut in_time) = (Uuid::nil(), 0, limit, 0);
    while !shutdown.is_cancelled() {
        match batch(after, limit).await {
            Ok(pruned) => {
                deleted += pruned.deleted;
                let Some(last) = pruned.last else { break };
                after = last;
                in_time += 1;
                if in_time > SOON_AGAIN {
                    (limit, in_time) = (limit.saturating_mul(2).min(most), 0);
                }
            }
            Err(error) if error.is_timeout() && limit > 1 => {
                (limit, in_time) = (limit / 2, 0);
                tracing::debug!(%error, limit, "A batch took too long; trying half of it");
            }
            Err(error) if error.is_timeout() => match next(after).await {
                Ok(Some(slow)) => {
                    tracing::warn!(%error, id = %slow, "What ended with this takes too long to delete; going on behind it");
                    after = slow;
                }
                _ => return (deleted, Some(error)),
            },
            Err(error) => return (deleted, Some(error)),
        }
    }
    (deleted, None)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Deletes from ten rows; each batch of more than three takes too long.
    fn batch(asked: &RefCell<Vec<(u128, u32)>>, after: Uuid, limit: u32) -> Result<Pruned, StoreError> {
        let first = after.as_u128();
        asked.borrow_mut().push((first, limit));
        if limit > 3 {
            return Err(StoreError::Timeout(Duration::from_secs(8)));
        }
        let last = (first + u128::from(limit)).min(10);
        Ok(Pruned {
            deleted: u64::try_from(last - first).unwrap(),
            last: (last > first).then(|| Uuid::from_u128(last)),
        })
    }

    #[tokio::test]
    async fn a_pass_looks_at_each_row_once_and_halves_what_takes_too_long() {
        let asked = RefCell::default();
        let none = |_| ready(Ok(None));
        let (deleted, error) =
            pass(8, &CancellationToken::new(), |after, limit| ready(batch(&asked, after, limit)), none).await;
        assert!(deleted == 10 && error.is_none(), "{deleted} {error:?}");
        assert_eq!(asked.into_inner(), [(0, 8), (0, 4), (0, 2), (2, 2), (4, 2), (6, 2), (8, 2), (10, 2)]);
    }

    #[tokio::test]
    async fn a_row_that_takes_too_long_is_left_out() {
        // The third of five rows.
        let batch = |after: Uuid, limit: u32| {
            let first = after.as_u128();
            let last = (first + u128::from(limit)).min(5);
            if (first + 1..=last).contains(&3) {
                return ready(Err(StoreError::Timeout(Duration::from_secs(8))));
            }
            let deleted = u64::try_from(last - first).unwrap();
            ready(Ok(Pruned { deleted, last: (last > first).then(|| Uuid::from_u128(last)) }))
        };
        let next = |after: Uuid| ready(Ok(Some(Uuid::from_u128(after.as_u128() + 1))));
        let (deleted, error) = pass(4, &CancellationToken::new(), batch, next).await;
        assert!(deleted == 4 && error.is_none(), "{deleted} {error:?}");
    }

    #[tokio::test]
    async fn any_other_error_ends_the_pass() {
        let refused = |_, _| async { Err(StoreError::BadData("refused".to_owned())) };
        let (deleted, error) = pass(8, &CancellationToken::new(), refused, |_| ready(Ok(None))).await;
        assert_eq!((deleted, error.unwrap().to_string()), (0, "unexpected data in the database: refused".to_owned()));
    }
}
