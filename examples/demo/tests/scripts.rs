//! The demo's agents, models and scripts fit together.

use std::{collections::BTreeMap, path::Path};

use redial_proto::AgentSpec;
use serde::Deserialize;

#[derive(Deserialize)]
struct AgentsFile {
    agents: BTreeMap<String, AgentSpec>,
}

#[test]
fn every_agent_has_its_models() {
    let models = redial_llm::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("models.toml")).unwrap();
    for (name, agent) in toml::from_str::<AgentsFile>(include_str!("../agents.toml")).unwrap().agents {
        assert_eq!(agent.check(), Ok(()), "{name}");
        for model in [Some(&agent.model), agent.fallback_model.as_ref()].into_iter().flatten() {
            assert!(models.iter().any(|known| known.name() == model), "{name}: {model}");
        }
    }
}
