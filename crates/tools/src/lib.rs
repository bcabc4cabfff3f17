//! What runs a tool: native Rust, HTTP, command.
//!
//! A [`Tool`] is a spec and a handler; [`Tool::run`] is one attempt. Dropping its future stops the attempt: deadlines,
//! lost leases and cancels all work that way. What failed is told in the closed set of [`redial_proto::ErrorClass`].
//!
//! `docs/TOOLS.md` is the guide for people who write tools.

mod command;
mod context;
mod echo;
mod error;
mod hosts;
mod http;
mod manifest;
mod native;
mod output;
mod secrets;
mod structured;
mod template;
mod tool;

pub use command::settled;
pub use context::{Context, Watchers};
pub use error::{Rules, ToolError};
pub use manifest::{ManifestError, load, load_with};
pub use native::{IntoAnswer, NativeTool};
pub use tool::{Answer, Handler, Tool, ToolConflict, check_reserved, check_together};
