//! Models: each is a tool of pool `models`, whose arguments are a turn's request and whose output is its reply.

mod file;

use redial_proto::{Effect, ToolSpec, tool::any_object, turn};
use redial_tools::Tool;

pub(crate) use file::load;

/// A model that stands in no file: named and grouped like one.
pub(crate) fn own(mut tool: Tool) -> Tool {
    let ToolSpec { name, pool, effect, parameters, .. } = &mut tool.spec;
    *name = turn::tool_name(name);
    turn::POOL.clone_into(pool);
    *effect = Effect::Idempotent;
    // What a request looks like is said by `proto/schemas/turn_request.json`, not by each registration again.
    *parameters = any_object();
    tool
}
