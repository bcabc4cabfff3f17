//! `/v1/models`: the agents that the tenant may use, as OpenAI's clients know models.

use redial_proto::{AgentList, ListAgents, UserRole, subjects::Verb};
use serde_json::{Value, json};

use super::agents;
use crate::{endpoint::Endpoint, extract::Name, gateway::Api, problem::JsonResult};

const TAG: &str = "openai";
const READ: &[UserRole] = &[UserRole::Read];

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/v1/models", list)
            .about(TAG, "list_models", "The agents, as models")
            .roles(READ)
            .answer::<Value>(200, "A list of models."),
        Endpoint::get("/v1/models/{model}", get)
            .about(TAG, "get_model", "An agent, as a model")
            .roles(READ)
            .answer::<Value>(200, "The model."),
    ]
}

fn model(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": "redial"})
}

async fn list(Api { gateway, who }: Api) -> JsonResult<Value> {
    let mut request = ListAgents::default();
    let mut models = Vec::new();
    loop {
        let list: AgentList = gateway.ask_twice(&who, Verb::AgentList, &request).await?;
        models.extend(list.agents.iter().map(|agent| model(&agent.name)));
        match list.next {
            Some(next) => request.after = Some(next),
            None => return Ok(axum::Json(json!({"object": "list", "data": models}))),
        }
    }
}

async fn get(api: Api, name: Name) -> JsonResult<Value> {
    agents::get(api, name).await.map(|axum::Json(agent)| axum::Json(model(&agent.name)))
}
