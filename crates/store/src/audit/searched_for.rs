//! Which calls of a tenant a search is for.

use redial_proto::{CallState, ErrorClass, ToolEffect};

use super::{Filter, Inside};

/// Which calls of a tenant to find. Every field narrows.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// The fields of the call; `tenant` is not looked at.
    pub filter: Filter,
    pub not_tools: Vec<String>,
    pub not_states: Vec<CallState>,
    pub not_classes: Vec<ErrorClass>,
    /// Of a task of this declared agent.
    pub agent: Option<String>,
    pub not_agents: Vec<String>,
    pub effect: Option<ToolEffect>,
    pub not_effects: Vec<ToolEffect>,
    pub not_workers: Vec<String>,
    /// Submitted by this user, or asked for by a task that was.
    pub submitted_by: Option<String>,
    /// What their arguments and results hold.
    pub inside: Inside,
}
