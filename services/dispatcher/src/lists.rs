//! Lists the tools and agents that a tenant may use, by name, as many as fit into a message.

use redial_engine::tools::RegisteredTool;
use redial_proto::{
    AgentList, AgentSpec, AgentView, ApiError, ListAgents, ListTools, ToolList, ToolView, limits::MAX_MESSAGE,
};
use serde::Serialize;

use crate::{asked::Asked, policies};

/// Entries of a list, at most.
const MOST: u32 = 1_000;
/// Bytes of a list: a message also has its own fields.
const ROOM: usize = MAX_MESSAGE - 1024;

pub(crate) async fn tools(asked: Asked, request: ListTools) -> Result<ToolList, ApiError> {
    let (tools, access) = (asked.tools(), asked.access().await);
    let policy = policies::of(&access, &asked.caller.tenant)?;
    let wanted = Wanted { only: request.tool.as_deref(), after: request.after.as_deref() };
    let may = |tool: &&RegisteredTool| {
        !tool.is_model()
            && wanted.takes(&tool.spec.name)
            && policy.is_none_or(|policy| policy.allows_tool(&tool.spec.name))
    };
    let mut found: Vec<&RegisteredTool> = tools.values().map(|tool| &**tool).filter(may).collect();
    found.sort_unstable_by(|a, b| a.spec.name.cmp(&b.spec.name));
    let view = |tool: &RegisteredTool| ToolView {
        served: asked.is_served(&tool.spec.name),
        version: tool.version.simple().to_string(),
        spec: tool.spec.clone(),
    };
    let (tools, more) = fitting(found.into_iter().map(view), request.limit);
    let next = tools.last().filter(|_| more).map(|tool| tool.spec.name.clone());
    Ok(ToolList { tools, next })
}

pub(crate) async fn agents(asked: Asked, request: ListAgents) -> Result<AgentList, ApiError> {
    let (declared, access) = (asked.agents().await, asked.access().await);
    let policy = policies::of(&access, &asked.caller.tenant)?;
    let wanted = Wanted { only: request.agent.as_deref(), after: request.after.as_deref() };
    let found = declared.allowed(policy).filter(|(name, _)| wanted.takes(name));
    let (agents, more) = fitting(found.map(|(name, spec)| view(name, spec)), request.limit);
    let next = agents.last().filter(|_| more).map(|agent| agent.name.clone());
    Ok(AgentList { agents, next })
}

fn view(name: &str, spec: &AgentSpec) -> AgentView {
    AgentView {
        name: name.to_owned(),
        model: spec.model.clone(),
        fallback_model: spec.fallback_model.clone(),
        tools: spec.tools.clone(),
        budgets: spec.budgets,
    }
}

struct Wanted<'a> {
    only: Option<&'a str>,
    after: Option<&'a str>,
}

impl Wanted<'_> {
    fn takes(&self, name: &str) -> bool {
        self.only.is_none_or(|only| only == name) && self.after.is_none_or(|after| name > after)
    }
}

/// Takes as many entries as are wanted and fit, one at least if there is one; says whether there are more.
fn fitting<T: Serialize>(entries: impl Iterator<Item = T>, limit: Option<u32>) -> (Vec<T>, bool) {
    let most = limit.unwrap_or(MOST).clamp(1, MOST) as usize;
    let (mut list, mut bytes) = (Vec::new(), 0);
    for entry in entries {
        bytes += serde_json::to_vec(&entry).map_or(0, |json| json.len() + 1);
        if list.len() >= most || (bytes > ROOM && !list.is_empty()) {
            return (list, true);
        }
        list.push(entry);
    }
    (list, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_where_it_is_full() {
        let of = |bytes: &[usize], limit| {
            let entries: Vec<String> = bytes.iter().map(|bytes| "x".repeat(*bytes)).collect();
            let (list, more) = fitting(entries.into_iter(), limit);
            (list.len(), more)
        };
        assert_eq!(of(&[], None), (0, false));
        assert_eq!(of(&[1, 1, 1], Some(2)), (2, true));
        assert_eq!(of(&[1, 1], Some(2)), (2, false));
        assert_eq!(of(&[1, 1], Some(0)), (1, true), "one at least");
        assert_eq!(of(&[ROOM / 2, ROOM / 2, 1], None), (1, true), "with quotes and commas two do not fit");
        assert_eq!(of(&[ROOM * 2, 1], None), (1, true), "one that does not fit anywhere stops nothing");
    }
}
