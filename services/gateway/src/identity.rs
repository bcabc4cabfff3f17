//! Who sent a request.

use std::collections::BTreeSet;

use redial_proto::{Code, Tenant, TokenId, User, UserRole};

use crate::{limits::RequestLimits, problem::Problem};

/// Who sent a request, as its token says.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) tenant: Tenant,
    pub(crate) user: User,
    pub(crate) roles: BTreeSet<UserRole>,
    /// What the token may still do now.
    pub(crate) limits: RequestLimits,
    /// The token itself; `None` where none is needed.
    pub(crate) token: Option<TokenId>,
}

impl Identity {
    /// Why a request is refused that needs one of these roles.
    pub(crate) fn lacks(&self, roles: &[UserRole]) -> Problem {
        let list =
            |roles: &mut dyn Iterator<Item = &UserRole>| roles.map(|role| role.as_str()).collect::<Vec<_>>().join(", ");
        let (has, wanted) = (list(&mut self.roles.iter()), list(&mut roles.iter()));
        Problem::new(Code::Forbidden, format!("the token has the roles {has}; allowed: one of {wanted}"))
    }
}
