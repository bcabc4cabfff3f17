//! Ids by their first characters.

use uuid::Uuid;

use crate::{Store, StoreError, Time};

/// A call or a task that an id names.
#[derive(Clone, Debug)]
pub struct Named {
    pub id: Uuid,
    /// Whether it is a task; else it is a call.
    pub is_task: bool,
    /// The tool of a call, the agent of a task.
    pub name: Option<String>,
    pub state: String,
    /// When it was accepted.
    pub submitted_at: Time,
}

/// The closest other ids on record, of calls and of tasks.
struct Neighbours {
    id: Uuid,
    call_before: Option<Uuid>,
    call_after: Option<Uuid>,
    task_before: Option<Uuid>,
    task_after: Option<Uuid>,
}

impl Store {
    /// Returns calls and tasks whose ids lie in a range, in order of their ids; of either the first `limit`.
    pub async fn ids_between(&self, first: Uuid, last: Uuid, limit: u32) -> Result<Vec<Named>, StoreError> {
        let mut named = on_connection!(self, |db| {
            sqlx::query_file_as!(Named, "sql/ids_between.sql", first, last, i64::from(limit)).fetch_all(db).await
        })?;
        named.sort_by_key(|named| named.id);
        Ok(named)
    }

    /// Counts for each id the hexadecimal digits that no other call or task on record begins with, in no order.
    pub async fn unique_digits(&self, ids: &[Uuid]) -> Result<Vec<(Uuid, usize)>, StoreError> {
        let rows =
            on_connection!(self, |db| sqlx::query_file_as!(Neighbours, "sql/neighbours.sql", ids).fetch_all(db).await)?;
        Ok(rows.iter().map(|row| (row.id, row.digits())).collect())
    }
}

impl Neighbours {
    fn digits(&self) -> usize {
        let others = [self.call_before, self.call_after, self.task_before, self.task_after];
        let shared = |other: Uuid| (self.id.as_u128() ^ other.as_u128()).leading_zeros() as usize / 4;
        others.into_iter().flatten().map(shared).max().unwrap_or(0) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_as_long_as_its_closest_neighbour_asks() {
        let id = |text: &str| Some(text.parse::<Uuid>().unwrap());
        let mine = "01936b1c-0000-7000-8000-000000000001";
        let alone = Neighbours {
            id: id(mine).unwrap(),
            call_before: None,
            call_after: None,
            task_before: None,
            task_after: None,
        };
        assert_eq!(alone.digits(), 1);
        let second = Neighbours { call_before: id("01936b1b-ffff-7000-8000-000000000001"), ..alone };
        assert_eq!(second.digits(), 8);
        let third = Neighbours { task_after: id("01936b1c-0000-7000-8000-000000000002"), ..second };
        assert_eq!(third.digits(), 32);
    }
}
