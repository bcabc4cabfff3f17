//! Erases a conversation, or everything of a tenant: in transactions of bounded size, each of which also writes into the
//! tombstone how far it came.
//!
//! What a tombstone promises, and how:
//! - Only what was submitted before its time is erased, and all of that. Work that was under way at that time is over before
//!   anything is deleted ([`Store::writers_are_gone`]).
//! - Nothing that has not ended is deleted, so every guard of every other statement stays true.
//! - Nothing of it comes back: a redrive writes only if its call is on record and not about to be erased, a late report and a
//!   dead letter keep their content only while the calls that they name are on record. These statements lock those calls, and
//!   a step here locks calls before it deletes what belongs to them.

mod calls;
mod count;
mod letters;
mod look;
mod open;
mod statistics;
mod step;
mod tasks;
mod tombstone;

pub use open::{OpenCalls, OpenTask};
pub use tombstone::{NewErasure, Phase, Scope, Tombstone};

use crate::connect::{Store, Transaction};

/// Begins a transaction whose plans are made for their parameters: one for any scope would follow no index.
async fn begin(store: &Store) -> Result<Transaction, sqlx::Error> {
    let mut transaction = store.begin().await?;
    sqlx::raw_sql("SET LOCAL plan_cache_mode = force_custom_plan").execute(&mut *transaction).await?;
    Ok(transaction)
}
