//! What a valid file says.

use std::collections::{BTreeMap, BTreeSet};

use redial_proto::{Tenant, User, UserRole, WorkerIdentity};

use crate::{Password, TenantPolicy};

/// The login of the dispatchers, or of the gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceLogin {
    /// Name of the NATS user.
    pub user: String,
    pub password: Password,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserEntry {
    /// What it may do; at least one.
    pub roles: BTreeSet<UserRole>,
    /// Connections to NATS at the same time.
    pub connections: u32,
    pub password: Password,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TenantEntry {
    /// What its users may use at all.
    pub policy: TenantPolicy,
    pub users: BTreeMap<User, UserEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerEntry {
    /// The pools that it may serve; at least one.
    pub pools: BTreeSet<String>,
    /// The pools as one token of subjects.
    pub pools_token: String,
    pub password: Password,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    pub dispatcher: ServiceLogin,
    /// `None`: there are no gateways.
    pub gateway: Option<ServiceLogin>,
    pub tenants: BTreeMap<Tenant, TenantEntry>,
    pub workers: BTreeMap<WorkerIdentity, WorkerEntry>,
    /// What is allowed but probably not meant: a line each, with the position in the file.
    pub warnings: Vec<String>,
}
