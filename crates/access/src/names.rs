//! Names of tenants, users and worker identities. They are tokens of subjects.

use redial_proto::{Tenant, User, WorkerIdentity};

/// A tenant of this name would have users that are named like workers.
const RESERVED_TENANT: &str = "worker";

/// Reads the name of a tenant. The error says what is allowed.
pub(crate) fn tenant(name: &str) -> Result<Tenant, String> {
    if name == RESERVED_TENANT {
        return Err(format!("tenant {name:?}: its users would be named like workers; choose another name"));
    }
    name.parse()
}

pub(crate) fn of_user(tenant: &Tenant, user: &User) -> String {
    format!("{tenant}.{user}")
}

pub(crate) fn of_worker(identity: &WorkerIdentity) -> String {
    format!("worker.{identity}")
}

pub(crate) fn account_of_user(tenant: &Tenant, user: &User) -> String {
    format!("{tenant}/{user}")
}

pub(crate) fn account_of_worker(identity: &WorkerIdentity) -> String {
    format!("worker/{identity}")
}
