//! The chat completions interface: OpenAI, Qwen, vLLM, Ollama, llama.cpp and many more.

mod calls;
mod message;
mod parts;
mod reply;
mod request;
mod stream;

pub(crate) use reply::failed_generation;
pub use reply::reply;
pub use request::request;
pub(crate) use stream::Stream;

/// Marks data of this provider in [`redial_proto::TurnReply::provider`].
const KIND: &str = "openai";
