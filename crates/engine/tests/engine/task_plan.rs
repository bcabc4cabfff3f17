//! Plans of tasks whose tools and models come and go.

mod fixture;

use chrono::TimeDelta;
use redial_engine::task::{Needs, PlanContext, Planning, plan};
use redial_proto::{CallId, CallState, ErrorClass, ReplyCall, Role, TaskCode, TaskInput, TaskState, TurnReply, turn};
use redial_records::{InboxItem, StartInfo, TaskRecord, TaskStatus};

use fixture::{
    Fixture, NOW, asks_for, cancelled, ended, notices, offered, outcome, published, replies, tools, wake_at,
};

#[test]
fn a_start_asks_the_model_with_the_tools_in_order() {
    let fixture = Fixture::new(&["look", "model-small", "act", "other"]);
    let transition = fixture.plan();
    assert_eq!((transition.status.state(), transition.steps.len()), (TaskState::Running, 1));
    assert!(transition.starts && transition.last_step == 0);
    let roles: Vec<(u32, Role)> = transition.messages.iter().map(|(seq, message)| (*seq, message.role)).collect();
    assert_eq!(roles, [(1, Role::System), (2, Role::User)]);
    let [call] = transition.calls.as_slice() else { panic!("{:?}", transition.calls) };
    assert_eq!((call.tool.as_str(), call.pool.as_str(), call.refusal.is_none()), ("model-small", turn::POOL, true));
    assert_eq!((call.conversation.as_deref(), call.traceparent.as_deref()), (Some("c"), Some("trace")));
    let of = call.task.unwrap();
    assert_eq!((of.task, of.turn, of.call_index), (fixture.record.id, 1, 0));
    assert_eq!(offered(&transition), ["act", "look"]);
    let told: Vec<(u32, TaskState)> = notices(&transition).map(|notice| (notice.step, notice.state)).collect();
    assert_eq!((published(&transition), told), (vec![call.id], vec![(1, TaskState::Running)]));
}

#[test]
fn instructions_are_written_once() {
    let told = StartInfo { next_seq: 7, system: Some("Be.".to_owned()), carried: Some("no progress".to_owned()) };
    let mut fixture = Fixture::new(&["model-small"]);
    fixture.record.start = Some(told);
    let transition = fixture.plan();
    let roles: Vec<_> = transition.messages.iter().map(|(seq, message)| (*seq, message.role)).collect();
    assert_eq!(roles, [(7, Role::User)]);
}

#[test]
fn a_missing_tool_answers_its_call_and_the_others_continue() {
    let mut fixture = Fixture::new(&["look", "act", "model-small"]);
    fixture.advance(|start| vec![asks_for(&start.calls[0], &["look", "act"])]);
    fixture.tools = tools(&["act", "model-small"]);
    let transition = fixture.plan();
    let calls: Vec<_> = transition.calls.iter().map(|call| (call.tool.as_str(), call.refusal.is_some())).collect();
    assert_eq!(calls, [("look", true), ("act", false)]);
    let inputs: Vec<_> = transition.steps.iter().map(|step| &step.input).collect();
    assert!(
        matches!(inputs[..], [TaskInput::TurnEnded { .. }, TaskInput::CallEnded { call_index: 1, .. }]),
        "the refusal is an event like any other: {inputs:?}"
    );
    let answers: Vec<_> = transition.messages.iter().filter(|(_, message)| message.role == Role::Tool).collect();
    assert_eq!((answers.len(), answers[0].1.class), (1, Some(ErrorClass::UnknownTool)));
    assert_eq!(published(&transition), [transition.calls[1].id]);
}

#[test]
fn a_missing_model_ends_the_task() {
    let mut fixture = Fixture::new(&["look"]);
    assert_eq!(fixture.needs(), None, "no request is made");
    let transition = fixture.advance(|_| Vec::new());
    let end = outcome(&transition);
    assert_eq!((end.state, end.code), (TaskState::Failed, TaskCode::ModelFailed));
    let refusal = transition.calls[0].refusal.as_ref().unwrap();
    assert_eq!(refusal.message, "no worker serves the model \"small\"");
    assert_eq!((transition.steps.len(), published(&transition).len()), (2, 0));
}

#[test]
fn a_wake_without_a_reason_is_no_step() {
    let mut fixture = Fixture::new(&["look", "model-small"]);
    let start = fixture.advance(|_| Vec::new());
    fixture.record.wake_at = Some(NOW);
    let transition = fixture.plan();
    assert_eq!((transition.steps.len(), transition.calls.len(), transition.effects.len()), (0, 0, 0));
    assert_eq!((transition.status.state(), &transition.progress), (TaskState::Running, &start.progress));
    assert!(wake_at(&transition).unwrap() > NOW);
}

#[test]
fn only_a_model_turn_needs_the_conversation() {
    let retry = InboxItem::Retrying {
        call: CallId::generate(),
        turn: 1,
        call_index: 0,
        tool: "model-small".to_owned(),
        attempt: 1,
        class: ErrorClass::RateLimited,
        message: "slow down".to_owned(),
        next_at: NOW,
    };
    let mut fixture = Fixture::new(&["look", "act", "model-small"]);
    assert!(matches!(fixture.needs(), Some(Needs::Conversation(_))));
    let start = fixture.advance(|_| vec![retry.clone(), retry]);
    assert_eq!(fixture.needs(), None, "retries alone");
    let asked = fixture.advance(|_| vec![asks_for(&start.calls[0], &["look", "act"])]);
    assert_eq!((asked.steps.len(), asked.calls.len()), (2, 0));
    assert_eq!(fixture.needs(), None, "calls run");
    let run = fixture.advance(|asked| vec![ended(&asked.calls[0], CallState::Succeeded, Some("1".to_owned()))]);
    assert_eq!(fixture.needs(), None, "another call is open");
    fixture.advance(|_| vec![ended(&run.calls[1], CallState::Succeeded, Some("2".to_owned()))]);
    assert!(matches!(fixture.needs(), Some(Needs::Conversation(_))), "the next turn");
}

