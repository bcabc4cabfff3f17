//! Asks models.
//!
//! A [`redial_proto::TurnRequest`] is the same for every provider. This crate maps it to the request of one provider, and
//! maps the response to a [`redial_proto::TurnReply`]. The mapping is pure ([`openai`], [`anthropic`], [`react`]); one
//! client sends HTTP requests. A malformed answer is also a reply; its `problem` says what is wrong.
//!
//! `docs/MODELS.md` is the guide for people who configure models.

pub mod anthropic;
mod api;
mod config;
#[cfg(test)]
mod damaged;
mod failure;
mod finish;
mod http;
mod ids;
mod invented;
mod json;
mod limit;
mod model;
mod names;
mod offers;
pub mod openai;
mod piece;
mod placeholders;
mod profile;
mod quoted;
pub mod react;
mod response;
mod schema;
mod script;
mod settings;
mod sse;
mod text;
mod thoughts;
mod transcript;
mod written;

pub use api::Api;
pub use config::{load, load_with};
pub use model::Model;
pub use profile::{Arguments, Calls, EmptyContent, Ids, Limit, Overrides, Profile, System};
pub use redial_files::{FileError, FileErrors};
pub use response::read as read_response;
pub use settings::Settings;
