use redial_proto::{CallId, CallState, ClaimId, JobRef, RetryOverride, ToolEffect};
use redial_queue::{ConsumerDepth, Unclaimed};
use redial_store::WorkingConsumer;

use super::*;

fn with_consumer(name: &str) -> Vec<WorkingConsumer> {
    let consumer = LiveConsumer {
        name: name.to_owned(),
        pool: "default".to_owned(),
        tools: ["tool".to_owned()].into(),
        slots: 1,
        workers: 1,
    };
    vec![WorkingConsumer { consumer, is_live: true }]
}

fn part(tenant: &str) -> BacklogPart {
    BacklogPart { tool: "tool".to_owned(), tenant: tenant.to_owned(), backlog: Backlog::Job }
}

#[test]
fn a_consumer_is_gone_until_its_calls_are_in_the_backlog_or_it_lives_again() {
    let feeder = Feeder::default();
    assert!(feeder.set_consumers(with_consumer("one"), false).is_empty());
    assert_eq!(feeder.set_consumers(with_consumer("two"), false), ["one"]);
    assert_eq!(feeder.set_consumers(with_consumer("two"), false), ["one"], "it could not be done before");
    feeder.requeued("one");
    assert!(feeder.set_consumers(with_consumer("two"), false).is_empty());
    assert_eq!(feeder.set_consumers(Vec::new(), false), ["two"]);
    assert!(feeder.set_consumers(with_consumer("two"), false).is_empty(), "it lives again");
}

fn time(seconds: i64) -> Time {
    Time::UNIX_EPOCH + TimeDelta::seconds(seconds)
}

fn waits(tenant: &str, seconds: i64) -> Position {
    Position { part: part(tenant), since: Some(time(seconds)) }
}

/// Makes a dispatcher with workers; returns where it begins to look for the calls of acme.
fn with_acme() -> (Feeder, impl Fn(&Feeder) -> Option<Time>) {
    let feeder = Feeder::default();
    feeder.set_consumers(with_consumer("one"), false);
    let at = Instant::now();
    (feeder, move |feeder| feeder.positions(at).into_iter().find(|one| one.part == part("acme"))?.since)
}

#[test]
fn a_call_that_comes_back_during_a_look_is_not_passed_over() {
    let (feeder, since) = with_acme();
    let at = Instant::now();
    feeder.found(vec![waits("acme", 100)]);
    let look = |meanwhile: &dyn Fn()| {
        let asked = feeder.positions(at);
        meanwhile();
        feeder.looked(&asked, &[waits("acme", 3_600)], at);
        since(&feeder)
    };
    assert_eq!(look(&|| ()), Some(time(3_599)), "nothing waits before that");
    assert_eq!(look(&|| feeder.wake(part("acme"), None)), Some(time(3_599)), "a new call is behind the others");
    assert_eq!(look(&|| feeder.wake(part("acme"), Some(time(50)))), Some(time(49)));
    assert_eq!(look(&|| ()), Some(time(3_599)));
    assert_eq!(look(&|| feeder.found(vec![waits("acme", 40)])), Some(time(39)), "another dispatcher put it there");
}

/// While somebody holds an old snapshot, each look would walk over all that was taken behind it.
#[test]
fn a_call_that_stays_locked_is_passed_until_the_search_finds_it() {
    let (feeder, since) = with_acme();
    let at = Instant::now();
    feeder.found(vec![waits("acme", 100)]);
    let order = Order { part: part("acme"), consumer: "one".to_owned(), pool: "default".to_owned(), most: 9 };
    // What a look finds first, and up to where calls are taken then.
    let round = |first: i64, until: Option<i64>| {
        let asked = feeder.positions(at);
        feeder.looked(&asked, &[waits("acme", first)], at);
        feeder.fed(&order, 1, until.map(time));
        since(&feeder)
    };
    let begin = |first: i64| Some(time(first - 1));
    assert_eq!(round(100, Some(200)), begin(100), "somebody else may take it now");
    assert_eq!(round(100, Some(300)), begin(200), "it is locked still");
    assert_eq!(round(310, Some(400)), begin(310));
    feeder.found(vec![waits("acme", 305)]);
    assert_eq!(round(305, None), begin(305), "one that came back is not locked because later ones were taken before");
    assert!(feeder.search(at).parts.is_empty());
    feeder.search_all();
    assert_eq!(feeder.search(at).parts.len(), 1);
    feeder.found(vec![waits("acme", 100)]);
    assert_eq!(since(&feeder), begin(100), "it is tried again now and then");
    assert_eq!(round(100, None), begin(100), "where nothing else is taken nothing is walked over");
    assert_eq!(round(100, Some(100)), begin(100));
    assert_eq!(round(100, None), begin(100), "one of the same time was taken");
}

#[test]
fn a_part_in_which_nothing_waits_is_forgotten() {
    let (feeder, _) = with_acme();
    let at = Instant::now();
    feeder.found(vec![waits("acme", 100), waits("umbrella", 200)]);
    let look = |meanwhile: &dyn Fn()| {
        let asked = feeder.positions(at);
        meanwhile();
        feeder.looked(&asked, &[waits("umbrella", 200)], at);
        feeder.positions(at).len()
    };
    assert_eq!(look(&|| feeder.wake(part("acme"), None)), 2);
    assert_eq!(look(&|| feeder.found(vec![waits("acme", 50)])), 2);
    assert_eq!(look(&|| ()), 1);
    feeder.set_consumers(Vec::new(), false);
    feeder.recheck();
    feeder.search(at);
    feeder.set_consumers(with_consumer("one"), false);
    assert_eq!(feeder.positions(at), [], "nobody served it");
}

