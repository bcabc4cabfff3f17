//! What a model's entry says about its requests.

use serde_json::{Map, Value};

use crate::Profile;

/// Everything a request needs besides the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The model, by the provider's own name.
    pub model: String,
    /// Longest answer in tokens, unless the agent says otherwise.
    pub max_tokens: Option<u32>,
    /// Sampling temperature, unless the agent says otherwise.
    pub temperature: Option<f64>,
    /// Ask for the answer piece by piece.
    pub stream: bool,
    /// What is special about the model.
    pub profile: Profile,
    /// More fields of the request's body; they win over ours.
    pub extra: Map<String, Value>,
}

impl Settings {
    /// A model with every default; not streamed.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            max_tokens: None,
            temperature: None,
            stream: false,
            profile: Profile::default(),
            extra: Map::new(),
        }
    }
}