#[test]
fn a_cancel_stops_what_runs_by_its_id() {
    let mut fixture = Fixture::new(&["look", "act", "model-small"]);
    let start = fixture.advance(|_| vec![InboxItem::Cancel]);
    assert_eq!(fixture.needs(), None);
    assert_eq!(cancelled(&fixture.plan()), [start.calls[0].id]);
    fixture.record.inbox = vec![asks_for(&start.calls[0], &["look", "act"])];
    let run = fixture.advance(|_| vec![InboxItem::Cancel]);
    let stopping = fixture.advance(|_| Vec::new());
    assert_eq!(cancelled(&stopping), run.calls.iter().map(|call| call.id).collect::<Vec<_>>());
    fixture.record.wake_at = Some(NOW);
    assert_eq!(cancelled(&fixture.plan()), cancelled(&stopping), "again, should the first try have been lost");
}

#[test]
fn a_long_result_can_be_read_on_and_in_later_tasks_too() {
    let offers = |carried: Option<String>| {
        let mut fixture = Fixture::new(&["look", "model-small"]);
        fixture.record.start = Some(StartInfo { next_seq: 9, system: None, carried });
        offered(&fixture.plan())
    };
    let mut fixture = Fixture::new(&["look", "model-small"]);
    fixture.advance(|start| vec![asks_for(&start.calls[0], &["look"])]);
    let long = format!("{:?}", "x".repeat(40_000));
    fixture.advance(|asked| vec![ended(&asked.calls[0], CallState::Succeeded, Some(long))]);
    let turn = fixture.advance(|_| Vec::new());
    assert_eq!(offered(&turn), ["look", "read_result"]);
    assert_eq!(offers(Some(turn.progress)), ["look"]);
    let id = fixture.messages.iter().find_map(|stored| stored.message.call_id.clone()).unwrap();
    let mut read = |arguments: String| {
        let calls = vec![ReplyCall { name: "read_result".to_owned(), arguments }];
        fixture.record.inbox = vec![replies(&turn.calls[0], &TurnReply { calls, ..TurnReply::default() })];
        (fixture.needs(), fixture.plan())
    };
    let (needs, read_on) = read(format!("{{\"call_id\":{id:?},\"offset\":10}}"));
    assert_eq!(needs, Some(Needs::Results(vec![id])), "one result");
    let answer = read_on.messages.iter().find(|(_, message)| message.role == Role::Tool).unwrap();
    assert!(answer.1.content.contains("\"offset\":10,\"total_bytes\":40002"), "{:.200}", answer.1.content);
    assert_eq!((read_on.calls.len(), read_on.calls[0].tool.as_str()), (1, "model-small"));
    // It does not matter whether it was used well.
    assert_eq!(offers(Some(read("{}".to_owned()).1.progress)), ["look", "read_result"]);
}

#[test]
fn what_a_worker_wrote_may_be_no_reply() {
    for output in ["3", "{\"calls\": 1}", "null"] {
        let mut fixture = Fixture::new(&["look", "model-small"]);
        fixture.advance(|start| vec![ended(&start.calls[0], CallState::Succeeded, Some(output.to_owned()))]);
        let transition = fixture.plan();
        let end = outcome(&transition);
        assert_eq!(end.code, TaskCode::ModelFailed);
        assert!(end.message.as_ref().unwrap().contains("a reply that could not be parsed"));
    }
}

#[test]
fn a_task_that_may_not_start_is_checked_again_less_and_less_often() {
    let mut fixture = Fixture::new(&["model-small"]);
    fixture.record.start = None;
    // It must not end before its turn, or it would answer calls of the task that runs.
    fixture.record.spec = "{}".to_owned();
    for (waited, seconds) in [(0, 1), (1, 1), (7, 7), (30, 30), (3_600, 30)] {
        fixture.record.submitted_at = NOW - TimeDelta::seconds(waited);
        let transition = fixture.plan();
        assert_eq!(transition.status, TaskStatus::Waiting { wake_at: NOW + TimeDelta::seconds(seconds) });
        assert!(transition.steps.is_empty() && transition.effects.is_empty() && !transition.starts);
        assert_eq!(transition.progress, "null");
    }
}

#[test]
fn a_cancelled_task_that_may_not_start_ends() {
    let mut fixture = Fixture::new(&["model-small"]);
    fixture.record.start = None;
    fixture.record.inbox.push(InboxItem::Cancel);
    let transition = fixture.plan();
    assert_eq!(outcome(&transition).code, TaskCode::Cancelled);
    assert!(transition.messages.is_empty() && !transition.starts);
}

#[test]
fn nothing_is_planned_for_a_record_that_cannot_be_read() {
    let broken: [fn(&mut TaskRecord); 2] = [
        |record| record.spec = "{}".to_owned(),
        |record| {
            let (progress, state) = (Some("{\"turns\": -1}".to_owned()), TaskState::Running);
            *record = TaskRecord { progress, state, start: None, ..record.clone() };
        },
    ];
    for breaks in broken {
        let mut fixture = Fixture::new(&["model-small"]);
        breaks(&mut fixture.record);
        fixture.record.inbox.push(InboxItem::Cancel);
        let mut new_id = CallId::generate;
        let planning = plan(fixture.record.clone(), &mut PlanContext::new(&fixture.tools, &mut new_id));
        let Planning::Unreadable(why) = planning else { panic!("{planning:?}") };
        assert!(why.contains("cannot be read"), "{why}");
    }
}
