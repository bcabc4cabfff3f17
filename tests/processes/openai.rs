//! The OpenAI-compatible addresses, driven by OpenAI's own Python client on real servers.

mod chat;
mod fixture;
mod responses;
mod retries;
mod tokens;
