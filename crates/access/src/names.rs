//! Names of tenants, users and worker identities. They are tokens of subjects.

use redial_proto::check_token;

/// A tenant of this name would have users that are named like workers.
const RESERVED_TENANT: &str = "worker";

/// Checks the name of a tenant, a user or a worker identity. The error says what is allowed.
pub(crate) fn check(what: &str, name: &str) -> Result<(), String> {
    check_token(what, name)?;
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
