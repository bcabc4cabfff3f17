//! Lists of what a tenant may use.

use std::time::Duration;

use redial_proto::{AgentList, ListAgents, ListTools, ToolList, subjects::Verb};
use redial_test_stack::{Servers, Stack};
use redial_tools::{Tool, ToolError};
use serde_json::Value;

const ANSWER: Duration = Duration::from_secs(25);

const ACCESS: &str = r#"
[dispatcher]
password = "$A"
[tenants.acme]
tools = ["echo", "other"]
agents = ["support"]
[tenants.globex]
"#;
const AGENTS: &str = r#"
[agents.support]
model = "small"
system = "a secret of the operators"
tools = ["echo"]
[agents.triage]
model = "large"
"#;

#[tokio::test]
async fn a_tenant_sees_the_tools_and_agents_that_it_may_use() {
    let folder = tempfile::tempdir().unwrap();
    let mut stack = Stack::on(Servers::start().await).await;
    std::fs::write(folder.path().join("access.toml"), ACCESS).unwrap();
    std::fs::write(folder.path().join("agents.toml"), AGENTS).unwrap();
    stack.access = Some(folder.path().join("access.toml"));
    stack.agents = Some(folder.path().join("agents.toml"));
    stack.dispatch().await;
    let named = |name: &str| Tool::new(name, |value: Value| async move { Ok::<_, ToolError>(value) });
    stack.work(vec![Tool::echo(), named("other"), named("third")]).await;
    stack.play_models(vec![named("small")]).await;
    let (acme, nobody) = (stack.user("acme", "alice").await, stack.user("unknown", "eve").await);

    let all: ToolList = acme.ask(Verb::ToolList, &ListTools::default(), ANSWER).await.unwrap();
    let found: Vec<&str> = all.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
    assert_eq!((found, &all.next), (vec!["echo", "other"], &None), "no model, and nothing that it may not use");
    assert!(all.tools.iter().all(|tool| tool.served), "{all:?}");
    let first: ToolList =
        acme.ask(Verb::ToolList, &ListTools { limit: Some(1), ..ListTools::default() }, ANSWER).await.unwrap();
    assert_eq!((first.tools.len(), first.next.as_deref()), (1, Some("echo")));
    let rest: ToolList =
        acme.ask(Verb::ToolList, &ListTools { after: first.next, ..ListTools::default() }, ANSWER).await.unwrap();
    assert_eq!((rest.tools[0].spec.name.as_str(), rest.next), ("other", None));
    let third = ListTools { tool: Some("third".to_owned()), ..ListTools::default() };
    assert!(acme.ask::<_, ToolList>(Verb::ToolList, &third, ANSWER).await.unwrap().tools.is_empty());

    let agents: AgentList = acme.ask(Verb::AgentList, &ListAgents::default(), ANSWER).await.unwrap();
    assert_eq!(agents.agents.len(), 1);
    assert_eq!((agents.agents[0].name.as_str(), agents.agents[0].model.as_str()), ("support", "small"));
    assert!(!serde_json::to_string(&agents).unwrap().contains("secret"), "instructions are the operators'");
    let refused = nobody.ask::<_, ToolList>(Verb::ToolList, &ListTools::default(), ANSWER).await;
    assert!(refused.is_err(), "a tenant that the file does not name: {refused:?}");

    // Without a worker a tool is still known, and not served.
    stack.stop_workers().await;
    redial_test_stack::until("nobody serves the tools", async || {
        let list: ToolList = acme.ask(Verb::ToolList, &ListTools::default(), ANSWER).await.unwrap();
        list.tools.iter().all(|tool| !tool.served).then_some(())
    })
    .await;
    stack.finish().await;
}
