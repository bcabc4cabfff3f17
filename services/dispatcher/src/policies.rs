//! What a tenant may use, as the access file says. Without one, everything.

use std::collections::BTreeSet;

use redial_access::{Access, TenantPolicy};
use redial_engine::tools::Tools;
use redial_proto::{
    AgentSpec, ApiError, Caller, Code, Door, Submission, Tenant, User, UserRole, limits::shorten, turn::model_name,
};
use redial_reread::Current;

/// Returns the limits of a tenant; `None` without an access file. A tenant not named in the file may submit nothing.
pub(crate) fn of<'a>(access: &'a Current<Access>, tenant: &Tenant) -> Result<Option<&'a TenantPolicy>, ApiError> {
    let Some(known) = access.value.as_deref() else { return Ok(None) };
    match known.tenant(tenant) {
        Some(policy) => Ok(Some(policy)),
        None => Err(forbidden(format!(
            "tenant {tenant} is not in the dispatcher's access file; add [tenants.{tenant}] to it"
        ))),
    }
}

/// Checks that the access file gives a caller the role of its request. On NATS the permissions of the server say that;
/// a gateway speaks for whoever shows it a token, which may be older than the file.
pub(crate) fn check_user(access: &Current<Access>, caller: &Caller) -> Result<(), ApiError> {
    match caller.door {
        Door::Nats => Ok(()),
        Door::Http => check_roles(access, &caller.tenant, &caller.user, &BTreeSet::from([caller.role])),
    }
}

/// Checks that the access file gives a user these roles. Without a file everybody has all of them.
pub(crate) fn check_roles(
    access: &Current<Access>,
    tenant: &Tenant,
    user: &User,
    roles: &BTreeSet<UserRole>,
) -> Result<(), ApiError> {
    let Some(known) = access.value.as_deref() else { return Ok(()) };
    let Some(has) = known.roles_of(tenant, user) else {
        return Err(forbidden(format!(
            "user {user} of tenant {tenant} is not in the dispatcher's access file; add [tenants.{tenant}.users.{user}] to it"
        )));
    };
    let list = |roles: Vec<&str>| roles.join(", ");
    let missing: Vec<&str> = roles.difference(has).map(|role| role.as_str()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let has = list(has.iter().map(|role| role.as_str()).collect());
    Err(forbidden(format!(
        "user {user} of tenant {tenant} does not have the role {} in the dispatcher's access file; allowed: {has}",
        list(missing)
    )))
}

pub(crate) fn check_tool(policy: Option<&TenantPolicy>, tool: &str) -> Result<(), ApiError> {
    match policy {
        Some(policy) if !policy.allows_tool(tool) => Err(may_not_use("tool", tool)),
        _ => Ok(()),
    }
}

/// Checks that a tenant may submit this call, which may ask for longer or more attempts than its tool declares.
pub(crate) fn check_call(
    policy: Option<&TenantPolicy>,
    submission: &Submission,
    tools: &Tools,
) -> Result<(), ApiError> {
    check_tool(policy, &submission.tool)?;
    let (Some(policy), Some(tool)) = (policy, tools.get(&submission.tool)) else { return Ok(()) };
    let exceeded = policy.calls.exceeded(&tool.spec, submission);
    if exceeded.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{} for tool {:?}; [tenants.NAME.calls] in the access file can allow more",
        exceeded.join("; "),
        shorten(&submission.tool, 100)
    );
    Err(forbidden(message))
}

pub(crate) fn check_agent(policy: Option<&TenantPolicy>, agent: &str) -> Result<(), ApiError> {
    match policy {
        Some(policy) if !policy.allows_agent(agent) => Err(may_not_use("agent", agent)),
        _ => Ok(()),
    }
}

