//! What a valid file says.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Password, TenantPolicy};

/// What a person or a program may do. No role implies another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Submit and cancel calls and tasks.
    Submit,
    /// Submit tasks with an agent of one's own.
    Inline,
    /// Read calls and tasks, and hear how they go on.
    Read,
    /// Redrive calls.
    Operate,
    /// Forget tools, conversations and tenants; accept tools.
    Admin,
}

impl Role {
    /// As it is written in the file and in subjects.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Inline => "inline",
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    /// What it allows, as a sentence goes on after "may".
    pub const fn allows(self) -> &'static str {
        match self {
            Self::Submit => "submit and cancel calls and tasks",
            Self::Inline => "submit tasks with an agent of its own",
            Self::Read => "read calls and tasks and hear their events",
            Self::Operate => "redrive calls",
            Self::Admin => "accept and forget tools, forget conversations and the tenant",
        }
    }
}

/// The login of the dispatchers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatcher {
    /// Name of the NATS user.
    pub user: String,
    /// How it proves that.
    pub password: Password,
}

/// A user of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// What it may do; at least one.
    pub roles: BTreeSet<Role>,
    /// How it proves who it is.
    pub password: Password,
}

/// A tenant with its users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tenant {
    /// What its users may use at all.
    pub policy: TenantPolicy,
    /// By name.
    pub users: BTreeMap<String, User>,
}

/// The credentials of a group of workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerIdentity {
    /// The pools that it may serve; at least one.
    pub pools: BTreeSet<String>,
    /// How it proves who it is.
    pub password: Password,
}

/// A valid file.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The dispatchers.
    pub dispatcher: Dispatcher,
    /// By name.
    pub tenants: BTreeMap<String, Tenant>,
    /// By name.
    pub workers: BTreeMap<String, WorkerIdentity>,
    /// What is allowed but probably not meant: a line each, with the position in the file.
    pub warnings: Vec<String>,
}
