//! Tasks as dispatchers write them.

use redial_proto::{Language, TaskId};
use redial_records::NewTask;

/// A task of the model `small` in this conversation.
pub(crate) fn new_task(conversation: &str) -> NewTask {
    NewTask {
        submitted_by: None,
        id: TaskId::generate(),
        tenant: "default".to_owned(),
        conversation: conversation.to_owned(),
        key: None,
        content: None,
        agent: Some("helper".to_owned()),
        model: "small".to_owned(),
        language: Language::Zh,
        spec: r#"{"model": "small", "system": "Be kind."}"#.to_owned(),
        input: "你好".to_owned(),
        metadata: std::collections::BTreeMap::new(),
        traceparent: None,
        waits_for_erasure: false,
    }
}
