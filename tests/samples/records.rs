//! Databases of earlier versions, migrated to this one: everything is listed, and what was open is finished.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use redial_proto::{
    AnswerReply, AnswerRequest, CONTRACT, CallId, CallState, TaskId, TaskState, Tenant, ToolEffect, subjects::Verb,
};
use redial_store::{
    ActionFilter, Purpose, RECORDS, Store, TokenFilter,
    audit::{Filter, TaskFilter},
};
use redial_testkit::{Invariant, Servers, Stack, arguments, scripted_tool, until};
use redial_views::call_view;
use serde_json::json;
use uuid::Uuid;

use crate::{
    Version, folders, own_folder,
    restore::{dump, newest_migration, restore},
    scene, updates,
};

/// Tables that the scene leaves empty: they are filled by other means, or only for a moment.
const EMPTY: [&str; 9] = [
    "late_reports",
    "model_day_stats",
    "payloads",
    "pending_tools",
    "pointer_stats",
    "sessions",
    "stream_settings",
    "task_inbox",
    "tombstones",
];

#[tokio::test]
async fn records_are_sampled_on_request() {
    if !updates() {
        return;
    }
    let stack = scene::play().await;
    let (records, empty) = dump(stack.db()).await;
    let missing: Vec<&String> = empty.iter().filter(|table| !EMPTY.contains(&table.as_str())).collect();
    assert!(missing.is_empty(), "the scene writes nothing to {missing:?}");
    let version = Version {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        contract: CONTRACT,
        records: RECORDS,
        migration: newest_migration(stack.db()).await,
    };
    let folder = own_folder();
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("records.jsonl"), records).unwrap();
    fs::write(folder.join("version.json"), serde_json::to_string_pretty(&version).unwrap() + "\n").unwrap();
    drop(stack.verdict().await);
}

#[tokio::test]
async fn records_of_every_version_are_listed_and_finished() {
    if updates() {
        return;
    }
    for folder in folders() {
        Box::pin(list_and_finish(&folder)).await;
    }
}

async fn list_and_finish(folder: &Path) {
    let servers = Servers::start().await;
    restore(&servers, folder).await;
    let mut stack = Stack::on(servers).await;
    let store = stack.store(Purpose::Audit).await;
    list_calls(&stack, &store).await;
    list_tasks(&stack, &store).await;
    list_others(&store).await;
    finish(&mut stack).await;
    // Deliveries of webhooks, which no worker takes here.
    stack.leaves_calls();
    // What the tools did for the samples is in no ledger of this test, and a retry was hurried along.
    let expected = [Invariant::EffectsWithinAttempts, Invariant::RetriesWhenDue];
    let violations = stack.verdict().await;
    let others: Vec<_> = violations.iter().filter(|one| !expected.contains(&one.invariant)).collect();
    assert!(others.is_empty(), "{others:?}");
}

async fn all(stack: &Stack, question: &'static str) -> Vec<Uuid> {
    sqlx::query_scalar(question).fetch_all(stack.db()).await.unwrap()
}

async fn list_calls(stack: &Stack, store: &Store) {
    let calls: Vec<CallId> = all(stack, "SELECT id FROM calls").await.into_iter().map(CallId).collect();
    let lines = store.history(&Filter::default(), 1_000).await.unwrap();
    assert_eq!(lines.len(), calls.len());
    let mut states = BTreeMap::<&str, usize>::new();
    for record in store.records_of(&calls).await.unwrap() {
        let view = call_view(record, redial_proto::Language::En);
        *states.entry(view.state.as_str()).or_default() += 1;
    }
    for state in CallState::ALL {
        assert!(states.contains_key(state.as_str()), "no call is {state}: {states:?}");
    }
    let loaded = store.load(&calls).await.unwrap();
    assert!(loaded.unreadable.is_empty() && loaded.calls.len() == calls.len(), "{:?}", loaded.unreadable);
}

