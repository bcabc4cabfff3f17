//! The tool `master_haiku_generator`: requires exactly three topics; its type says so, and therefore its schema.

use redial_worker::{Tool, ToolEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the poem is about.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Request {
    /// One topic for each line
    topic: [String; 3],
}

#[derive(Debug, Serialize)]
struct Haiku {
    haiku: String,
}

pub(crate) fn tool() -> Tool {
    Tool::new("master_haiku_generator", generate)
        .describe("Writes a haiku about three topics.")
        .effect(ToolEffect::Read)
}

async fn generate(Request { topic: [first, second, third] }: Request) -> Haiku {
    Haiku { haiku: format!("{first} in the mist\n{second}, and nobody looks up\n{third} says nothing") }
}
