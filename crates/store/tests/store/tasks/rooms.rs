//! Results of several MB: a transaction reads a few MB of them, and the rest follows.

use redial_proto::{
    CallId, CallState, ClaimId, GrantRef, JobRef, Language, Message, Role, StoredMessage, TaskId, Trimmed, TurnRequest,
    WorkerId, turn,
};
use redial_records::{
    Claim, InboxItem, NewCall, ReadConversation, TaskTransition, TurnOnRecord,
    turn::{Expanded, Missing},
};
use redial_store::{AskedTurn, Store, TurnRoom, Unexpanded};

use crate::fixture::{Fixture, Locked, bare_call, new_call, stepped};

/// Two of them are more than a transaction reads.
const LARGE: usize = 3 << 20;

/// Starts a task with so many calls.
async fn begin(fixture: &Fixture, conversation: &str, count: u32) -> (TaskId, Vec<NewCall>) {
    let task = fixture.submit(conversation).await;
    let calls: Vec<NewCall> = (1..=count).map(|index| new_call(task, 1, index)).collect();
    fixture.start_with(task, &calls).await;
    (task, calls)
}

/// Ends a call with a result of so many bytes.
async fn succeed(fixture: &Fixture, call: &NewCall, bytes: usize) {
    fixture.run(call.id, CallState::Succeeded, Ok(format!("\"{}\"", "x".repeat(bytes - 2)))).await;
}

/// Makes a task whose calls ended with results of so many bytes each.
async fn task_with(fixture: &Fixture, conversation: &str, results: &[usize]) -> TaskId {
    let (task, calls) = begin(fixture, conversation, u32::try_from(results.len()).unwrap()).await;
    for (call, bytes) in calls.iter().zip(results) {
        succeed(fixture, call, *bytes).await;
    }
    task
}

/// What one transaction took, and which tasks it had no room for.
struct Round {
    /// For each task the lengths of its results.
    taken: Vec<(TaskId, Vec<usize>)>,
    left: Vec<TaskId>,
}

async fn round(store: &Store, tasks: &[TaskId]) -> Round {
    let mut locked = store.lock_tasks(tasks, true).await.unwrap();
    let records = locked.take_records();
    let left = locked.take_left();
    let length = |item: &InboxItem| match item {
        InboxItem::Ended(ended) => ended.output.as_ref().unwrap().len(),
        _ => 0,
    };
    let taken = records.iter().map(|record| (record.id, record.inbox.iter().map(length).collect())).collect();
    let plans: Vec<TaskTransition> =
        records.into_iter().map(|record| stepped(&Locked::without_messages(record), Vec::new())).collect();
    locked.commit(store, &plans.iter().collect::<Vec<_>>(), 10_000).await.unwrap();
    Round { taken, left }
}

#[tokio::test]
async fn tasks_whose_results_do_not_fit_into_one_transaction_follow_in_their_order() {
    let fixture = Fixture::open().await;
    let mut tasks = Vec::new();
    for (n, bytes) in [LARGE, LARGE, 100, LARGE].into_iter().enumerate() {
        tasks.push(task_with(&fixture, &format!("c{n}"), &[bytes]).await);
    }
    // Not the order of their ids, in which rows are locked.
    tasks.reverse();
    let [first, second, third, fourth] = tasks[..] else { panic!("{tasks:?}") };
    let one = round(&fixture.store, &tasks).await;
    assert_eq!(one.taken, [(first, vec![LARGE]), (second, vec![100])]);
    assert_eq!(one.left, [third, fourth]);
    assert_eq!(fixture.inbox().await, 2, "what was left stays");
    let two = round(&fixture.store, &one.left).await;
    assert_eq!((two.taken, two.left), (vec![(third, vec![LARGE])], vec![fourth]));
    let three = round(&fixture.store, &[fourth]).await;
    assert_eq!((three.taken, three.left), (vec![(fourth, vec![LARGE])], Vec::new()));
    assert_eq!(fixture.inbox().await, 0);
}

#[tokio::test]
async fn a_task_with_many_large_results_takes_them_one_after_the_other() {
    let fixture = Fixture::open().await;
    let huge = task_with(&fixture, "huge", &[LARGE, 2 * LARGE, LARGE]).await;
    let small = task_with(&fixture, "small", &[100]).await;
    let mut tasks = vec![huge, small];
    let mut seen = Vec::new();
    while !tasks.is_empty() {
        let round = round(&fixture.store, &tasks).await;
        seen.push(round.taken);
        tasks = round.left;
    }
    let expected = [
        vec![(huge, vec![LARGE])],
        // It has its turn before the rest of the first.
        vec![(small, vec![100])],
        vec![(huge, vec![2 * LARGE])],
        vec![(huge, vec![LARGE])],
    ];
    assert_eq!(seen, expected);
    assert_eq!(fixture.inbox().await, 0);
}

