//! What users see of tasks.

use redial_proto::{Message, MessageCall, Role, TaskId, TaskState};
use redial_store::audit::TaskFilter;
use serde_json::json;

use crate::fixture::{Fixture, Locked, answered, stepped};

/// Lets a task write one message per step, from sequence number 1 on.
async fn tell(fixture: &Fixture, task: TaskId, messages: Vec<Message>) {
    for (n, message) in (1..).zip(messages) {
        fixture.own().cancel_task(task).await.unwrap();
        // The first look has no cancel, so that the task starts.
        let decide = |task: Locked| Some(stepped(&task, vec![(n, message.clone())]));
        fixture.advance([task], decide).await.unwrap();
    }
}

#[tokio::test]
async fn a_report_is_split_into_fitting_pieces_and_stays_complete() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    let text = |n: usize| Message::text(Role::User, format!("{n}").repeat(400 * n));
    tell(&fixture, task, (1..=6).map(text).collect()).await;
    let (mut after, mut pieces, mut seqs) = (0, 0, Vec::new());
    loop {
        let report = fixture.own().task_report(task, after, 4_000).await.unwrap().unwrap();
        assert!(serde_json::to_vec(&report).unwrap().len() <= 4_000);
        let written: Vec<u32> = report.messages.iter().map(|stored| stored.seq).collect();
        let steps: Vec<u32> = report.steps.iter().map(|step| step.step).collect();
        assert_eq!(written, steps, "each step with what it wrote");
        seqs.extend(written);
        pieces += 1;
        after = *steps.last().unwrap();
        if !report.more {
            break;
        }
    }
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6]);
    assert!((3..6).contains(&pieces), "{pieces} pieces");
    let whole = fixture.own().task_report(task, 0, 1_000_000).await.unwrap().unwrap();
    assert_eq!((whole.steps.len(), whole.messages.len(), whole.more), (6, 6, false));
    assert_eq!(whole.messages[5].message, text(6));
    let nothing = fixture.own().task_report(task, 6, 1_000_000).await.unwrap().unwrap();
    assert_eq!((nothing.steps.len(), nothing.messages.len(), nothing.more), (0, 0, false));
    assert!(fixture.own().task_report(TaskId::generate(), 0, 1_000).await.unwrap().is_none());
}

#[tokio::test]
async fn more_steps_than_are_read_at_once_are_reported() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    let decide = |task: Locked| {
        let transition = stepped(&task, Vec::new());
        let step = transition.steps[0].clone();
        let steps = (1..=150).map(|number| redial_proto::TaskStep { step: number, ..step.clone() }).collect();
        Some(redial_records::TaskTransition { steps, ..transition })
    };
    fixture.advance([task], decide).await.unwrap();
    let first = fixture.own().task_report(task, 0, 1_000_000).await.unwrap().unwrap();
    assert_eq!((first.steps.len(), first.more), (100, true));
    let rest = fixture.own().task_report(task, 100, 1_000_000).await.unwrap().unwrap();
    assert_eq!((rest.steps.len(), rest.more, rest.steps[0].step), (50, false, 101));
}

#[tokio::test]
async fn a_step_too_long_for_a_message_is_cut_to_fit() {
    const MOST: usize = 20_000;
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    let call = |n: usize| MessageCall { id: format!("c1_{n}"), tool: "t".into(), arguments: "\u{1}".repeat(9_000) };
    let huge = Message {
        calls: (1..4).map(call).collect(),
        thought: Some("好".repeat(9_000)),
        provider: Some(json!("x".repeat(9_000))),
        ..Message::text(Role::Assistant, "\u{1}".repeat(30_000))
    };
    tell(&fixture, task, vec![huge, Message::text(Role::User, "short")]).await;
    let report = fixture.own().task_report(task, 0, MOST).await.unwrap().unwrap();
    assert!(serde_json::to_vec(&report).unwrap().len() <= MOST);
    assert_eq!((report.steps.len(), report.messages.len(), report.more), (1, 1, true));
    let message = &report.messages[0].message;
    assert!(message.content.ends_with("(cut)") && message.calls.len() == 3 && message.content.len() > 300);
    let rest = fixture.own().task_report(task, 1, MOST).await.unwrap().unwrap();
    assert_eq!((rest.messages[0].message.content.as_str(), rest.more), ("short", false));
}

