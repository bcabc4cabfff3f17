//! The chat completions interface: OpenAI, Qwen, vLLM, Ollama, llama.cpp and many more.

mod reply;
mod request;
mod stream;

pub use reply::reply;
pub(crate) use reply::salvage;
pub use request::request;
pub(crate) use stream::Stream;

/// What stands in [`redial_proto::TurnReply::provider`] to tell whose it is.
const KIND: &str = "openai";
