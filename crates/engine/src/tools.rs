//! Registered tools, with their schemas compiled.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use redial_arguments::{Schema, SchemaError};
use redial_proto::{Failure, RetryBudget, RetryPolicy, ToolSpec, limits, turn, webhook};
use uuid::Uuid;

use crate::fingerprint::fingerprint;

pub type Tools = HashMap<String, Arc<RegisteredTool>>;

#[derive(Debug)]
pub struct RegisteredTool {
    pub spec: ToolSpec,
    pub schema: Arc<Schema>,
    /// See [`version`].
    pub version: Uuid,
}

impl RegisteredTool {
    /// Compiles the schema of a tool; an error says where the schema is wrong.
    pub fn new(spec: ToolSpec) -> Result<Self, SchemaError> {
        let schema = Arc::new(Schema::compile(&spec.parameters)?);
        Ok(Self { schema, version: version(&spec), spec })
    }

    /// Says why arguments that were accepted for a version of the tool must not run as it is registered now; `None` if
    /// they may. They are not repaired once more: a call runs with the arguments that are on record.
    pub fn misfit(&self, accepted_for: Uuid, arguments: &str) -> Option<Failure> {
        if accepted_for == self.version {
            return None;
        }
        let failure = Failure::from(self.schema.check(arguments).err()?);
        let message = format!(
            "the arguments were accepted for version {} of the tool, and do not fit version {}, which is registered now: {}",
            accepted_for.simple(),
            self.version.simple(),
            failure.message
        );
        Some(Failure { message: limits::shorten(&message, limits::MAX_ERROR_MESSAGE), ..failure })
    }

    /// True if it asks a model; agents cannot call it.
    pub fn is_model(&self) -> bool {
        self.spec.pool == turn::POOL
    }

    /// True if agents may call it: it is no model, and does not deliver webhooks.
    pub fn is_for_agents(&self) -> bool {
        !self.is_model() && self.spec.name != webhook::TOOL
    }
}

/// Fingerprints a spec: changes whenever the spec does.
pub fn version(spec: &ToolSpec) -> Uuid {
    // A spec has text keys only, so this cannot fail.
    serde_json::to_value(spec).map(|spec| fingerprint(&spec)).unwrap_or_default()
}

/// Memory that the schemas of all tools of one worker identity may take, in bytes: about 1,000 schemas of 2 KB, or a dozen of
/// the most costly that are allowed. Each dispatcher has all of them.
pub const MAX_SCHEMAS: u64 = 128 << 20;

/// The worker identities that may serve each tool.
pub type Identities = HashMap<String, HashSet<String>>;

#[derive(Debug, thiserror::Error)]
pub enum LeftOut {
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// See [`MAX_SCHEMAS`].
    #[error("the schemas of worker identity {0:?} take more memory than the {MAX_SCHEMAS} bytes that are allowed")]
    TooMuch(String),
}

/// Compiles new and changed tools, and keeps the others as they were compiled before. Calls `report` for each tool that is
/// left out. A registration that exceeds [`MAX_SCHEMAS`] is refused, but two dispatchers may each let one in that does so
/// only with the other: here is where the limit holds.
pub fn compile(
    specs: Vec<ToolSpec>,
    identities: &Identities,
    known: &Tools,
    mut report: impl FnMut(&str, LeftOut),
) -> Tools {
    let mut tools = Tools::with_capacity(specs.len());
    let mut memory = HashMap::<&str, u64>::new();
    let mut new = Vec::new();
    for spec in specs {
        match known.get(&spec.name).filter(|tool| tool.spec == spec) {
            Some(tool) => {
                for identity in identities.get(&spec.name).into_iter().flatten() {
                    *memory.entry(identity).or_default() += tool.schema.memory();
                }
                tools.insert(spec.name, tool.clone());
            }
            None => new.push(spec),
        }
    }
    for spec in new {
        let name = spec.name.clone();
        let owners = identities.get(&name);
        let full = owners.into_iter().flatten().find(|identity| memory.get(identity.as_str()) > Some(&MAX_SCHEMAS));
        if let Some(identity) = full {
            report(&name, LeftOut::TooMuch(identity.clone()));
            continue;
        }
        let tool = match RegisteredTool::new(spec) {
            Ok(tool) => tool,
            Err(error) => {
                report(&name, error.into());
                continue;
            }
        };
        for identity in owners.into_iter().flatten() {
            *memory.entry(identity).or_default() += tool.schema.memory();
        }
        tools.insert(name, Arc::new(tool));
    }
    tools
}

