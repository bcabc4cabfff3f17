//! Who may do what: `access.toml` names the users of each tenant with their roles, the workers with their pools, and the
//! limits of a tenant. `redial nats-config` writes the configuration of nats-server from it, and dispatchers read the limits.
//!
//! Pure: nothing here reads a file or the environment.

mod accounts;
mod file;
mod names;
mod password;
mod policy;
mod server;
mod types;
mod warnings;

pub use crate::{
    accounts::{Account, Direction, Export, Import, Limits},
    password::Password,
    policy::{BudgetLimits, CallLimits, TenantPolicy},
    server::server_configuration,
    types::{Access, ServiceLogin, TenantEntry, UserEntry, WorkerEntry},
};

use std::collections::BTreeSet;

use redial_proto::{ApiError, Code, Tenant, User, UserRole};

impl Access {
    /// Reads a text of TOML. The error has one line for each mistake, with the file, its line and column.
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<String>> {
        file::read(file, text)
    }

    /// Reads a text as [`Access::read`] does; joins all lines into one error.
    pub fn parse(file: &str, text: &str) -> Result<Self, ApiError> {
        Self::read(file, text).map_err(|mistakes| ApiError::new(Code::InvalidConfiguration, mistakes.join("\n")))
    }

    /// Returns the limits of a tenant; `None` if the file does not name it.
    pub fn tenant(&self, name: &Tenant) -> Option<&TenantPolicy> {
        self.tenants.get(name).map(|tenant| &tenant.policy)
    }

    /// Returns the roles of a user; `None` if the file does not name it.
    pub fn roles_of(&self, tenant: &Tenant, user: &User) -> Option<&BTreeSet<UserRole>> {
        self.tenants.get(tenant)?.users.get(user).map(|user| &user.roles)
    }

    /// Returns what nats-server has to know: an account for the dispatchers, one for the gateways, and one for each
    /// user and each worker identity.
    pub fn accounts(&self) -> Vec<Account> {
        accounts::accounts(self)
    }
}
