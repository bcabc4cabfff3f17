//! Who sent a request.

use std::collections::BTreeSet;

use redial_proto::{Code, Tenant, TokenId, User, UserRole};

use redial_store::Time;

use crate::{limits::RequestLimits, problem::Problem, sessions::SessionHash};

/// Who sent a request, as its token and the access file say.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) tenant: Tenant,
    pub(crate) user: User,
    /// The roles of the token that its user had when the request came.
    pub(crate) roles: BTreeSet<UserRole>,
    pub(crate) of_token: BTreeSet<UserRole>,
    /// Those of the roles that the address of the request asks for: when one of them is lost, what was let in by it ends.
    pub(crate) let_in_by: BTreeSet<UserRole>,
    /// What the token may still do now.
    pub(crate) limits: RequestLimits,
    /// `None` where no token is needed.
    pub(crate) token: Option<TokenId>,
    pub(crate) session: Option<SessionHash>,
    /// When the session, or else the token, ends.
    pub(crate) expires_at: Option<Time>,
}

impl Identity {
    /// Makes a user of a tenant with all roles of its token, at no address yet.
    pub(crate) fn new(
        (tenant, user): (Tenant, User),
        roles: BTreeSet<UserRole>,
        limits: RequestLimits,
        token: Option<TokenId>,
    ) -> Self {
        Self {
            tenant,
            user,
            of_token: roles.clone(),
            roles,
            let_in_by: BTreeSet::new(),
            limits,
            token,
            session: None,
            expires_at: None,
        }
    }

    /// Returns the same at an address that asks for one of these roles.
    pub(crate) fn let_in(self, roles: &[UserRole]) -> Self {
        let let_in_by = roles.iter().filter(|role| self.roles.contains(role)).copied().collect();
        Self { let_in_by, ..self }
    }

    /// Says why a request is refused that needs one of these roles.
    pub(crate) fn lacks(&self, roles: &[UserRole]) -> Problem {
        let list =
            |roles: &mut dyn Iterator<Item = &UserRole>| roles.map(|role| role.as_str()).collect::<Vec<_>>().join(", ");
        let wanted = list(&mut roles.iter());
        let has = match self.roles.len() {
            0 => "no role".to_owned(),
            _ => format!("the roles {}", list(&mut self.roles.iter())),
        };
        let taken = list(&mut roles.iter().filter(|role| self.of_token.contains(role)));
        let message = if taken.is_empty() {
            format!("the token has {has}; allowed: one of {wanted}")
        } else {
            let Self { user, tenant, .. } = self;
            format!(
                "user {user} of tenant {tenant} does not have the role {taken} in the gateway's access file, which leaves the \
                 token {has}; allowed: one of {wanted}"
            )
        };
        Problem::new(Code::Forbidden, message)
    }
}
