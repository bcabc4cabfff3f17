//! Tasks as dispatchers write them.

use redial_proto::{AgentSpec, Language, TaskId};
use redial_records::NewTask;

/// A task of the model `small`, in a conversation of its own.
pub(crate) fn new_task(conversation: &str) -> NewTask {
    NewTask {
        submitted_by: None,
        id: TaskId::generate(),
        tenant: "default".to_owned(),
        conversation: conversation.to_owned(),
        key: None,
        content: None,
        agent: None,
        model: "small".to_owned(),
        language: Language::En,
        spec: serde_json::to_string(&AgentSpec::new("small")).unwrap(),
        input: "go".to_owned(),
        metadata: std::collections::BTreeMap::new(),
        traceparent: None,
    }
}
