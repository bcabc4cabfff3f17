//! A task on record goes the same way again.

use redial_engine::task::{Recorded, replay};
use redial_proto::{AgentSpec, Language, Policy, TaskDecision, TaskSubmission, ToolEffect};
use redial_store::Purpose;
use redial_test_stack::{Stack, scripted_tool};
use serde_json::json;

use super::script::{Model, agent, calls, says, task};

#[tokio::test]
async fn a_replay_finds_nothing_unless_the_record_was_changed() {
    let mut stack = Stack::start().await;
    let replies = vec![
        calls([("Look", json!({"n": "1", "fail": "business_rule"})), ("loook", json!({})), ("look", json!("{"))]),
        calls([("look", json!({"n": 1, "fail": "unavailable", "times": 1}))]),
        says("I\0 saw it."),
    ];
    let small = Model::playing("small", replies.clone());
    let large = Model::playing("large", replies);
    let look = scripted_tool("look", ToolEffect::Read, &stack.ledger);
    stack.play_models(vec![small.tool(), large.tool()]).await;
    stack.work(vec![look]).await;
    let spec = AgentSpec {
        system: "Look.".to_owned(),
        policy: Policy::Fallback,
        fallback_after: 0,
        fallback_model: Some("large".to_owned()),
        ..agent("small", &["look"])
    };
    let mut reports = Vec::new();
    for input in ["What is there?", "And now?"] {
        let submission = TaskSubmission { conversation: Some("c".to_owned()), ..task(input, spec.clone()) };
        let id = stack.task(&submission).await;
        reports.push(stack.task_ended(id).await);
    }
    let messages: Vec<_> = reports.iter().flat_map(|report| report.messages.clone()).collect();
    let store = stack.store(Purpose::Audit).await;
    for mut report in reports {
        assert_eq!(report.task.code, Some(redial_proto::TaskCode::Answered), "{:?}", report.task);
        let records = store.task_calls(report.task.task).await.unwrap();
        let ended: Vec<_> = records.iter().filter_map(redial_store::audit::CallAudit::ended).collect();
        assert_eq!(ended.len(), records.len());
        let differences = |report: &redial_proto::TaskReport| {
            replay(&Recorded {
                task: report.task.task,
                spec: &spec,
                language: Language::En,
                input: &report.task.input,
                steps: &report.steps,
                messages: &messages,
                calls: &ended,
            })
        };
        assert_eq!(differences(&report), []);
        let is_fallback = |decision: &TaskDecision| matches!(decision, TaskDecision::Fallback { .. });
        let changed = report.steps.iter_mut().find(|step| step.decisions.iter().any(is_fallback)).unwrap();
        changed.decisions.retain(|decision| !is_fallback(decision));
        let n = changed.step;
        let found = differences(&report);
        assert!(!found.is_empty() && found.iter().all(|difference| difference.step == n), "{found:?}");
    }
    stack.finish().await;
}
