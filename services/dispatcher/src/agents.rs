//! The agents that a file declares. The file is read again when it has changed.

mod file;

use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf, sync::Arc, time::Instant};

use redial_access::TenantPolicy;
use redial_engine::feedback::check_templates;
use redial_proto::{AgentSpec, ApiError, Code};
use redial_reread::{Current, Reread};

pub use self::file::{AgentsFile, Reference, check_agent_file, check_agents_file};

/// The agents of a file's last valid version.
pub(crate) struct Agents(Reread<BTreeMap<String, AgentSpec>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Declared {
    agents: Arc<BTreeMap<String, AgentSpec>>,
    file: Option<Arc<str>>,
    /// Why the current file cannot be used; the agents are those of its earlier version.
    pub(crate) problem: Option<Arc<str>>,
}

impl Agents {
    /// Reads the file; a bad one is an error that names the file, the agent, the field and what is allowed.
    pub(crate) async fn load(file: Option<PathBuf>) -> Result<Self, ApiError> {
        Ok(Self(Reread::load(file, "agents", parse).await?))
    }

    /// Returns the file's agents, read at most once a second. An invalid file changes only [`Declared::problem`].
    pub(crate) async fn at(&self, now: Instant) -> Declared {
        let Current { value, file, problem } = self.0.at(now).await;
        Declared { agents: value.unwrap_or_default(), file, problem }
    }
}

impl Declared {
    /// Returns the agent of this name. The error names only agents that the tenant may use.
    pub(crate) fn agent(&self, name: &str, policy: Option<&TenantPolicy>) -> Result<&AgentSpec, ApiError> {
        self.agents.get(name).ok_or_else(|| self.unknown(name, policy))
    }

    pub(crate) fn allowed<'a>(
        &'a self,
        policy: Option<&'a TenantPolicy>,
    ) -> impl Iterator<Item = (&'a str, &'a AgentSpec)> {
        let agents = self.agents.iter().map(|(name, spec)| (name.as_str(), spec));
        agents.filter(move |(name, _)| policy.is_none_or(|policy| policy.allows_agent(name)))
    }

    fn unknown(&self, name: &str, policy: Option<&TenantPolicy>) -> ApiError {
        let known = self.agents.keys().map(String::as_str);
        let known: Vec<&str> = known.filter(|agent| policy.is_none_or(|policy| policy.allows_agent(agent))).collect();
        let mut message = format!("no agent {:?} is declared", redial_proto::limits::shorten(name, 64));
        // Writing to a String cannot fail.
        let _ = match (&self.file, closest(name, known.iter().copied())) {
            (None, _) => {
                write!(
                    message,
                    "; the dispatcher has no file of agents: at its start it found no agents.toml in its folder, and the \
                     setting `agents` named none. If there is one now, restart it (`redial dev` or `redial dispatcher`); or \
                     send the whole agent (`redial task --agent-file`)"
                )
            }
            (Some(_), Some(names)) => write!(message, "; did you mean {names}?"),
            (Some(file), None) => {
                let names: Vec<String> = known.iter().take(20).map(|name| format!("{name:?}")).collect();
                write!(message, "; {file} declares {}", if names.is_empty() { "none".into() } else { names.join(", ") })
            }
        };
        // It may quote any agent of the file.
        if let Some(problem) = self.problem.as_ref().filter(|_| policy.is_none()) {
            let _ = write!(message, " (the earlier version of the file is in use: {problem})");
        }
        ApiError::new(Code::UnknownAgent, message)
    }
}

/// Checks what does not depend on the models and tools that exist.
pub(crate) fn check(spec: &AgentSpec) -> Result<(), String> {
    spec.check()?;
    check_templates(&spec.templates)
}

/// Returns up to three close names, as a question lists them.
pub(crate) fn closest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<_> = redial_arguments::closest(name, known, 3).iter().map(|name| format!("{name:?}")).collect();
    (!names.is_empty()).then(|| names.join(" or "))
}

fn parse(file: &str, text: &str) -> Result<BTreeMap<String, AgentSpec>, ApiError> {
    let wrong = |mistakes: Vec<String>| ApiError::new(Code::InvalidAgent, mistakes.join("\n"));
    file::parse(file, text).map(|read| read.agents).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use redial_reread::CHECK_INTERVAL;

    use super::*;

    #[tokio::test]
    async fn a_bad_file_changes_nothing_and_unknown_agents_are_told_what_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agents.toml");
        std::fs::write(&path, "[agents.small]\nmodel = \"m\"\n[agents.large]\nmodel = \"m\"").unwrap();
        let agents = Agents::load(Some(path.clone())).await.unwrap();
        std::fs::write(&path, "[agents.small]\nmodel = 3").unwrap();
        let declared = agents.at(Instant::now() + CHECK_INTERVAL * 2).await;
        assert_eq!(declared.agent("small", None).unwrap().model, "m");
        assert!(declared.problem.as_ref().unwrap().contains("agent \"small\""), "{:?}", declared.problem);
        let unknown = declared.agent("smal", None).unwrap_err();
        assert_eq!(unknown.code, Code::UnknownAgent);
        assert!(unknown.message.contains("did you mean \"small\"?") && unknown.message.contains("earlier version"));
        let other = TenantPolicy { agents: Some(vec!["support".to_owned()]), ..TenantPolicy::default() };
        let unknown = declared.agent("smal", Some(&other)).unwrap_err();
        assert!(!unknown.message.contains("small") && !unknown.message.contains("large"), "{}", unknown.message);
    }

    #[tokio::test]
    async fn no_file_has_no_agents() {
        let none = Agents::load(None).await.unwrap().at(Instant::now()).await;
        assert!(none.agent("x", None).unwrap_err().message.contains("has no file of agents"));
    }
}
