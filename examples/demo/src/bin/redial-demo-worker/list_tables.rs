//! The tool `list_tables`: takes nothing, and always finds the same.

use redial_worker::{Effect, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::POOL;

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Debug, Serialize)]
struct Tables {
    tables: [&'static str; 2],
}

pub(crate) fn tool() -> Tool {
    Tool::new("list_tables", list).describe("The names of the database's tables.").effect(Effect::Read).pool(POOL)
}

async fn list(_: Nothing) -> Tables {
    Tables { tables: ["_sqlx_migrations", "users"] }
}
