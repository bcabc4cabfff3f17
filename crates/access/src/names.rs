//! Names of tenants, users and worker identities. They are tokens of subjects.

use redial_proto::limits::shorten;

/// A tenant of this name would have users that are named like workers.
const RESERVED_TENANT: &str = "worker";

/// Checks the name of a tenant, a user or a worker identity. The error says what is allowed.
pub(crate) fn check(what: &str, name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !(1..=64).contains(&name.len()) || !name.chars().all(fits) {
        let name = shorten(name, 100);
        return Err(format!("{what} {name:?}: 1 to 64 ASCII letters, digits, '_' and '-' are allowed"));
    }
    if what == "tenant" && name == RESERVED_TENANT {
        return Err(format!("tenant {name:?}: its users would be named like workers; choose another name"));
    }
    Ok(())
}

/// The NATS user of a user of a tenant.
pub(crate) fn of_user(tenant: &str, user: &str) -> String {
    format!("{tenant}.{user}")
}

/// The NATS user of a worker identity.
pub(crate) fn of_worker(identity: &str) -> String {
    format!("worker.{identity}")
}
