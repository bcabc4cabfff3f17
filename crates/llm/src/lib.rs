//! Asks a model.
//!
//! A [`redial_proto::TurnRequest`] is the same for every provider; here it becomes the request that one provider takes,
//! and the answer becomes a [`redial_proto::TurnReply`]. The mapping is pure ([`openai`], [`anthropic`], [`react`]);
//! one thin client does HTTP. A malformed answer is a reply like any other, with the problem in words.
//!
//! `docs/MODELS.md` is the guide for people who set up models.

mod answer;
pub mod anthropic;
mod api;
mod config;
mod http;
mod ids;
mod limit;
mod model;
mod names;
pub mod openai;
mod profile;
pub mod react;
mod schema;
mod script;
mod settings;
mod thread;
mod words;

pub use config::{ModelsError, load, load_with};
pub use model::Model;
pub use profile::{Arguments, Calls, Ids, Limit, Profile, Silence, Switches, System};
pub use settings::Settings;
