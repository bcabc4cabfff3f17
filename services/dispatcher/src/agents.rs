//! The agents that a file declares. The file is read again when it has changed.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use redial_engine::feedback::check_templates;
use redial_proto::{AgentSpec, ApiError, Code, tool::check_name};
use serde::Deserialize;
use tokio::{fs, sync::Mutex};

/// Minimum time between two reads of the file's metadata.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The agents of a file's last valid version.
pub(crate) struct Agents {
    file: Option<PathBuf>,
    known: Mutex<LastRead>,
}

struct LastRead {
    declared: Declared,
    version: Option<Version>,
    checked_at: Instant,
}

/// What shows that a file has changed: when it was written, and its size.
type Version = (Option<SystemTime>, u64);

/// What is declared now.
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
        let mut known = LastRead { declared: Declared::default(), version: None, checked_at: Instant::now() };
        if let Some(path) = &file {
            known.version = version(path).await;
            known.declared = Declared {
                agents: Arc::new(read(path).await?),
                file: Some(path.display().to_string().into()),
                problem: None,
            };
        }
        Ok(Self { file, known: Mutex::new(known) })
    }

    /// The agents as the file declares them, read at most once a second. An invalid file changes only
    /// [`Declared::problem`].
    pub(crate) async fn at(&self, now: Instant) -> Declared {
        let mut known = self.known.lock().await;
        if let Some(path) = &self.file
            && now.saturating_duration_since(known.checked_at) >= CHECK_INTERVAL
        {
            known.checked_at = now;
            known.reload_if_changed(path).await;
        }
        known.declared.clone()
    }
}

impl LastRead {
    async fn reload_if_changed(&mut self, path: &Path) {
        let version = version(path).await;
        if version == self.version {
            return;
        }
        self.version = version;
        match read(path).await {
            Ok(agents) => {
                tracing::info!(file = %path.display(), agents = agents.len(), "Reloaded the agents");
                self.declared.agents = Arc::new(agents);
                self.declared.problem = None;
            }
            Err(error) => {
                tracing::error!(error = error.message, "Failed to reload the agents; the previous ones stay in use");
                self.declared.problem = Some(error.message.into());
            }
        }
    }
}

/// `None` if the file's metadata cannot be read.
async fn version(path: &Path) -> Option<Version> {
    let metadata = fs::metadata(path).await.ok()?;
    Some((metadata.modified().ok(), metadata.len()))
}

impl Declared {
    /// The agent of this name.
    pub(crate) fn agent(&self, name: &str) -> Result<&AgentSpec, ApiError> {
        self.agents.get(name).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> ApiError {
        let mut message = format!("no agent {:?} is declared", redial_proto::limits::shorten(name, 64));
        // Writing to a String cannot fail.
        let _ = match (&self.file, closest(name, self.agents.keys().map(String::as_str))) {
            (None, _) => {
                write!(message, "; the dispatcher has no file of agents: set `agents`, or send the whole agent")
            }
            (Some(_), Some(names)) => write!(message, "; did you mean {names}?"),
            (Some(file), None) => {
                let names: Vec<String> = self.agents.keys().take(20).map(|name| format!("{name:?}")).collect();
                write!(message, "; {file} declares {}", if names.is_empty() { "none".into() } else { names.join(", ") })
            }
        };
        if let Some(problem) = &self.problem {
            let _ = write!(message, " (the earlier version of the file is in use: {problem})");
        }
        ApiError::new(Code::UnknownAgent, message)
    }
}

/// The errors of an agent that do not depend on the models and tools that exist.
pub(crate) fn check(spec: &AgentSpec) -> Result<(), String> {
    spec.check()?;
    check_templates(&spec.templates)
}

/// Up to three close names, as a question lists them.
pub(crate) fn closest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<_> = redial_arguments::closest(name, known, 3).iter().map(|name| format!("{name:?}")).collect();
    (!names.is_empty()).then(|| names.join(" or "))
}

async fn read(path: &Path) -> Result<BTreeMap<String, AgentSpec>, ApiError> {
    let file = path.display().to_string();
    let text = fs::read_to_string(path).await.map_err(|error| {
        ApiError::new(Code::InvalidConfiguration, format!("{file}: the agents cannot be read: {error}"))
    })?;
    parse(&file, &text)
}

