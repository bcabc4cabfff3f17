//! Registered tools, with their schemas compiled.

use std::{collections::HashMap, sync::Arc};

use redial_arguments::{Schema, SchemaError};
use redial_proto::{RetryBudget, RetryPolicy, ToolSpec, turn};

use crate::fingerprint::fingerprint;

/// Tools by name.
pub type Tools = HashMap<String, Arc<RegisteredTool>>;

/// A registered tool.
#[derive(Debug)]
pub struct RegisteredTool {
    /// As its worker registered it.
    pub spec: ToolSpec,
    /// The schema of its arguments.
    pub schema: Arc<Schema>,
    /// Fingerprint of the spec: changes whenever the spec does.
    pub version: String,
}

impl RegisteredTool {
    /// Compiles the schema of a tool; an error says where the schema is wrong.
    pub fn new(spec: ToolSpec) -> Result<Self, SchemaError> {
        let schema = Arc::new(Schema::compile(&spec.parameters)?);
        // A spec has text keys only, so this cannot fail.
        let version =
            serde_json::to_value(&spec).map(|spec| fingerprint(&spec).simple().to_string()).unwrap_or_default();
        Ok(Self { spec, schema, version })
    }

    /// It asks a model; agents cannot call it.
    pub fn is_model(&self) -> bool {
        self.spec.pool == turn::POOL
    }
}

/// Compiles new and changed tools, and keeps the others as they were compiled before. Calls `report` for each tool
/// that is left out because of its schema.
pub fn compile(specs: Vec<ToolSpec>, known: &Tools, mut report: impl FnMut(&str, SchemaError)) -> Tools {
    let mut tools = Tools::with_capacity(specs.len());
    for spec in specs {
        if let Some(tool) = known.get(&spec.name).filter(|tool| tool.spec == spec) {
            tools.insert(spec.name, tool.clone());
            continue;
        }
        let name = spec.name.clone();
        match RegisteredTool::new(spec) {
            Ok(tool) => drop(tools.insert(name, Arc::new(tool))),
            Err(error) => report(&name, error),
        }
    }
    tools
}

/// When and how often to retry the calls of a tool. A tool that left the registry, which only happens by hand, is
/// retried by the defaults.
pub fn retry_policy(tools: &Tools, tool: &str) -> RetryPolicy {
    tools.get(tool).map_or_else(RetryPolicy::default, |tool| tool.spec.retry)
}

/// How many retries of a tool run.
pub fn retry_budget(tools: &Tools, tool: &str) -> RetryBudget {
    tools.get(tool).map_or_else(RetryBudget::default, |tool| tool.spec.retry_budget)
}
