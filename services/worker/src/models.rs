//! Models: each is a tool of pool `models`. Its arguments are a [`redial_proto::TurnRequest`], its output is a
//! [`redial_proto::TurnReply`].

mod file;

use redial_proto::{ToolEffect, ToolSpec, tool::any_object, turn};
use redial_tools::Tool;

pub use file::check_models;
pub(crate) use file::load;

/// Turns a tool into a model: gives it the name, the pool and the effect of one.
pub(crate) fn from_tool(mut tool: Tool) -> Tool {
    let ToolSpec { name, pool, effect, parameters, .. } = &mut tool.spec;
    *name = turn::tool_name(name);
    turn::POOL.clone_into(pool);
    *effect = ToolEffect::Idempotent;
    // `proto/schemas/turn_request.json` is the schema; repeating it in every registration would only cost bytes.
    *parameters = any_object();
    tool
}
