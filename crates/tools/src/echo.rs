//! The tool `echo`: returns its arguments. For smoke tests, and for measuring everything but the tool.

use std::future;

use futures_util::{FutureExt, future::BoxFuture};
use redial_proto::{ToolEffect, ToolSpec};
use serde_json::value::RawValue;

use crate::{
    context::Context,
    handler::{Handler, ToolResult},
    tool::Tool,
};

struct Echo;

impl Handler for Echo {
    fn run(&self, _context: Context, arguments: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        future::ready(Ok(arguments)).boxed()
    }
}

impl Tool {
    /// The tool `echo`, effect `read`: takes any object and returns it byte for byte.
    pub fn echo() -> Self {
        Self::from_handler(ToolSpec::named("echo"), Echo).effect(ToolEffect::Read).describe("Returns its arguments.")
    }
}