#[tokio::test]
async fn tasks_are_listed_newest_first_by_every_filter() {
    let fixture = Fixture::open().await;
    let (first, second, third) = (fixture.submit("a").await, fixture.submit("b").await, fixture.submit("a").await);
    fixture.start(first).await;
    fixture.own().cancel_task(first).await.unwrap();
    fixture.advance([first], |task| Some(answered(&task))).await.unwrap();
    let inline = redial_records::NewTask { agent: None, tenant: "other".to_owned(), ..crate::fixture::new_task("a") };
    fixture.store.submit_tasks(std::slice::from_ref(&inline)).await.unwrap();
    let list = async |filter: TaskFilter, limit| {
        let tasks = fixture.store.tasks(&filter, limit).await.unwrap();
        tasks.into_iter().map(|task| task.task).collect::<Vec<_>>()
    };
    let all = TaskFilter::default;
    assert_eq!(list(all(), 10).await, [inline.id, third, second, first]);
    assert_eq!(list(all(), 2).await, [inline.id, third]);
    assert_eq!(list(TaskFilter { before: Some(third), ..all() }, 10).await, [second, first]);
    assert_eq!(list(TaskFilter { state: Some(TaskState::Succeeded), ..all() }, 10).await, [first]);
    assert_eq!(list(TaskFilter { conversation: Some("a".into()), ..all() }, 10).await, [third, first]);
    let elsewhere = TaskFilter { conversation: Some("a".into()), tenant: Some("other".into()), ..all() };
    assert_eq!(list(elsewhere, 10).await, [inline.id]);
    assert_eq!(list(TaskFilter { agent: Some("helper".into()), ..all() }, 10).await, [third, second, first]);
    let now = fixture.store.now().await.unwrap();
    assert!(list(TaskFilter { since: Some(now), ..all() }, 10).await.is_empty());
    assert_eq!(list(TaskFilter { since: Some(crate::fixture::hour_before(now)), ..all() }, 10).await.len(), 4);
    let view = fixture.store.tasks(&TaskFilter { before: Some(second), ..all() }, 1).await.unwrap().remove(0);
    assert_eq!((view.model.as_str(), view.answer.as_deref()), ("small", Some("Done.")));
}

#[tokio::test]
async fn the_origin_of_a_task_is_stored_for_a_replay() {
    let fixture = Fixture::open().await;
    let (first, second) = (fixture.submit("c").await, fixture.submit("c").await);
    fixture.start(first).await;
    fixture.end(first).await;
    fixture.start(second).await;
    let origin = fixture.store.task_origin(second).await.unwrap().unwrap();
    assert_eq!((origin.tenant.as_str(), origin.spec.model.as_str()), ("default", "small"));
    let earlier: Vec<_> = origin.earlier.iter().map(|stored| (stored.seq, stored.task)).collect();
    assert_eq!(earlier, [(1, first), (2, first)]);
    assert!(fixture.store.task_origin(first).await.unwrap().unwrap().earlier.is_empty());
    assert!(fixture.store.task_origin(TaskId::generate()).await.unwrap().is_none());
}

#[tokio::test]
async fn people_read_the_views() {
    let fixture = Fixture::open().await;
    let task = fixture.submit("c").await;
    fixture.start_with(task, &[crate::fixture::new_call(task, 1, 0)]).await;
    fixture.end(task).await;
    let line: String = sqlx::query_scalar(
        "SELECT format('%s %s %s %s %s %s', t.state, t.code, t.steps, t.cost_usd, m.role, c.call_index)
         FROM task_history t JOIN message_history m USING (task) JOIN call_history c USING (task)
         WHERE m.seq = 2",
    )
    .fetch_one(&fixture.db)
    .await
    .unwrap();
    assert_eq!(line, "cancelled cancelled 2 0.000006 user 0");
}