#[test]
fn tenants_are_searched_for_between_those_that_are_known() {
    let (feeder, since) = with_acme();
    let at = Instant::now();
    let gaps = || {
        let of_jobs = feeder.search(at).gaps.into_iter().filter(|gap| gap.backlog == Backlog::Job);
        of_jobs.map(|gap| (gap.after, gap.before.unwrap_or("the end".to_owned()))).collect::<Vec<_>>()
    };
    let gap = |after: &str, before: &str| (after.to_owned(), before.to_owned());
    assert_eq!(gaps(), [gap("", "the end")]);
    feeder.found(vec![waits("umbrella", 1)]);
    feeder.wake(part("acme"), None);
    assert_eq!(gaps(), [gap("", "acme"), gap("acme", "umbrella"), gap("umbrella", "the end")]);
    assert_eq!(since(&feeder), None, "nothing was searched yet");
}

#[test]
fn a_search_begins_where_the_one_before_ended_and_now_and_then_at_the_beginning() {
    let (feeder, since) = with_acme();
    let at = Instant::now();
    let begins = |search: &Search| search.gaps[0].since;
    let first = feeder.search(at);
    assert_eq!((begins(&first), first.parts.len()), (None, 0));
    feeder.searched(&first, Some(time(1_000)));
    assert_eq!(begins(&feeder.search(at)), Some(time(999)));
    // Whoever submits then is behind what was searched.
    feeder.wake(part("acme"), None);
    assert_eq!(since(&feeder), Some(time(999)));
    feeder.recheck();
    let whole = feeder.search(at);
    assert_eq!((begins(&whole), whole.parts), (None, vec![Position { part: part("acme"), since: None }]));
    feeder.recheck();
    let failed = feeder.search(at);
    feeder.searched(&failed, None);
    let again = feeder.search(at);
    assert_eq!((begins(&again), again.parts.len()), (None, 1));
    feeder.searched(&again, Some(time(2_000)));
    let next = feeder.search(at);
    assert_eq!((begins(&next), next.parts.len()), (Some(time(1_999)), 0));
}

/// Two programs that share their pool with `echo`: at the limit of programs their jobs go back and forth, while those of `echo` run.
#[test]
fn a_job_that_workers_give_back_is_not_lost_until_later_ones_of_its_tool_are_claimed() {
    let feeder = Feeder::default();
    let mut consumers = with_consumer("one");
    consumers[0].consumer.tools.insert("echo".to_owned());
    feeder.set_consumers(consumers, false);
    let depth = |redelivered| ConsumerDepth { unacked: 1, redelivered, waiting_pulls: 1, ..ConsumerDepth::default() };
    let on_stream = |jobs| {
        let unclaimed = [(("one".to_owned(), "tool".to_owned()), Unclaimed { messages: jobs, jobs })];
        feeder.set_depths(&unclaimed.into(), Duration::ZERO);
    };
    let call = ready("tool", time(0));
    on_stream(1);
    feeder.set_depth("one", depth(0));
    assert_eq!(feeder.job_state(&call), JobState::Lost, "a worker asks for jobs, and is given none");
    feeder.set_depth("one", depth(1));
    assert_eq!(feeder.job_state(&call), JobState::Queued);
    feeder.claimed(&[granted("echo", time(3_600))]);
    assert_eq!(feeder.job_state(&call), JobState::Queued, "another tool has no limit");
    feeder.claimed(&[granted("tool", time(59))]);
    assert_eq!(feeder.job_state(&call), JobState::Queued);
    feeder.claimed(&[granted("tool", time(61))]);
    assert_eq!(feeder.job_state(&call), JobState::Lost);
    on_stream(0);
    assert_eq!(feeder.job_state(&ready("tool", time(61))), JobState::Lost, "none is on the stream");
}

fn ready(tool: &str, published_at: Time) -> CallRecord {
    CallRecord {
        id: CallId::generate(),
        state: CallState::Ready,
        attempt: 0,
        tool: tool.to_owned(),
        pool: "default".to_owned(),
        effect: ToolEffect::Read,
        retry: RetryOverride::default(),
        timeout_ms: 1,
        traceparent: None,
        deadline_at: time(7_200),
        worker: None,
        claim: None,
        lease_until: None,
        cancel_requested: false,
        publish_no: 1,
        published_at: Some(published_at),
        consumer: Some("one".to_owned()),
        backlog: None,
        started_at: None,
        origin: None,
        read_at: time(3_601),
    }
}

fn granted(tool: &str, published_at: Time) -> Granted {
    let call = CallId::generate();
    Granted {
        job: JobRef { call, attempt: 1 },
        claim: ClaimId::generate(),
        tool: tool.to_owned(),
        arguments: None,
        effect: ToolEffect::Read,
        tenant: "default".to_owned(),
        conversation: None,
        traceparent: None,
        task: None,
        origin: call,
        timeout_ms: 1,
        ready_ms: 0,
        published: Some(("one".to_owned(), published_at)),
        tool_version: None,
    }
}