/// Returns the memory that the schemas of the other tools of a worker identity take, in bytes.
pub fn memory_without(tools: &Tools, identities: &Identities, identity: &str, without: &BTreeSet<&str>) -> u64 {
    let others = tools.iter().filter(|(name, _)| !without.contains(name.as_str()));
    let of_identity = others.filter(|(name, _)| identities.get(*name).is_some_and(|all| all.contains(identity)));
    of_identity.map(|(_, tool)| tool.schema.memory()).sum()
}

/// Returns when and how often to retry the calls of a tool. A tool that left the registry, which only happens by hand,
/// is retried by the defaults.
pub fn retry_policy(tools: &Tools, tool: &str) -> RetryPolicy {
    tools.get(tool).map_or_else(RetryPolicy::default, |tool| tool.spec.retry)
}

/// Returns how many retries of a tool may run.
pub fn retry_budget(tools: &Tools, tool: &str) -> RetryBudget {
    tools.get(tool).map_or_else(RetryBudget::default, |tool| tool.spec.retry_budget)
}

#[cfg(test)]
mod tests {
    use redial_proto::ErrorClass;
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_checked_again_for_another_version_and_both_are_named() {
        let tool = |days: &str| {
            let parameters = json!({"type": "object", "properties": {"days": {"type": days}}});
            RegisteredTool::new(ToolSpec { parameters, ..ToolSpec::named("weather") }).unwrap()
        };
        let (then, now) = (tool("integer"), tool("string"));
        assert_eq!(now.misfit(now.version, r#"{"days": 2}"#), None, "what this version accepted is not checked again");
        assert_eq!(now.misfit(then.version, r#"{"days": "2"}"#), None);
        let misfit = now.misfit(then.version, r#"{"days": 2}"#).unwrap();
        assert_eq!((misfit.class, misfit.effect_possible), (ErrorClass::InvalidArguments, false));
        assert_eq!(misfit.details[0].path, "/days");
        for version in [then.version, now.version] {
            assert!(misfit.message.contains(&version.simple().to_string()), "{}", misfit.message);
        }
    }

    #[test]
    fn the_schemas_of_an_identity_are_bounded_and_those_of_others_stay() {
        let large = json!({"enum": (0..20_000).map(|n| json!({"a": n})).collect::<Vec<_>>()});
        let specs = |count: usize| {
            let large = (0..count).map(|n| ToolSpec { parameters: large.clone(), ..ToolSpec::named(format!("t{n}")) });
            large.chain([ToolSpec::named("z_other")]).collect::<Vec<_>>()
        };
        let owner = |spec: &ToolSpec| if spec.name == "z_other" { "good" } else { "rogue" }.to_owned();
        let identities: Identities = specs(9).iter().map(|one| (one.name.clone(), [owner(one)].into())).collect();
        let mut left_out = Vec::new();
        let mut report = |tool: &str, error: LeftOut| left_out.push(format!("{tool}: {error}"));
        let first = compile(specs(2), &identities, &Tools::new(), &mut report);
        let tools = compile(specs(9), &identities, &first, &mut report);
        assert!(Arc::ptr_eq(&first["t1"], &tools["t1"]), "what was compiled before stays");
        assert!(tools.contains_key("z_other"));
        let of_rogue = memory_without(&tools, &identities, "rogue", &BTreeSet::new());
        assert!(of_rogue < 2 * MAX_SCHEMAS && tools.len() + left_out.len() == 10, "{of_rogue}, {left_out:?}");
        assert!(left_out[0].ends_with("bytes that are allowed"), "{left_out:?}");
        let one = memory_without(&tools, &identities, "good", &BTreeSet::new());
        assert_eq!(memory_without(&tools, &identities, "good", &BTreeSet::from(["z_other"])), 0);
        assert!(one > 0);
    }
}
