//! Reads what is on record of a call.

use redial_proto::{CallId, CallView, Code, Language};
use redial_views::call_view;

use crate::{gateway::Gateway, identity::Identity, problem::Problem};

/// A call of the tenant.
pub(super) async fn read(
    gateway: &Gateway,
    who: &Identity,
    call: CallId,
    language: Language,
) -> Result<CallView, Problem> {
    let records = gateway.store.of(&who.tenant).records_of(&[call]).await?;
    let not_found = || Problem::new(Code::CallNotFound, format!("no call {call} is on record"));
    Ok(call_view(records.into_iter().next().ok_or_else(not_found)?, language)?)
}