#[tokio::test]
async fn results_for_tasks_that_have_ended_are_dropped_and_not_read() {
    let fixture = Fixture::open().await;
    let mut tasks = Vec::new();
    for n in 0..3 {
        let (task, calls) = begin(&fixture, &format!("c{n}"), 1).await;
        fixture.end(task).await;
        succeed(&fixture, &calls[0], LARGE).await;
        tasks.push(task);
    }
    assert_eq!(fixture.inbox().await, 3);
    let round = round(&fixture.store, &tasks).await;
    assert_eq!((round.taken.len(), round.left.len()), (0, 0));
    assert_eq!(fixture.inbox().await, 0);
}

#[tokio::test]
async fn tasks_that_read_on_in_long_results_have_room_or_wait() {
    let fixture = Fixture::open().await;
    let mut tasks = Vec::new();
    for (name, count) in [("a", 2), ("b", 1), ("c", 1)] {
        let task = fixture.submit(name).await;
        let answer = |n: u32| Message {
            call_id: Some(format!("c1_{n}")),
            tool: Some("t".to_owned()),
            ..Message::text(Role::Tool, format!("{task}{}", "x".repeat(LARGE)))
        };
        let plan = |task: Locked| Some(stepped(&task, (1..=count).map(|n| (n, answer(n))).collect()));
        fixture.advance([task], plan).await.unwrap();
        fixture.own().cancel_task(task).await.unwrap();
        // The last one has no result.
        tasks.push((task, (1..=count + 1).map(|n| format!("c1_{n}")).collect::<Vec<_>>()));
    }
    let ids: Vec<TaskId> = tasks.iter().map(|(task, _)| *task).collect();
    let mut locked = fixture.store.lock_tasks(&ids, true).await.unwrap();
    let mut rounds = Vec::new();
    while !tasks.is_empty() {
        let found = locked.results(&fixture.store, &tasks).await.unwrap();
        rounds
            .push(tasks.iter().filter(|(task, _)| found.contains_key(task)).map(|(task, _)| *task).collect::<Vec<_>>());
        for (task, calls) in tasks.iter().filter(|(task, _)| found.contains_key(task)) {
            assert_eq!(found[task].len(), calls.len() - 1, "all of a task, or nothing");
            assert!(found[task].values().all(|text| text.starts_with(&task.to_string()) && text.len() > LARGE));
        }
        tasks.retain(|(task, _)| !found.contains_key(task));
    }
    assert_eq!(rounds, ids.iter().map(|task| vec![*task]).collect::<Vec<_>>());
}

// ---- Turns ----

/// A turn over a conversation of one result, of which a model is shown the ends.
struct Turn {
    task: TaskId,
    request: String,
    on_record: TurnOnRecord,
}

impl Turn {
    /// Writes a turn. `tail`: bytes of the end that are shown.
    async fn write(fixture: &Fixture, conversation: &str, tail: usize) -> Self {
        let whole = format!("好{}{}", "x".repeat(LARGE), "end".repeat(100));
        let result = Message {
            call_id: Some("c1_1".to_owned()),
            tool: Some("t".to_owned()),
            ..Message::text(Role::Tool, whole.clone())
        };
        let task = fixture.submit(conversation).await;
        let mut at = None;
        let written = fixture.advance([task], |task| {
            at = Some(task.read_at);
            Some(stepped(&task, vec![(1, result.clone())]))
        });
        written.await.unwrap();
        let shown = format!("{}… cut …{}", &whole[..103], &whole[whole.len() - tail..]);
        let request = TurnRequest {
            task,
            turn: 2,
            messages: vec![Message { content: shown, ..result.clone() }],
            tools: Vec::new(),
            language: Language::Zh,
            max_tokens: None,
            temperature: None,
            trimmed: Trimmed::default(),
        };
        let text = serde_json::to_string(&request).unwrap();
        let read = ReadConversation::whole(vec![StoredMessage { seq: 1, task, at: at.unwrap(), message: result }]);
        let (on_record, _) = TurnOnRecord::new(request, &[1], &text, &read);
        assert!(on_record.to_json().len() < 2_000, "it refers");
        Self { task, request: text, on_record }
    }

