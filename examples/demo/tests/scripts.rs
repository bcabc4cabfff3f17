//! Agents, models and scripts of the demo fit together; and the trap that a scene never steps into is there.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

use std::{collections::BTreeMap, path::Path};

use redial_llm::Model;
use redial_proto::{AgentSpec, Language, Message, Role, TaskId, TurnReply, TurnRequest};
use serde::Deserialize;

#[derive(Deserialize)]
struct Agents {
    agents: BTreeMap<String, AgentSpec>,
}

fn models() -> Vec<Model> {
    redial_llm::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("models.toml")).unwrap()
}

#[test]
fn every_agent_has_its_models() {
    let file = include_str!("../agents.toml");
    let models = models();
    for (name, agent) in toml::from_str::<Agents>(file).unwrap().agents {
        assert_eq!(agent.check(), Ok(()), "{name}");
        for model in [Some(&agent.model), agent.fallback_model.as_ref()].into_iter().flatten() {
            assert!(models.iter().any(|known| known.name() == model), "{name}: {model}");
        }
    }
}

/// What the archivist says when this is the last message.
async fn archivist(last: Message) -> TurnReply {
    let models = models();
    let archivist = models.iter().find(|model| model.name() == "archivist").unwrap();
    let request = TurnRequest {
        task: TaskId::generate(),
        turn: 2,
        messages: vec![Message::text(Role::User, "Which tables are in the database?"), last],
        tools: Vec::new(),
        language: Language::En,
        max_tokens: None,
        temperature: None,
        trimmed: redial_proto::Trimmed::default(),
    };
    archivist.ask(&request, |_| {}).await.unwrap()
}

#[tokio::test]
async fn a_result_in_a_user_message_would_lead_into_the_endless_loop() {
    let result = r#"{"tables": ["_sqlx_migrations", "users"]}"#;
    let looped = archivist(Message::text(Role::User, result)).await;
    assert_eq!(looped.calls.len(), 1);
    assert!(looped.thought.unwrap().contains("the endless loop"));

    let tool = Message { tool: Some("list_tables".to_owned()), ..Message::text(Role::Tool, result) };
    let answered = archivist(tool).await;
    assert_eq!(answered.text.as_deref(), Some("There are two tables: _sqlx_migrations and users."));
    assert!(answered.calls.is_empty());
}
