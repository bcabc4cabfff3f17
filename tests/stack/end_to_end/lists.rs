//! Lists of what a tenant may use.

use redial_proto::{AgentList, Code, ListAgents, ListTools, ToolList, subjects::Verb};
use redial_test_stack::{Stack, file, until};
use redial_tools::{Tool, ToolError};
use serde_json::Value;

use super::fixture::ask;

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
    let files = |stack: &mut Stack| {
        stack.dispatcher.access = Some(file("access", ACCESS));
        stack.dispatcher.agents = Some(file("agents", AGENTS));
    };
    let mut stack = Stack::start_with(files).await;
    let named = |name: &str| Tool::new(name, |value: Value| async move { Ok::<_, ToolError>(value) });
    stack.work(vec![Tool::echo(), named("other"), named("third")]).await;
    stack.play_models(vec![named("small")]).await;
    let (acme, nobody) = (stack.user("acme", "alice").await, stack.user("unknown", "eve").await);

    let all: ToolList = ask(&acme, Verb::ToolList, &ListTools::default()).await.unwrap();
    let found: Vec<&str> = all.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
    assert_eq!((found, &all.next), (vec!["echo", "other"], &None), "no model, and nothing that it may not use");
    assert!(all.tools.iter().all(|tool| tool.served), "{all:?}");
    let page = |limit, after, tool| ListTools { tool, after, limit };
    let first: ToolList = ask(&acme, Verb::ToolList, &page(Some(1), None, None)).await.unwrap();
    assert_eq!((first.tools.len(), first.next.as_deref()), (1, Some("echo")));
    let rest: ToolList = ask(&acme, Verb::ToolList, &page(None, first.next, None)).await.unwrap();
    assert_eq!((rest.tools[0].spec.name.as_str(), rest.next), ("other", None));
    let third: ToolList = ask(&acme, Verb::ToolList, &page(None, None, Some("third".to_owned()))).await.unwrap();
    assert!(third.tools.is_empty());

    let agents: AgentList = ask(&acme, Verb::AgentList, &ListAgents::default()).await.unwrap();
    let found: Vec<_> = agents.agents.iter().map(|agent| (agent.name.as_str(), agent.model.as_str())).collect();
    assert_eq!(found, [("support", "small")]);
    assert!(!serde_json::to_string(&agents).unwrap().contains("secret"), "instructions are the operators'");
    let refused = ask::<ToolList>(&nobody, Verb::ToolList, &ListTools::default()).await;
    assert_eq!(refused.unwrap_err().code, Code::Forbidden, "a tenant that the file does not name");

    // Without a worker a tool is still known, and not served.
    stack.stop_workers().await;
    until("nobody serves the tools", async || {
        let list: ToolList = ask(&acme, Verb::ToolList, &ListTools::default()).await.unwrap();
        list.tools.iter().all(|tool| !tool.served).then_some(())
    })
    .await;
    stack.finish().await;
}
