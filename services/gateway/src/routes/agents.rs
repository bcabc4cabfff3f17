//! `/v1/agents`.

use axum::extract::State;
use redial_proto::{AgentList, AgentView, Code, ListAgents, UserRole, limits::shorten, subjects::Verb};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    endpoint::Endpoint,
    extract::{Name, Query},
    gateway::Shared,
    identity::Identity,
    page::{ListQuery, Page},
    problem::Problem,
};

const TAG: &str = "agents";
const READ: &[UserRole] = &[UserRole::Read];

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/v1/agents", list)
            .about(TAG, "list_agents", "The declared agents that the tenant may give tasks to, by name")
            .roles(READ)
            .query::<AgentsQuery>()
            .answer::<AgentPage>(200, "Agents."),
        Endpoint::get("/v1/agents/{agent}", get)
            .about(TAG, "get_agent", "A declared agent")
            .roles(READ)
            .answer::<AgentView>(200, "The agent."),
    ]
}

/// Which page.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentsQuery {
    /// Entries of a page: 1 to 1,000. Default 50.
    page_size: Option<u32>,
    /// `next_page_token` of the answer before.
    page_token: Option<String>,
}

impl ListQuery for AgentsQuery {
    const LIST: &'static str = "agents";

    fn page(&self) -> (Option<u32>, Option<&str>) {
        (self.page_size, self.page_token.as_deref())
    }
}

/// A part of the agents.
#[derive(Serialize, JsonSchema)]
struct AgentPage {
    /// By name.
    agents: Vec<AgentView>,
    /// For the next page; empty at the end.
    next_page_token: String,
}

async fn list(
    State(gateway): State<Shared>,
    who: Identity,
    Query(query): Query<AgentsQuery>,
) -> Result<axum::Json<AgentPage>, Problem> {
    let page = Page::<String>::of(&gateway, &who, &query).await?;
    let request = ListAgents { after: page.after.clone(), limit: Some(page.size), ..ListAgents::default() };
    let list: AgentList = gateway.ask_twice(&who.caller(Verb::AgentList)?, Verb::AgentList, &request, None).await?;
    Ok(axum::Json(AgentPage { next_page_token: page.next(list.next.as_ref()), agents: list.agents }))
}

async fn get(
    State(gateway): State<Shared>,
    who: Identity,
    Name(agent): Name,
) -> Result<axum::Json<AgentView>, Problem> {
    let request = ListAgents { agent: Some(agent.clone()), ..ListAgents::default() };
    let list: AgentList = gateway.ask_twice(&who.caller(Verb::AgentList)?, Verb::AgentList, &request, None).await?;
    let missing = || Problem::new(Code::NotFound, format!("the tenant has no agent {:?}", shorten(&agent, 100)));
    list.agents.into_iter().next().map(axum::Json).ok_or_else(missing)
}