/// The agents in a text of TOML.
fn parse(file: &str, text: &str) -> Result<BTreeMap<String, AgentSpec>, ApiError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        agents: BTreeMap<String, toml::Value>,
    }
    let wrong = |what: String| ApiError::new(Code::InvalidAgent, format!("{file}: {what}"));
    let tables: File = toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
    let agent = |(name, table): (String, toml::Value)| {
        let wrong = |what: String| wrong(format!("agent {name:?}: {what}"));
        check_name("name", &name).map_err(wrong)?;
        let spec = AgentSpec::deserialize(table).map_err(|error| wrong(one_line(&error.to_string())))?;
        check(&spec).map_err(wrong)?;
        Ok((name, spec))
    };
    tables.agents.into_iter().map(agent).collect()
}

/// The TOML reader says on a second line in which field it is.
fn one_line(error: &str) -> String {
    error.trim().replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        let error = parse("agents.toml", text).unwrap_err();
        assert_eq!(error.code, Code::InvalidAgent);
        error.message
    }

    #[test]
    fn an_agent_has_defaults_for_everything_but_its_model() {
        let agents =
            parse("agents.toml", "[agents.\"订票\"]\nmodel = \"small\"\n[agents.b]\nmodel = \"m\"\ntools = [\"a_*\"]")
                .unwrap();
        assert_eq!(agents["订票"], AgentSpec::new("small"));
        assert_eq!(agents["b"].tools, ["a_*"]);
        assert!(parse("agents.toml", "").unwrap().is_empty());
    }

    #[test]
    fn a_bad_file_is_named_with_the_agent_the_field_and_what_is_allowed() {
        let bad = [
            "[agents.a]\nmodle = \"m\"",
            "[agents.a]\ntools = []",
            "[agents.a]\nmodel = \"m\"\npolicy = \"fallback\"",
            "[agents.a]\nmodel = \"m\"\npolicy = \"fall\"",
            "[agents.a]\nmodel = \"m\"\nbudgets.turns = \"many\"",
            "[agents.a]\nmodel = \"m\"\nbudgets = {turn = 3}",
            "[agents.a]\nmodel = \"m\"\ntemplates = {\"nudge.empty\" = \"\"}",
            "[agents.\"a b\"]\nmodel = \"m\"",
            "[agent.a]\nmodel = \"m\"",
            "[agents.a\n",
        ];
        insta::assert_snapshot!(bad.map(wrong).join("\n\n"));
    }

    #[tokio::test]
    async fn a_changed_file_is_read_again_and_a_bad_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agents.toml");
        std::fs::write(&path, "[agents.small]\nmodel = \"m\"").unwrap();
        let agents = Agents::load(Some(path.clone())).await.unwrap();
        let begin = Instant::now();
        assert_eq!(agents.at(begin).await.agent("small").unwrap().model, "m");

        std::fs::write(&path, "[agents.small]\nmodel = \"other\"\n[agents.large]\nmodel = \"m\"").unwrap();
        assert_eq!(agents.at(begin).await.agent("small").unwrap().model, "m", "looked at once a second at most");
        let after = |n| begin + CHECK_INTERVAL * n;
        assert_eq!(agents.at(after(2)).await.agent("small").unwrap().model, "other");

        std::fs::write(&path, "[agents.small]\nmodel = 3").unwrap();
        let declared = agents.at(after(4)).await;
        assert_eq!(declared.agent("small").unwrap().model, "other");
        assert!(declared.problem.as_ref().unwrap().contains("agent \"small\""), "{:?}", declared.problem);
        let unknown = declared.agent("smal").unwrap_err();
        assert_eq!(unknown.code, Code::UnknownAgent);
        assert!(unknown.message.contains("did you mean \"small\"?") && unknown.message.contains("earlier version"));

        std::fs::write(&path, "[agents.small]\nmodel = \"third\"").unwrap();
        let declared = agents.at(after(6)).await;
        assert_eq!((declared.agent("small").unwrap().model.as_str(), &declared.problem), ("third", &None));
    }

    #[tokio::test]
    async fn a_missing_file_is_an_error_and_no_file_is_none() {
        let error = Agents::load(Some("/nowhere/agents.toml".into())).await.err().unwrap();
        assert_eq!(error.code, Code::InvalidConfiguration);
        assert!(error.message.starts_with("/nowhere/agents.toml: "), "{}", error.message);
        let none = Agents::load(None).await.unwrap().at(Instant::now()).await;
        assert!(none.agent("x").unwrap_err().message.contains("has no file of agents"));
    }
}
