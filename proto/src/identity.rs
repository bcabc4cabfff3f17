//! Who asks: on NATS the subject says it, and the server's permissions fix the subject. No body does.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use strum::{VariantArray, VariantNames};

use crate::{TokenId, names::named};

/// A name that is one token of a NATS subject, of a tenant, a user or a worker identity.
macro_rules! token {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                check_token($what, name).map(|()| Self(name.to_owned()))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

token!(
    /// A tenant: everything that belongs to one is invisible to the others.
    Tenant,
    "tenant"
);
token!(
    /// A person or a program of a tenant.
    User,
    "user"
);
token!(
    /// What the credentials of workers stand for; the workers that share them share the identity.
    WorkerIdentity,
    "worker identity"
);

impl WorkerIdentity {
    /// The identity of workers of this name; what a name of a subject cannot hold becomes `-`.
    pub fn of_name(name: &str) -> Self {
        let fits = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
        let name: String = name.chars().map(fits).take(MAX_NAME).collect();
        Self(if name.is_empty() { "worker".to_owned() } else { name })
    }
}

impl Tenant {
    /// A tenant as it is on record, where its name was checked.
    pub fn on_record(name: &str) -> Self {
        Self(name.to_owned())
    }
}

impl Default for Tenant {
    /// `default`, as long as nothing else is set.
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl Default for User {
    /// `local`, as long as nothing else is set.
    fn default() -> Self {
        Self("local".to_owned())
    }
}

/// The longest name of a tenant, a user or a worker identity, in bytes.
pub const MAX_NAME: usize = 50;

/// Checks the name of a tenant, a user or a worker identity. The error says what is allowed.
pub fn check_token(what: &str, name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    let name = crate::limits::shorten(name, 100);
    Err(format!("{what} {name:?}: 1 to {MAX_NAME} ASCII letters, digits, '-' and '_' are allowed"))
}

/// What a user may do. A user has a set of roles; none includes another.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum UserRole {
    /// Submit and cancel calls and tasks.
    Submit,
    /// Submit tasks whose agents are part of the submission.
    Inline,
    /// Read calls and tasks, and listen to their events.
    Read,
    /// Run ended calls again.
    Operate,
    /// Manage tools and tokens, and erase conversations and the tenant.
    Admin,
    /// Create tokens that may do more, or end later, than the token that asks for them; list and revoke tokens.
    Tokens,
}

named!(UserRole, "a role");

/// The way in by which a request came, as its sender says: the server of NATS does not tell. It gives no rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, VariantArray, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Door {
    /// A client of NATS.
    #[default]
    Nats,
    /// A gateway, for a program that showed it a token.
    Http,
}

named!(Door, "a way in");

/// Who sent a request, as its subject says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The tenant, within which everything happens.
    pub tenant: Tenant,
    /// The user.
    pub user: User,
    /// The role that the request was sent in.
    pub role: UserRole,
    /// The way in.
    pub door: Door,
    /// The token that a gateway was shown, as it says.
    pub token: Option<TokenId>,
}

/// Which worker sent a request, as its subject says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkerCaller {
    /// The identity.
    pub identity: WorkerIdentity,
    /// The pools of the identity, as one token: see [`crate::subjects::pools_token`].
    pools: String,
}

impl WorkerCaller {
    pub(crate) fn new(identity: WorkerIdentity, pools: &str) -> Self {
        Self { identity, pools: pools.to_owned() }
    }

    /// Whether the identity may serve this pool.
    pub fn may_serve(&self, pool: &str) -> bool {
        self.pools == ANY_POOL || self.pools.split('+').any(|one| one == pool)
    }

    /// The pools, for an error.
    pub fn pools(&self) -> &str {
        &self.pools
    }
}

/// The token for "any pool", which is no name of a pool.
pub const ANY_POOL: &str = "+";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_token() {
        for name in ["", "a.b", "a b", "*", ">", "ä", "a\n", &"a".repeat(MAX_NAME + 1)] {
            assert!(name.parse::<Tenant>().unwrap_err().contains("are allowed"), "{name:?}");
        }
        assert_eq!("acme-1_b".parse::<Tenant>().unwrap().as_str(), "acme-1_b");
        assert!(serde_json::from_str::<User>("\"a.b\"").is_err());
    }
}
