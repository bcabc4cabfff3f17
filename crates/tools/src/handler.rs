//! What the kinds of tools have in common: how an attempt runs, and how it ends.

use futures_util::future::BoxFuture;
use redial_proto::Failure;
use serde_json::value::RawValue;

use crate::context::Context;

/// How an attempt ends: the tool's output as JSON text, or why there is none.
pub type ToolResult = Result<Box<RawValue>, Failure>;

/// Runs the attempts of one tool, many at the same time.
///
/// The future is dropped when the attempt must stop: deadline, lost lease, cancel. Whatever it started must then end.
pub trait Handler: Send + Sync + 'static {
    /// Runs one attempt. `arguments` is a JSON object that fits the tool's schema.
    fn run(&self, context: Context, arguments: Box<RawValue>) -> BoxFuture<'static, ToolResult>;
}