async fn list_tasks(stack: &Stack, store: &Store) {
    let own = Tenant::default();
    let tasks: Vec<TaskId> = all(stack, "SELECT id FROM tasks").await.into_iter().map(TaskId).collect();
    assert_eq!(store.tasks(&TaskFilter::default(), 1_000).await.unwrap().len(), tasks.len());
    for task in &tasks {
        let report = store.of(&own).task_report(*task, 0, 1_000_000).await.unwrap().unwrap();
        assert_ne!(report.task.state, TaskState::Other);
        let text = serde_json::to_string(&report).unwrap();
        assert!(!text.contains(r#":"unknown""#), "{text}");
        store.task_origin(*task).await.unwrap().unwrap();
    }
    assert!(tasks.len() >= 4);
    let conversation = store.of(&own).messages("trip-1", 0, 100, 1_000_000).await.unwrap();
    let seqs: Vec<u32> = conversation.iter().map(|message| message.seq).collect();
    assert!(seqs.len() >= 6 && seqs == (1..=u32::try_from(seqs.len()).unwrap()).collect::<Vec<_>>(), "{seqs:?}");
}

async fn list_others(store: &Store) {
    let own = Tenant::default();
    let own = store.of(&own);
    assert_eq!(own.redrives(None, None, 100).await.unwrap().len(), 1);
    assert_eq!(own.webhooks().await.unwrap()[0].events.len(), 2);
    let names: Vec<String> = store.tools().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert!(
        ["tool", "once", "later", "model-small"].iter().all(|name| names.iter().any(|one| one == name)),
        "{names:?}"
    );
    assert!(!store.tokens(&TokenFilter::default(), 100).await.unwrap().is_empty());
    assert!(!store.actions(&ActionFilter::default(), 100).await.unwrap().is_empty());
    assert_eq!(own.rejected(None, 100, 1_000).await.unwrap().len(), 1);
}

/// Open calls and tasks go on as if this version had written them.
async fn finish(stack: &mut Stack) {
    // What was open when the samples were made is past its time by now.
    let renew = "UPDATE calls SET deadline_at = clock_timestamp() + interval '1 h',
                     wake_at = CASE state WHEN 'client_wait' THEN clock_timestamp() + interval '1 h' ELSE clock_timestamp() END
                 WHERE wake_at IS NOT NULL";
    sqlx::query(renew).execute(stack.db()).await.unwrap();
    sqlx::query("UPDATE tasks SET wake_at = NULL WHERE state = 'running'").execute(stack.db()).await.unwrap();
    // The worker that ran one of them is gone.
    stack.workers_will_die();
    stack.dispatch().await;
    let tools = scene::tools(stack).into_iter().chain([scripted_tool("later", ToolEffect::Read, &stack.ledger)]);
    stack.work(tools.collect()).await;
    let models = scene::serve_models(stack, vec![scene::says("Done, too.")]).await;
    let asked = all(stack, "SELECT id FROM calls WHERE state = 'client_wait'").await;
    for call in asked {
        let answer = AnswerRequest { call: CallId(call), output: Some(arguments(json!("Monday"))), error: None };
        let _: AnswerReply = stack.queue().ask(Verb::CallAnswer, &answer, Duration::from_secs(25)).await.unwrap();
    }
    for what in ["calls WHERE tool <> 'redial_webhook' AND wake_at IS NOT NULL", "tasks WHERE finished_at IS NULL"] {
        let question = format!("SELECT count(*) FROM {what}");
        until(&format!("no {what}"), async || {
            let open: i64 =
                sqlx::query_scalar(sqlx::AssertSqlSafe(question.clone())).fetch_one(stack.db()).await.unwrap();
            (open == 0).then_some(())
        })
        .await;
    }
    let ended: Vec<(String, i64)> = sqlx::query_as("SELECT state, count(*) FROM tasks GROUP BY state ORDER BY state")
        .fetch_all(stack.db())
        .await
        .unwrap();
    assert_eq!(ended, [("cancelled".to_owned(), 1), ("succeeded".to_owned(), 3)]);
    let later: Vec<String> =
        sqlx::query_scalar("SELECT state FROM calls WHERE tool = 'later'").fetch_all(stack.db()).await.unwrap();
    assert_eq!(later, ["succeeded", "succeeded"]);
    drop(models);
}