    fn asked(&self, conversation: &str) -> AskedTurn {
        let arguments = self.on_record.to_json();
        AskedTurn { tenant: "default".to_owned(), conversation: conversation.to_owned(), task: self.task, arguments }
    }

    fn expanded(&self) -> Expanded {
        Expanded { request: self.request.clone(), is_exact: true }
    }
}

#[tokio::test]
async fn of_a_long_result_that_a_model_was_shown_in_part_only_the_ends_are_read() {
    let fixture = Fixture::open().await;
    let (both, head) = (Turn::write(&fixture, "both", 30).await, Turn::write(&fixture, "head", 0).await);
    let turns = [both.asked("both"), head.asked("head"), both.asked("both")];
    let expand = async |each, together| fixture.store.expand_turns(&turns, TurnRoom { each, together }).await.unwrap();
    let all = fixture.store.expand_turns(&turns, TurnRoom::ALL).await.unwrap();
    assert_eq!(all, [Ok(both.expanded()), Ok(head.expanded()), Ok(both.expanded())]);
    let no_room = || Err(Unexpanded::NoRoom);
    let most = LARGE as u64 * 2;
    assert_eq!(expand(most, most).await, [Ok(both.expanded()), Ok(head.expanded()), no_room()]);
    // The beginning is read without the rest.
    assert_eq!(expand(1_000, most).await, [no_room(), Ok(head.expanded()), no_room()]);
    assert_eq!(expand(100, most).await, [no_room(), no_room(), no_room()]);
}

#[tokio::test]
async fn a_worker_learns_what_of_its_turn_is_missing() {
    let fixture = Fixture::open().await;
    let asked = Turn::write(&fixture, "c", 30).await;
    let call =
        NewCall { pool: turn::POOL.to_owned(), arguments: asked.on_record.to_json(), ..new_call(asked.task, 2, 0) };
    let task = asked.task;
    fixture.own().cancel_task(task).await.unwrap();
    let plan = |task: Locked| Some(TaskTransition { calls: vec![call.clone()], ..stepped(&task, Vec::new()) });
    fixture.advance([task], plan).await.unwrap();
    let (worker, claim): (WorkerId, _) = ("worker-1".parse().unwrap(), ClaimId::generate());
    let job = JobRef { call: call.id, attempt: 1 };
    let not_after = chrono::Utc::now() + chrono::TimeDelta::hours(1);
    let one = Claim { job, claim, worker: worker.clone(), tool: call.tool.clone(), not_after };
    assert_eq!(fixture.store.claim(&[one], 60_000).await.unwrap().len(), 1);
    let grant = GrantRef { call: call.id, attempt: 1, claim };
    let bytes = fixture.store.arguments_bytes(&worker, grant).await.unwrap().unwrap();
    assert!((asked.request.len()..10_000).contains(&bytes), "{bytes}");
    let opened = fixture.store.arguments_of(&worker, grant).await.unwrap().unwrap().unwrap();
    assert_eq!((opened.arguments, opened.tool_version), (asked.request, None));
    sqlx::raw_sql("DELETE FROM messages").execute(&fixture.db).await.unwrap();
    let missing = Missing("message 1".to_owned());
    assert_eq!(fixture.store.arguments_of(&worker, grant).await.unwrap(), Some(Err(Unexpanded::Missing(missing))));
    let other = GrantRef { attempt: 2, ..grant };
    assert_eq!(fixture.store.arguments_of(&worker, other).await.unwrap(), None);
    assert_eq!(fixture.store.arguments_bytes(&worker, other).await.unwrap(), None);
}

// ---- Groups ----

#[tokio::test]
async fn calls_are_grouped_in_the_order_that_they_are_asked_for() {
    let fixture = Fixture::open().await;
    let large = |bytes: usize| NewCall {
        arguments: format!(r#"{{"text": "{}"}}"#, "x".repeat(bytes)),
        conversation: None,
        ..bare_call()
    };
    let calls = [large(100), large(2 * LARGE), large(LARGE), large(100)];
    fixture.store.submit(&calls, 10_000).await.unwrap();
    let unknown = CallId::generate();
    let [one, two, three, four] = calls.map(|call| call.id);
    let groups = fixture.store.groups_in_order(&[four, two, unknown, three, one]).await.unwrap();
    assert_eq!(groups, [vec![four, two, unknown], vec![three, one]]);
}
