//! What the access file gives the users of tokens, as it is now. A token may be older than the file.

use std::{collections::BTreeSet, future::pending, path::PathBuf, sync::Arc, time::Instant};

use redial_access::Access;
use redial_proto::{ApiError, UserRole};
use redial_reread::{CHECK_INTERVAL, Reread};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{identity::Identity, problem::Problem, refusals::Reason};

/// The last valid version of the access file. Without a file every token has its roles, and nobody loses one.
pub(crate) struct Rights {
    file: Reread<Access>,
    /// What the file said when it was last read. Streams and waits are told of each change.
    now: watch::Sender<Option<Arc<Access>>>,
}

impl Rights {
    /// Reads the file. A bad one is an error that names all mistakes.
    pub(crate) async fn load(file: Option<PathBuf>) -> Result<Self, ApiError> {
        let file = Reread::load(file, "access file", Access::parse).await?;
        let now = watch::Sender::new(file.at(Instant::now()).await.value);
        Ok(Self { file, now })
    }

    /// Reads the file again when it has changed, until the shutdown.
    pub(crate) async fn follow(&self, shutdown: &CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
                () = shutdown.cancelled() => return,
            }
            self.tell(self.file.at(Instant::now()).await.value);
        }
    }

    fn tell(&self, read: Option<Arc<Access>>) {
        self.now.send_if_modified(|now| {
            let is_same = match (&*now, &read) {
                (Some(now), Some(read)) => Arc::ptr_eq(now, read),
                (now, read) => now.is_none() && read.is_none(),
            };
            *now = read;
            !is_same
        });
    }

    /// Returns somebody with a token in the roles that count now. Fails if the file does not name the user.
    pub(crate) fn narrow(&self, who: Identity) -> Result<Identity, Problem> {
        let roles = given(self.now.borrow().as_deref(), &who).ok_or_else(|| no_user(&who))?;
        Ok(Identity { roles, ..who })
    }

    /// Fails if the right by which a request was let in is lost.
    pub(crate) fn check(&self, who: &Identity) -> Result<(), Problem> {
        let roles = given(self.now.borrow().as_deref(), who).ok_or_else(|| no_user(who))?;
        let lost: Vec<UserRole> = who.let_in_by.difference(&roles).copied().collect();
        if lost.is_empty() { Ok(()) } else { Err(Identity { roles, ..who.clone() }.lacks(&lost)) }
    }

    /// Returns once the right by which a request was let in is lost: [`Rights::check`] then fails.
    pub(crate) async fn until_lost(&self, who: &Identity) {
        let is_lost = |access: Option<&Access>| given(access, who).is_none_or(|has| !who.let_in_by.is_subset(&has));
        if self.now.subscribe().wait_for(|now| is_lost(now.as_deref())).await.is_err() {
            // Never: the sender lives as long as this.
            pending::<()>().await;
        }
    }
}

fn no_user(who: &Identity) -> Problem {
    Problem::unauthenticated(Reason::NoUser, who.token.as_ref())
}

/// Returns the roles in which somebody may ask, all without a token; `None` if the file does not name the user.
fn given(access: Option<&Access>, who: &Identity) -> Option<BTreeSet<UserRole>> {
    let Some(access) = access.filter(|_| who.token.is_some()) else { return Some(who.of_token.clone()) };
    let has = access.roles_of(&who.tenant, &who.user)?;
    Some(who.of_token.intersection(has).copied().collect())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use redial_proto::{ApiToken, Code};

    use super::*;
    use crate::limits::{Limits, RequestLimits};

    fn access(roles: &str) -> Arc<Access> {
        let text = format!(
            "[dispatcher]\npassword = \"$A\"\n[tenants.acme.users.alice]\nroles = [{roles}]\npassword = \"$B\"\n"
        );
        Arc::new(Access::read("access.toml", &text).unwrap())
    }

    async fn rights(roles: &str) -> Rights {
        let rights = Rights::load(None).await.unwrap();
        rights.tell(Some(access(roles)));
        rights
    }

    /// Makes a user whose token has the roles `submit` and `read`.
    fn user(name: &str) -> Identity {
        let of_token = BTreeSet::from([UserRole::Submit, UserRole::Read]);
        Identity {
            tenant: "acme".parse().unwrap(),
            user: name.parse().unwrap(),
            roles: of_token.clone(),
            of_token,
            let_in_by: BTreeSet::new(),
            limits: RequestLimits::new(Limits::for_tests(1), redial_proto::Tenant::default()),
            token: Some(ApiToken::of_random(&[1; 40]).id),
            session: None,
            expires_at: None,
        }
    }

    #[tokio::test]
    async fn a_token_has_the_roles_that_its_user_has_too() {
        let rights = rights("\"read\", \"admin\"").await;
        let alice = rights.narrow(user("alice")).unwrap();
        assert_eq!(alice.roles, BTreeSet::from([UserRole::Read]));
        let told = [
            alice.in_role(&[UserRole::Submit]).unwrap_err(),
            alice.in_role(&[UserRole::Admin]).unwrap_err(),
            rights.narrow(user("bob")).unwrap_err(),
        ];
        insta::assert_snapshot!(told.map(|problem| problem.error.to_string()).join("\n"));
        let open = Identity { token: None, ..user("bob") };
        assert_eq!(rights.narrow(open).unwrap().roles.len(), 2, "who needs no token is not compared");
        rights.tell(None);
        assert_eq!(rights.narrow(user("bob")).unwrap().roles.len(), 2, "without a file");
    }

    #[tokio::test]
    async fn whoever_was_let_in_is_told_when_the_right_is_lost() {
        let rights = rights("\"submit\", \"read\"").await;
        let reads = user("alice").let_in(&[UserRole::Read, UserRole::Admin]);
        let mut lost = Box::pin(rights.until_lost(&reads));
        assert!(lost.as_mut().now_or_never().is_none() && rights.check(&reads).is_ok());
        rights.tell(Some(access("\"read\"")));
        assert!(lost.as_mut().now_or_never().is_none(), "it needs no other role");
        rights.tell(Some(access("\"submit\"")));
        assert!(lost.as_mut().now_or_never().is_some());
        assert_eq!(rights.check(&reads).unwrap_err().error.code, Code::Forbidden);
        rights.tell(Some(access("\"read\"")));
        assert!(rights.check(&reads).is_ok(), "given back");
        let gone = user("bob").let_in(&[UserRole::Read]);
        assert!(rights.until_lost(&gone).now_or_never().is_some(), "it was lost before");
        assert_eq!(rights.check(&gone).unwrap_err().error.code, Code::Unauthenticated);
    }
}
