//! Runs tools: native Rust functions, HTTP requests, commands; delivers webhooks.
//!
//! A [`Tool`] is a spec and a handler; [`Tool::run`] is one attempt. Dropping its future stops the attempt: deadlines,
//! lost leases and cancels all work that way. Failures are classified by the closed set [`redial_proto::ErrorClass`].
//!
//! `docs/TOOLS.md` is the guide for people who write tools.

#![warn(missing_docs)]

mod command;
mod context;
#[cfg(test)]
mod damaged;
mod echo;
mod error;
mod handler;
mod http;
mod manifest;
mod memory;
mod native;
mod output;
mod structured;
mod template;
mod tool;
mod webhook;

pub use command::{Account, CommandUser, wait_for_kills};
pub use context::{Context, Watchers};
pub use error::{Rules, ToolError};
pub use handler::{Handler, ToolResult};
pub use manifest::{load, load_with};
pub use memory::OutputMemory;
pub use native::{IntoToolResult, NativeTool};
pub use redial_files::{FileError, FileErrors};
pub use redial_redaction::Secrets;
pub use redial_webhooks::{Allowed, AllowedError, KeyError, WebhookKey};
pub use tool::{COMMANDS_POOL, Tool, ToolConflict, check_compatible, check_reserved};
