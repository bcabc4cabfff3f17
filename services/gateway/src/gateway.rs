//! What all requests share.

use std::{sync::Arc, time::Duration};

use axum::{extract::FromRequestParts, http::request::Parts};
use redial_loops::Loops;
use redial_proto::{
    Caller, Code, Door, UserRole,
    subjects::{self, Verb},
};
use redial_queue::{Origin, Queue};
use redial_shares::Share;
use redial_store::Store;
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::{
    auth::Tokens,
    config::GatewayConfig,
    figures::Figures,
    hub::Hub,
    identity::Identity,
    last_look::{Health, LastLook},
    limits::{LARGE_BYTES, Limits},
    problem::Problem,
    refusals::Refusals,
    rights::Rights,
    stats::Stats,
    streams::Streams,
};

pub(crate) type Shared = Arc<Gateway>;

/// What an address of the API needs: the gateway, and who asks.
pub(crate) struct Api {
    pub(crate) gateway: Shared,
    pub(crate) who: Identity,
}

impl FromRequestParts<Shared> for Api {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Shared) -> Result<Self, Problem> {
        // The router has checked the token.
        let who = parts.extensions.get::<Identity>().cloned();
        let bug = || Problem::new(Code::Internal, "an address without declared roles asked who its caller is");
        Ok(Self { gateway: gateway.clone(), who: who.ok_or_else(bug)? })
    }
}

const ANSWER: Duration = Duration::from_secs(20);
/// When a request that got no answer is sent again.
const AGAIN: Duration = Duration::from_millis(200);

pub(crate) struct Gateway {
    pub(crate) config: GatewayConfig,
    pub(crate) queue: Queue,
    pub(crate) store: Store,
    pub(crate) hub: Hub,
    pub(crate) tokens: Tokens,
    pub(crate) rights: Rights,
    pub(crate) stats: Stats,
    pub(crate) refusals: Refusals,
    pub(crate) figures: Figures,
    pub(crate) streams: Streams,
    /// What page tokens are sealed with, once it was read.
    pub(crate) page_key: OnceCell<Vec<u8>>,
    /// Of Postgres, NATS and the dispatchers.
    pub(crate) last_look: LastLook<Health>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) loops: Loops,
    /// Cancelled at the shutdown: streams and waits end.
    pub(crate) shutdown: CancellationToken,
}

impl Gateway {
    /// Asks the dispatchers for something as this user, in the first of its roles that may ask for it.
    pub(crate) async fn ask<Q: Serialize, R: DeserializeOwned>(
        &self,
        who: &Identity,
        verb: Verb,
        request: &Q,
    ) -> Result<R, Problem> {
        self.ask_as(&who.caller(verb)?, verb, request, None).await
    }

    /// Asks in this role, with a trace context.
    pub(crate) async fn ask_as<Q: Serialize, R: DeserializeOwned>(
        &self,
        caller: &Caller,
        verb: Verb,
        request: &Q,
        traceparent: Option<&str>,
    ) -> Result<R, Problem> {
        let subject = subjects::api(caller.door, &caller.tenant, &caller.user, caller.role, verb);
        let origin = Origin { traceparent, token: caller.token.as_ref() };
        Ok(self.queue.request_from(&subject, request, ANSWER, origin).await?)
    }

    /// Asks what may be asked twice: once more if nobody answered, as while a dispatcher is restarted.
    pub(crate) async fn ask_twice<Q: Serialize, R: DeserializeOwned>(
        &self,
        who: &Identity,
        verb: Verb,
        request: &Q,
    ) -> Result<R, Problem> {
        self.ask_twice_as(&who.caller(verb)?, verb, request, None).await
    }

    /// Asks twice in this role, with a trace context.
    pub(crate) async fn ask_twice_as<Q: Serialize, R: DeserializeOwned>(
        &self,
        caller: &Caller,
        verb: Verb,
        request: &Q,
        traceparent: Option<&str>,
    ) -> Result<R, Problem> {
        match self.ask_as(caller, verb, request, traceparent).await {
            Err(problem) if problem.again().is_some() => {
                tokio::time::sleep(AGAIN).await;
                self.ask_as(caller, verb, request, traceparent).await
            }
            done => done,
        }
    }
}

impl Gateway {
    /// Takes the share of a read that may take seconds, also for work that goes on when the client has gone away.
    pub(crate) async fn long_read(&self, who: &Identity) -> Result<Share, Problem> {
        self.still_allowed(who, who.limits.long_read().await?)
    }

    /// Takes the share of a list, of their own if everything matches: who looks at the newest waits for no search.
    pub(crate) async fn list_read(&self, who: &Identity, is_unfiltered: bool) -> Result<Share, Problem> {
        if !is_unfiltered {
            return self.long_read(who).await;
        }
        self.still_allowed(who, who.limits.list_read().await?)
    }

    /// Waits until a request may hold this many bytes.
    pub(crate) async fn hold(&self, who: &Identity, bytes: usize) -> Result<(), Problem> {
        if bytes > LARGE_BYTES && !who.limits.holds_large() {
            who.limits.keep_large(self.large(who).await?);
        }
        Ok(())
    }

    /// Takes the share of a part of a request that has more than [`LARGE_BYTES`].
    pub(crate) async fn large(&self, who: &Identity) -> Result<Share, Problem> {
        self.still_allowed(who, who.limits.large().await?)
    }

    /// Checks the right again, which may have been lost while the request waited.
    fn still_allowed(&self, who: &Identity, share: Share) -> Result<Share, Problem> {
        self.rights.check(who).map(|()| share)
    }

    /// Returns when nothing more may be waited for on behalf of a request: the gateway stops, or the access file has taken away
    /// the right by which the request was let in. Can be cancelled without loss.
    pub(crate) async fn wait_is_over(&self, who: &Identity) {
        tokio::select! {
            () = self.shutdown.cancelled() => {}
            () = self.rights.until_lost(who) => {}
        }
    }
}

impl Identity {
    /// Returns who asks for a verb: in the first role that may.
    pub(crate) fn caller(&self, verb: Verb) -> Result<Caller, Problem> {
        self.in_role(verb.roles())
    }

    /// Returns who asks, in the first of these roles that the token has.
    pub(crate) fn in_role(&self, roles: &[UserRole]) -> Result<Caller, Problem> {
        let role = roles.iter().find(|role| self.roles.contains(role)).ok_or_else(|| self.lacks(roles))?;
        let (tenant, user, token) = (self.tenant.clone(), self.user.clone(), self.token.clone());
        Ok(Caller { tenant, user, role: *role, door: Door::Http, token })
    }
}
