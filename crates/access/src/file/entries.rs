//! The tables of the file as they are written, and what is wrong with their values. A message begins with the path of its field.

use std::collections::BTreeSet;

use redial_proto::{UserRole, limits::shorten, subjects::pools_token, tool::check_name};
use serde::Deserialize;

use crate::{BudgetLimits, CallLimits, Password, TenantPolicy, UserEntry, WorkerEntry};

/// Pools of one worker identity; each gives it the rights to 16 consumers.
const MAX_POOLS: usize = 16;
/// Connections of a user, unless the file says otherwise. Forty that did not read took 1.3 GB of nats-server (measured).
const CONNECTIONS: u32 = 64;
/// What nats-server takes of all accounts together by default.
const MAX_CONNECTIONS: u32 = 65_536;
/// Patterns of one list.
const MAX_PATTERNS: usize = 200;

pub(super) const PASSWORD: Required = Required {
    field: "password",
    stand_in: "\"$X\"",
    allowed: "\"$NAME\" with the name of an environment variable, or a bcrypt hash",
};
pub(super) const ROLES: Required = Required {
    field: "roles",
    stand_in: "[\"read\"]",
    allowed: "a list of submit, inline, read, operate, admin, tokens",
};
pub(super) const POOLS: Required =
    Required { field: "pools", stand_in: "[\"default\"]", allowed: "a list of names of pools, such as [\"default\"]" };

/// A field that must be there.
pub(super) struct Required {
    pub(super) field: &'static str,
    /// TOML that is read in place of a wrong value, so that the other fields are checked, too.
    pub(super) stand_in: &'static str,
    /// What is allowed, in words.
    pub(super) allowed: &'static str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawService {
    pub(super) user: Option<String>,
    pub(super) password: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTenant {
    tools: Option<Vec<String>>,
    models: Option<Vec<String>>,
    agents: Option<Vec<String>>,
    #[serde(default)]
    budgets: BudgetLimits,
    #[serde(default)]
    calls: CallLimits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawUser {
    roles: Vec<UserRole>,
    connections: Option<u32>,
    password: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWorker {
    pools: Vec<String>,
    password: String,
}

pub(super) fn policy(entry: RawTenant) -> Result<TenantPolicy, String> {
    for (field, patterns) in [("tools", &entry.tools), ("models", &entry.models), ("agents", &entry.agents)] {
        let patterns = patterns.as_deref().unwrap_or_default();
        if patterns.len() > MAX_PATTERNS {
            return Err(format!("{field} holds {} patterns; allowed: {MAX_PATTERNS}", patterns.len()));
        }
        let wrong = |pattern: &&String| check_name(field, &pattern.replace('*', "_")).is_err();
        if let Some(wrong) = patterns.iter().find(wrong) {
            let wrong = shorten(wrong, 100);
            return Err(format!("{field} has {wrong:?}; allowed: names, in which '*' stands for any text"));
        }
    }
    entry.budgets.mistakes().into_iter().next().map_or(Ok(()), Err)?;
    entry.calls.mistakes().into_iter().next().map_or(Ok(()), Err)?;
    let RawTenant { tools, models, agents, budgets, calls } = entry;
    Ok(TenantPolicy { tools, models, agents, budgets, calls })
}

pub(super) fn user(entry: RawUser) -> Result<UserEntry, String> {
    let roles: BTreeSet<UserRole> = entry.roles.into_iter().collect();
    if roles.is_empty() {
        return Err(format!("roles is empty; allowed: {}", ROLES.allowed));
    }
    let connections = entry.connections.unwrap_or(CONNECTIONS);
    if !(1..=MAX_CONNECTIONS).contains(&connections) {
        return Err(format!("connections is {connections}; allowed: 1 to {MAX_CONNECTIONS}"));
    }
    Ok(UserEntry { roles, connections, password: Password::parse(&entry.password)? })
}

pub(super) fn worker(entry: RawWorker) -> Result<WorkerEntry, String> {
    let count = entry.pools.len();
    if !(1..=MAX_POOLS).contains(&count) {
        return Err(format!("pools holds {count} names; allowed: 1 to {MAX_POOLS}"));
    }
    for pool in &entry.pools {
        check_name("pools", pool)?;
    }
    let pools_token = pools_token(entry.pools.iter().map(String::as_str)).map_err(|wrong| format!("pools: {wrong}"))?;
    let password = Password::parse(&entry.password)?;
    Ok(WorkerEntry { pools: entry.pools.into_iter().collect(), pools_token, password })
}
