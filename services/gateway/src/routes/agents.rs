//! `/v1/agents`.

use redial_api::AgentPage;
use redial_proto::{AgentList, AgentView, Code, ListAgents, UserRole, limits::shorten, subjects::Verb};

use crate::{
    endpoint::Endpoint,
    extract::{Name, Query},
    gateway::Api,
    page::{Page, PageQuery},
    problem::{JsonResult, Problem},
};

const TAG: &str = "agents";
const READ: &[UserRole] = &[UserRole::Read];

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/v1/agents", list)
            .about(TAG, "list_agents", "The declared agents that the tenant may give tasks to, by name")
            .roles(READ)
            .query::<PageQuery>()
            .answer::<AgentPage>(200, "Agents."),
        Endpoint::get("/v1/agents/{agent}", get)
            .about(TAG, "get_agent", "A declared agent")
            .roles(READ)
            .answer::<AgentView>(200, "The agent."),
    ]
}

async fn list(Api { gateway, who }: Api, Query(query): Query<PageQuery>) -> JsonResult<AgentPage> {
    let page = Page::<String>::of(&gateway, &who, "agents", &query).await?;
    let request = ListAgents { after: page.after.clone(), limit: Some(page.size), ..ListAgents::default() };
    let list: AgentList = gateway.ask_twice(&who, Verb::AgentList, &request).await?;
    Ok(axum::Json(AgentPage { next_page_token: page.next(list.next.as_ref()), agents: list.agents }))
}

pub(super) async fn get(Api { gateway, who }: Api, Name(agent): Name) -> JsonResult<AgentView> {
    let request = ListAgents { agent: Some(agent.clone()), ..ListAgents::default() };
    let list: AgentList = gateway.ask_twice(&who, Verb::AgentList, &request).await?;
    let missing = || Problem::new(Code::NotFound, format!("the tenant has no agent {:?}", shorten(&agent, 100)));
    list.agents.into_iter().next().map(axum::Json).ok_or_else(missing)
}