/// Returns an agent that a user sent, within the limits of its tenant; an error names what exceeds them. A pattern for
/// tools becomes the names of the tools that it means now, unless the tenant may use all that it can mean.
pub(crate) fn within(
    policy: Option<&TenantPolicy>,
    spec: &AgentSpec,
    tools: &Tools,
) -> Result<Option<AgentSpec>, ApiError> {
    let Some(policy) = policy else { return Ok(None) };
    for model in [Some(&spec.model), spec.fallback_model.as_ref()].into_iter().flatten() {
        if !policy.allows_model(model) {
            return Err(may_not_use("model", model));
        }
    }
    let budgets =
        policy.budgets.within(spec.budgets).map_err(|over| forbidden(format!("agent: {}", over.join("; "))))?;
    let mut allowed = Vec::new();
    for pattern in &spec.tools {
        if !pattern.contains('*') {
            check_tool(Some(policy), pattern)?;
            allowed.push(pattern.clone());
        } else if policy.allows_pattern(pattern) {
            allowed.push(pattern.clone());
        } else {
            let meant = tools.values().filter(|tool| tool.is_for_agents()).map(|tool| &tool.spec.name);
            let meant = meant.filter(|name| redial_proto::agent::matches(pattern, name) && policy.allows_tool(name));
            allowed.extend(meant.cloned());
        }
    }
    Ok(Some(AgentSpec { budgets, tools: allowed, ..spec.clone() }))
}

/// Returns the tools and models that a tenant may use: what an error may name.
pub(crate) fn visible(policy: Option<&TenantPolicy>, tools: &Tools) -> Tools {
    let may_use = |name: &str| {
        policy.is_none_or(|policy| match model_name(name) {
            Some(model) => policy.allows_model(model),
            None => policy.allows_tool(name),
        })
    };
    tools.iter().filter(|(name, _)| may_use(name)).map(|(name, tool)| (name.clone(), tool.clone())).collect()
}

fn may_not_use(what: &str, name: &str) -> ApiError {
    let name = shorten(name, 100);
    forbidden(format!(
        "this tenant may not use the {what} {name:?}; the tenant's table in the access file says what it may use"
    ))
}

fn forbidden(message: String) -> ApiError {
    ApiError::new(Code::Forbidden, message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use redial_engine::tools::RegisteredTool;
    use redial_proto::ToolSpec;
    use serde_json::json;

    use super::*;

    #[test]
    fn refusals_say_where_it_is_allowed() {
        let text = "[dispatcher]\npassword = \"$A\"\n[tenants.acme]\ntools = [\"slow\"]\nagents = []\n\
                    [tenants.acme.users.alice]\nroles = [\"submit\", \"read\"]\npassword = \"$B\"\n";
        let access = Access::read("access.toml", text).unwrap();
        let current = Current { value: Some(Arc::new(access)), ..Current::default() };
        let unknown = of(&current, &"globex".parse().unwrap()).unwrap_err();
        let policy = of(&current, &"acme".parse().unwrap()).unwrap();
        let tool = ToolSpec { timeout_ms: 20_000, ..ToolSpec::named("slow") };
        let tools = Tools::from([("slow".to_owned(), Arc::new(RegisteredTool::new(tool).unwrap()))]);
        let long = json!({"tool": "slow", "arguments": {}, "timeout_ms": 20_001});
        let long = check_call(policy, &serde_json::from_value(long).unwrap(), &tools).unwrap_err();
        let other = check_tool(policy, "other").unwrap_err();
        let agent = check_agent(policy, "support").unwrap_err();
        let caller = |user: &str, role, door| Caller {
            tenant: "acme".parse().unwrap(),
            user: user.parse().unwrap(),
            role,
            door,
            token: None,
        };
        let over_http = |user: &str, role| check_user(&current, &caller(user, role, Door::Http));
        let nobody = over_http("bob", UserRole::Read).unwrap_err();
        let role = over_http("alice", UserRole::Admin).unwrap_err();
        assert!(over_http("alice", UserRole::Read).is_ok());
        assert!(
            check_user(&current, &caller("bob", UserRole::Read, Door::Nats)).is_ok(),
            "the server's permissions say it"
        );
        assert!(check_user(&Current::default(), &caller("bob", UserRole::Read, Door::Http)).is_ok(), "without a file");
        insta::assert_snapshot!([unknown, long, other, agent, nobody, role].map(|error| error.to_string()).join("\n"));
    }
}
