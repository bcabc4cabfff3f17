//! Lists of what a tenant may use. Dispatchers answer them, because the access file and the file of agents are theirs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Budgets, ToolSpec};

/// Asks for the tools that the tenant may call, by name. Sent as `tools.list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListTools {
    /// Only this tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Only tools behind this name: `next` of the answer before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// At most so many; fewer if more do not fit into a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The answer to [`ListTools`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolList {
    /// By name.
    pub tools: Vec<ToolView>,
    /// There are more: ask for those behind this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A tool as users see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolView {
    /// As its worker registered it.
    #[serde(flatten)]
    pub spec: ToolSpec,
    /// A live worker has it. The calls of a tool that no worker has wait for one.
    pub served: bool,
    /// Fingerprint of what was registered.
    #[serde(default)]
    pub version: String,
}

/// Asks for the declared agents that the tenant may give tasks to, by name. Sent as `agents.list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListAgents {
    /// Only this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only agents behind this name: `next` of the answer before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// At most so many; fewer if more do not fit into a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The answer to [`ListAgents`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentList {
    /// By name.
    pub agents: Vec<AgentView>,
    /// There are more: ask for those behind this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A declared agent as users see it, without its instructions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentView {
    /// Its name.
    pub name: String,
    /// Its model.
    pub model: String,
    /// The model that takes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_model: Option<String>,
    /// The tools that it may use: names, and patterns in which `*` stands for any text.
    pub tools: Vec<String>,
    /// The limits of its tasks.
    pub budgets: Budgets,
}
