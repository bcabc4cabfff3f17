//! A user's request: who asks, and all of the dispatcher that it may reach.

use std::{sync::Arc, time::Instant};

use redial_access::Access;
use redial_engine::tools::Tools;
use redial_proto::{
    ApiError, CallId, CallState, Caller, Code, Door, SubmitResult, Tenant, UserRole,
    subjects::{self, Verb},
};
use redial_queue::Request;
use redial_records::{Effect, NewCall};
use redial_reread::Current;
use redial_store::{Store, TenantStore};
use redial_webhooks::WebhookKey;

use crate::{
    agents::Declared,
    context::Context,
    effects,
    error::{call_not_found, store_failed},
    new_calls, policies,
    transitions::{self, Cancelled},
};

/// What a user sent and who that is, or why it is refused.
pub(crate) type Sent<T> = Result<(Caller, T), ApiError>;

/// A request of a user. Its verbs reach the store only within the tenant.
pub(crate) struct Asked {
    pub(crate) caller: Caller,
    context: Arc<Context>,
}

impl Asked {
    pub(crate) const fn new(context: Arc<Context>, caller: Caller) -> Self {
        Self { caller, context }
    }

    pub(crate) fn store(&self) -> TenantStore<'_> {
        self.context.store.of(&self.caller.tenant)
    }

    /// Says whether the caller's tenant is that of the operators.
    pub(crate) fn is_operator(&self) -> bool {
        self.caller.tenant == Tenant::default()
    }

    /// Returns the store for tokens: all their statements name the tenant, unless an operator asks.
    pub(crate) fn for_tokens(&self) -> &Store {
        &self.context.store
    }

    /// Says whether the access file still gives the caller the role of the request.
    pub(crate) async fn check_user(&self) -> Result<(), ApiError> {
        policies::check_user(&self.access().await, &self.caller)
    }

    /// Returns the dispatcher for verbs about tools, which belong to no tenant: only the operators may ask for these.
    pub(crate) fn of_operators(&self) -> Result<&Arc<Context>, ApiError> {
        if self.is_operator() {
            return Ok(&self.context);
        }
        let message =
            format!("tools belong to no tenant: only an admin of the tenant {} may do this", Tenant::default());
        Err(ApiError::new(Code::Forbidden, message))
    }

    /// Returns the dispatcher for an erasure: all its statements name the tenant.
    pub(crate) fn for_erasing(&self) -> &Context {
        &self.context
    }

    /// Returns the dispatcher for bodies in pieces, which belong to the user.
    pub(crate) fn for_pieces(&self) -> &Context {
        &self.context
    }

    /// Cancels a call; returns its state then, and whether it would have gone on.
    pub(crate) async fn cancel(&self, call: CallId) -> Result<(CallState, bool), ApiError> {
        if !self.store().has_call(call).await.map_err(|error| store_failed(&error))? {
            return Err(call_not_found(call));
        }
        let Cancelled { state, changed, effects } = transitions::cancel(&self.context, call).await?;
        self.carry_out(effects).await;
        Ok((state, changed))
    }

    pub(crate) async fn carry_out(&self, effects: Vec<Effect>) {
        effects::carry_out(&self.context, effects).await;
    }

    pub(crate) fn tools(&self) -> Arc<Tools> {
        self.context.registry.tools()
    }

    /// What the secrets of webhooks are derived from.
    pub(crate) fn webhook_key(&self) -> Option<&WebhookKey> {
        self.context.config.webhook_key.as_ref()
    }

    pub(crate) async fn access(&self) -> Current<Access> {
        self.context.access.at(Instant::now()).await
    }

    pub(crate) async fn agents(&self) -> Declared {
        self.context.agents.at(Instant::now()).await
    }

    pub(crate) fn is_served(&self, tool: &str) -> bool {
        self.context.feeder.is_served(tool)
    }

    /// Lets a dispatcher begin with a redrive at once.
    pub(crate) fn begin_redrives(&self) {
        self.context.redrives.notify_one();
    }

    /// Keeps room for the job of a new call, and writes where it goes.
    pub(crate) fn admit(&self, call: &mut NewCall) {
        call.consumer = self.context.admit_new(call);
    }

    /// Writes calls, publishes their jobs, and returns the result of each, in order.
    pub(crate) async fn write(&self, calls: &[NewCall]) -> Vec<SubmitResult> {
        new_calls::write(&self.context, calls).await
    }
}

/// Returns the sender of a request if its role allows the verb.
pub(crate) fn caller(request: &Request, verb: Verb) -> Result<Caller, ApiError> {
    let caller = subjects::caller(request.subject()).ok_or_else(|| {
        let message = "the subject names no tenant, user and role; redial.api.<tenant>.<user>.<role>.<verb> is needed";
        ApiError::new(Code::InvalidMessage, message)
    })?;
    // Only gateways may send to their subjects, and only they are shown tokens.
    let token = request.token.clone().filter(|_| caller.door == Door::Http);
    allowed(Caller { token, ..caller }, verb)
}

/// Returns the caller if its role allows the verb.
pub(crate) fn allowed(caller: Caller, verb: Verb) -> Result<Caller, ApiError> {
    if verb.roles().contains(&caller.role) {
        return Ok(caller);
    }
    let wanted: Vec<&str> = verb.roles().iter().map(|role| role.as_str()).collect();
    let (role, verb, wanted) = (caller.role, verb.name(), wanted.join(" or "));
    let message =
        format!("the role {role} does not allow {verb}; the role {wanted} is needed, and part of the subject");
    Err(ApiError::new(Code::Forbidden, message))
}

/// Checks that a role may submit a task that brings its agent (`is_inline`) or names a declared one.
pub(crate) fn check_inline(role: UserRole, is_inline: bool) -> Result<(), ApiError> {
    let message = match (is_inline, role) {
        (true, UserRole::Inline) | (false, UserRole::Submit) => return Ok(()),
        (true, _) => {
            "a task that brings its agent with it needs the role inline; name an agent of the dispatcher instead"
        }
        (false, _) => {
            "a task for an agent of the dispatcher needs the role submit; the role inline is for tasks that bring theirs"
        }
    };
    Err(ApiError::new(Code::Forbidden, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_agent_needs_its_role() {
        let allows = |role, is_inline| check_inline(role, is_inline).is_ok();
        assert!(allows(UserRole::Inline, true) && allows(UserRole::Submit, false));
        assert!(!allows(UserRole::Submit, true) && !allows(UserRole::Inline, false));
    }
}
