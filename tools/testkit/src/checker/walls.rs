//! No byte of one tenant reaches the other. What a test does for a tenant carries the tenant's canary; the checker looks for
//! the canaries of others in every row of a tenant, and an [`Ear`] in everything that somebody receives.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use redial_proto::{CallId, TaskId};
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::violation::{Invariant, Subject, Violation};

/// The beginning of each canary; the tenant follows. `strays.sql` looks for the same.
const MARK: &[u8] = b"canary-of-";

/// Returns a word that only this tenant may see.
pub fn canary(tenant: &str) -> String {
    format!("canary-of-{tenant}")
}

/// A row of a tenant with something of another one.
#[derive(Clone, Debug)]
pub struct Stray {
    table: String,
    tenant: String,
    /// Whose canary it holds.
    owner: String,
    about: Subject,
}

impl Stray {
    /// Reads the rows. One that is known to belong to no tenant, such as a report that could not be read, is nobody's
    /// to see.
    pub(super) async fn read(db: &mut PgConnection) -> Vec<Self> {
        let rows = sqlx::query(include_str!("strays.sql")).fetch_all(db).await.unwrap();
        let stray = |row: &sqlx::postgres::PgRow| {
            let call = row.get::<Option<Uuid>, _>("call").map(|id| Subject::Call(CallId(id)));
            let task = row.get::<Option<Uuid>, _>("task").map(|id| Subject::Task(TaskId(id)));
            let about = call.or(task).unwrap_or(Subject::Tenant);
            Self { table: row.get("place"), tenant: row.get("tenant"), owner: row.get("owner"), about }
        };
        rows.iter().map(stray).collect()
    }
}

/// What somebody received, as far as it carries canaries.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    pub by: String,
    /// The tenant whose canary it may receive; `None` if it may receive none.
    pub tenant: Option<String>,
    /// Messages in all.
    pub messages: u64,
    /// By tenant: how many messages carried its canary, and where the first one of them arrived.
    pub canaries: BTreeMap<String, (u64, String)>,
}

/// Listens for somebody. Clones hear for the same.
#[derive(Clone, Debug)]
pub struct Ear(Arc<Mutex<Heard>>);

impl Ear {
    /// Listens for somebody of a tenant, or of none.
    pub fn new(by: impl Into<String>, tenant: Option<&str>) -> Self {
        let heard = Heard { by: by.into(), tenant: tenant.map(str::to_owned), ..Heard::default() };
        Self(Arc::new(Mutex::new(heard)))
    }

    /// Searches what arrived there.
    pub fn hear(&self, place: &str, message: &[u8]) {
        let mut owners = owners(message);
        owners.sort_unstable();
        owners.dedup();
        let mut heard = self.0.lock();
        heard.messages += 1;
        for owner in owners {
            heard.canaries.entry(owner).or_insert_with(|| (0, place.to_owned())).0 += 1;
        }
    }

    pub fn heard(&self) -> Heard {
        self.0.lock().clone()
    }
}

/// Returns the tenants whose canaries occur.
fn owners(message: &[u8]) -> Vec<String> {
    let mut owners = Vec::new();
    let mut rest = message;
    while let Some(at) = rest.windows(MARK.len()).position(|part| part == MARK) {
        rest = &rest[at + MARK.len()..];
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'_' | b'-');
        let length = rest.iter().take_while(is_name).count();
        owners.push(String::from_utf8_lossy(&rest[..length]).into_owned());
    }
    owners
}

/// Finds everything of one tenant that reached another one.
pub(super) fn check(strays: &[Stray], heard: &[Heard]) -> Vec<Violation> {
    let rows = strays.iter().map(|stray| {
        let Stray { table, tenant, owner, about } = stray;
        let found = format!("a row of {table} of tenant {tenant:?} holds something of {owner:?}");
        Violation { invariant: Invariant::TenantsApart, about: *about, found }
    });
    let heard = heard.iter().flat_map(|heard| {
        let foreign = heard.canaries.iter().filter(|(owner, _)| Some(*owner) != heard.tenant.as_ref());
        foreign.map(|(owner, (messages, place))| {
            let found = format!(
                "{} of tenant {:?} received {messages} messages with something of {owner:?}, the first on {place}",
                heard.by, heard.tenant
            );
            Violation { invariant: Invariant::TenantsApart, about: Subject::Tenant, found }
        })
    });
    rows.chain(heard).collect()
}
