//! Settings of a model's requests.

use serde_json::{Map, Value};

use crate::profile::Profile;

/// Everything that a request needs besides the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The provider's name of the model.
    pub model: String,
    /// Longest answer in tokens, unless the agent sets another limit.
    pub max_tokens: Option<u32>,
    /// Sampling temperature, unless the agent sets another one.
    pub temperature: Option<f64>,
    /// Whether the response is streamed.
    pub stream: bool,
    pub profile: Profile,
    /// Additional fields of the request's body; they override Redial's own.
    pub extra: Map<String, Value>,
}

impl Settings {
    /// Makes the settings of a model with every default; not streamed.
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
