//! The scenes. Each returns what it observed, in one line; an error means that it does not hold.

use std::collections::HashSet;

use anyhow::{Context, bail, ensure};
use chrono::{DateTime, Datelike, Days, NaiveDate, TimeDelta, Utc};
use redial_proto::{ErrorClass, Language, TaskDecision, TurnRequest};
use serde_json::Value;

use crate::{
    records::{Attempt, Call, Task},
    redial::{LEASE, Redial, until},
};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Scene {
    CorrectedArguments,
    ParallelCalls,
    FallbackModel,
    DurableCall,
    KilledWorker,
    UnsafeCall,
    FullRestart,
}

impl Scene {
    pub(crate) const ALL: [Self; 7] = [
        Self::CorrectedArguments,
        Self::ParallelCalls,
        Self::FallbackModel,
        Self::DurableCall,
        Self::KilledWorker,
        Self::UnsafeCall,
        Self::FullRestart,
    ];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::CorrectedArguments => "wrong arguments",
            Self::ParallelCalls => "parallel calls",
            Self::FallbackModel => "fallback model",
            Self::DurableCall => "durable call",
            Self::KilledWorker => "killed worker",
            Self::UnsafeCall => "unsafe call",
            Self::FullRestart => "full restart",
        }
    }

    pub(crate) async fn play(self, redial: &mut Redial) -> anyhow::Result<String> {
        match self {
            Self::CorrectedArguments => corrected_arguments(redial, Utc::now()).await,
            Self::ParallelCalls => parallel_calls(redial, Utc::now()).await,
            Self::FallbackModel => fallback_model(redial).await,
            Self::DurableCall => durable_call(redial).await,
            Self::KilledWorker => killed_worker(redial).await,
            Self::UnsafeCall => unsafe_call(redial).await,
            Self::FullRestart => full_restart(redial).await,
        }
    }
}

/// Returns the date in 30 days, which can be booked.
fn later(now: DateTime<Utc>) -> NaiveDate {
    now.date_naive().checked_add_days(Days::new(30)).unwrap_or(NaiveDate::MAX)
}

/// Writes `1.25 s`.
fn seconds(time: TimeDelta) -> String {
    format!("{:.2} s", time.as_seconds_f64())
}

// ---- Wrong arguments ----

/// A user's request, and the arguments that are wrong in the scripted model's first call.
struct Request {
    problem: &'static str,
    wrong_paths: &'static [&'static str],
    input: String,
}

fn flights(now: DateTime<Utc>) -> [Request; 4] {
    // As a user writes a date, which the airline does not accept.
    let spoken = format!("{}月{}日", later(now).month(), later(now).day());
    let request = |problem, wrong_paths, input: String| {
        let input = format!("今天是 {}。{input}", now.date_naive());
        Request { problem, wrong_paths, input }
    };
    [
        request("明天", &["/date"], "请帮我订一张明天从上海去北京的机票。".to_owned()),
        request(
            "洛杉矶",
            &["/origin", "/date"],
            format!("我在洛杉矶，想{spoken}去成都，两个人。不能从洛杉矶出发就从上海出发，日期不变。"),
        ),
        request(
            "6 passengers",
            &["/passengers"],
            format!("我们 6 个人想{spoken}从广州去深圳。一次订不了这么多，就先订 5 个人的。"),
        ),
        request("today", &["/date"], "请订今天从成都去广州的机票，三个人。今天不行就订明天的。".to_owned()),
    ]
}

/// The first call of each request breaks rules of the airline. Each time the model gets feedback in Chinese about every
/// broken rule at once, corrects its call, and the flight is booked once.
async fn corrected_arguments(redial: &mut Redial, now: DateTime<Utc>) -> anyhow::Result<String> {
    let requests = flights(now);
    let (mut ids, mut tasks, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for request in &requests {
        ids.push(redial.task("flights", &request.input).await?);
    }
    redial.shown_task = ids.get(1).copied();
    for id in ids {
        tasks.push(redial.ended_task(id).await?);
    }
    let bookings = check_booked_once(redial, &tasks)?;
    for (task, Request { problem, wrong_paths, .. }) in tasks.iter().zip(&requests) {
        task.expect((3, 2, 1))?;
        let feedback = task.feedback()?;
        let [one] = feedback.as_slice() else { bail!("the feedback is {feedback:?}") };
        ensure!(one.class == ErrorClass::InvalidArguments && one.paths() == *wrong_paths, "the feedback is {one:?}");
        ensure!(one.corrections_left.is_some_and(|left| left > 0), "no correction is left: {one:?}");
        ensure!(Language::of(&one.guidance) == Language::Zh, "the feedback is not in Chinese: {one:?}");
        let complete = one.details.iter().all(|detail| detail.sent.is_some() && !detail.allowed.is_empty());
        ensure!(complete, "a detail does not say what was sent and what is allowed: {one:?}");
        problems.push(format!("{problem} ({})", wrong_paths.join(" ")));
    }
    Ok(format!(
        "{}: feedback in Chinese named every broken rule, the model corrected its call, booked once: {}",
        problems.join(", "),
        bookings.join(" ")
    ))
}

/// Checks that the airline has exactly the bookings of the conversations, each once. Returns their numbers.
fn check_booked_once(redial: &Redial, tasks: &[Task]) -> anyhow::Result<Vec<String>> {
    let mut bookings = Vec::new();
    for task in tasks {
        for result in task.results("book_flight")? {
            bookings.push(result["booking"].as_str().with_context(|| format!("the result is {result}"))?.to_owned());
        }
    }
    let requests = redial.ledger("airline")?;
    let keys: HashSet<&str> = requests.iter().filter_map(|request| request["key"].as_str()).collect();
    let (booked, sent, different) = (bookings.len(), requests.len(), keys.len());
    ensure!(
        (sent, different) == (booked, booked),
        "{booked} bookings in the conversations, {sent} requests at the airline, {different} of them different"
    );
    Ok(bookings)
}

// ---- Parallel calls ----

fn journey(now: DateTime<Utc>) -> String {
    let date = later(now);
    format!(
        "I want to go to Chengdu on {date}: reserve a room, find a train, and tell me what day of the week that is."
    )
}

/// Three calls in one reply: one fails permanently, one needs two retries, one is fast. The model gets all three results
/// in one turn, in the order of its calls.
async fn parallel_calls(redial: &Redial, now: DateTime<Utc>) -> anyhow::Result<String> {
    let id = redial.task("planner", &journey(now)).await?;
    let task = redial.ended_task(id).await?;
    task.expect((2, 3, 0))?;
    let answers: Vec<_> = task.answers().into_iter().map(|message| (message.tool.as_deref(), message.class)).collect();
    let wanted =
        [(Some("reserve_room"), Some(ErrorClass::BusinessRule)), (Some("train_times"), None), (Some("weekday"), None)];
    ensure!(answers == wanted, "the results are {answers:?}");
    let outcomes: [&[&str]; 3] = [&["business_rule"], &["unavailable", "unavailable", "succeeded"], &["succeeded"]];
    for (call_index, wanted) in (1..).zip(outcomes) {
        redial.show_call(&task.call((1, call_index))?.to_string()).await?.expect(wanted)?;
    }
    let answered = task.decisions().filter_map(|decision| match decision {
        TaskDecision::Answered { call_index, .. } => Some(call_index.to_string()),
        _ => None,
    });
    let order: Vec<String> = answered.collect();
    ensure!(order.last().is_some_and(|last| last == "2"), "the calls were answered in the order {order:?}");
    Ok(format!(
        "reserve_room: business_rule; train_times: {}; weekday: ok; finished in the order {}, in the conversation in the \
         order 1 2 3; 2 turns",
        outcomes[1].join(", "),
        order.join(" ")
    ))
}

// ---- Fallback model ----

/// A small model sends a wrong call. A stronger model takes over and does not see that call; then the small one
/// continues. The record keeps everything.
async fn fallback_model(redial: &Redial) -> anyhow::Result<String> {
    let id = redial.task("poet", "Write a haiku about an old pine in the evening.").await?;
    let task = redial.ended_task(id).await?;
    task.expect((3, 1, 0))?;
    let (mut models, mut pruned) = (Vec::new(), Vec::new());
    for decision in task.decisions() {
        match decision {
            TaskDecision::Turn { model, .. } => models.push(model.as_str()),
            TaskDecision::Fallback { pruned: calls, .. } => pruned.extend(calls),
            _ => {}
        }
    }
    ensure!(models == ["small-poet", "great-poet", "small-poet"], "the turns went to {models:?}");
    let [pruned] = pruned.as_slice() else { bail!("the pruned calls are {pruned:?}") };
    let kept = task.messages().flat_map(|message| &message.calls).find(|call| call.id == **pruned);
    let kept = kept.with_context(|| format!("{pruned} is not on record"))?;
    let feedback = task.feedback()?;
    let [failed] = feedback.as_slice() else { bail!("the feedback is {feedback:?}") };
    ensure!(failed.class == ErrorClass::InvalidArguments && failed.paths() == ["/topic"], "it failed with {failed:?}");

    for turn in [2, 3] {
        let request = redial.show_call(&task.call((turn, 0))?.to_string()).await?.arguments;
        let view: TurnRequest = serde_json::from_value(request)?;
        let seen = serde_json::to_string(&view.messages)?;
        ensure!(!seen.contains(&format!("{pruned:?}")), "turn {turn} still sees {pruned}: {seen}");
        ensure!(!seen.contains(ErrorClass::InvalidArguments.as_str()), "turn {turn} still sees the error: {seen}");
    }
    let haiku = task.results("master_haiku_generator")?;
    ensure!(haiku.len() == 1, "the results are {haiku:?}");
    Ok(format!(
        "small-poet sent {} for 3 topics; great-poet, which was not shown the failed call, sent 3; small-poet answered; \
         the failed call is on record",
        kept.arguments
    ))
}

// ---- Calls without a model ----

/// A call is submitted twice with one key. Its HTTP service answers 503 twice, with `Retry-After: 1`, and then 200.
async fn durable_call(redial: &Redial) -> anyhow::Result<String> {
    let submit = ["call", "reserve_hotel", r#"{"city": "成都", "nights": 2}"#, "--key", "trip-17"];
    let first: Value = redial.json(&submit).await?;
    let again: Value = redial.json(&submit).await?;
    ensure!(first["call"] == again["call"] && again["status"] == "existing", "submitted again, it answered {again}");
    let call = redial.ended_call(first["call"].as_str().unwrap_or_default()).await?;
    call.expect(&["unavailable", "unavailable", "succeeded"])?;
    ensure!(call.output()["reservation"] == "H-4711", "the result is {}", call.output());

    let requests = redial.service.requests("/hotels");
    let statuses: Vec<u16> = requests.iter().map(|request| request.status).collect();
    ensure!(statuses == [503, 503, 200], "the service answered {statuses:?}");
    let pauses = requests.windows(2).map(|pair| TimeDelta::from_std(pair[1].at - pair[0].at));
    let pauses: Vec<TimeDelta> = pauses.collect::<Result<_, _>>()?;
    ensure!(pauses.iter().all(|pause| *pause >= TimeDelta::seconds(1)), "the retries came too early: {pauses:?}");
    let one_key = requests[0].key.is_some() && requests.iter().all(|request| request.key == requests[0].key);
    ensure!(one_key, "the Idempotency-Key is missing or changed: {requests:?}");
    let pauses = pauses.into_iter().map(seconds).collect::<Vec<_>>().join(" and ");
    Ok(format!(
        "submitted twice, one call; 503, 503, 200: attempt 3 succeeded; pauses of {pauses} (Retry-After: 1); \
         one Idempotency-Key"
    ))
}

/// A worker is killed with SIGKILL during a call, and another one runs the call again.
async fn killed_worker(redial: &mut Redial) -> anyhow::Result<String> {
    let id = redial.call("refresh_prices", r#"{"airlines": 5}"#).await?;
    let started = async || {
        let call = redial.show_call(&id).await?;
        Ok(call.attempts_made.first().filter(|_| call.state == "running").cloned())
    };
    let first: Attempt = until("a worker runs the call", started).await?;
    let victim = first.worker();
    redial.kill_worker(victim).await?;
    let killed_at = Utc::now();
    ensure!(!redial.show_call(&id).await?.has_ended(), "the call ended before {victim} was killed");

    let call = redial.ended_call(&id).await?;
    call.expect(&["lost", "succeeded"])?;
    ensure!(call.output()["refreshed"] == 5, "the result is {}", call.output());
    let second = &call.attempts_made[1];
    redial.replace_worker(victim).await?;
    Ok(format!(
        "{victim} killed {} into the call: attempt 1 lost; {} began attempt 2 after {} (lease {} s) and succeeded",
        seconds(killed_at - first.started_at),
        second.worker(),
        seconds(second.started_at - killed_at),
        LEASE.as_secs()
    ))
}

/// A worker is killed after an `unsafe` tool has charged a card, but before it could report. Redial cannot know whether
/// the card was charged, so it does not run the tool again: the call goes on for as long as its worker may come back.
async fn unsafe_call(redial: &mut Redial) -> anyhow::Result<String> {
    let id = redial.call("charge_card", r#"{"amount_cny": 780}"#).await?;
    let charged = async || Ok(redial.ledger("bank")?.into_iter().next());
    let charge = until("the card is charged", charged).await?;
    let worker = charge["client"].as_str().context("the bank does not know its client")?;
    redial.kill_worker(worker).await?;

    let silent = async || {
        let call = redial.show_call(&id).await?;
        Ok(call.attempts_made.last().and_then(|attempt| attempt.unheard_since).map(|_| call))
    };
    let call: Call = until("the record says that the worker is silent", silent).await?;
    ensure!(call.state == "running" && call.attempts_made.len() == 1, "the call is {call:?}");
    let count = redial.ledger("bank")?.len();
    ensure!(count == 1, "the card was charged {count} times");
    redial.replace_worker(worker).await?;
    Ok(format!(
        "{worker} killed after it charged the card and before it reported: the record says that it is silent, nothing ran again, \
         and the call ends unknown 30 s after its timeout; 1 charge"
    ))
}

/// Dispatcher, NATS and Postgres are killed with SIGKILL while a call waits for its retry, which still starts on time.
async fn full_restart(redial: &mut Redial) -> anyhow::Result<String> {
    /// How late a retry may start when everything is up.
    const TOLERANCE: TimeDelta = TimeDelta::seconds(2);
    let id = redial.call("order_taxi", r#"{"from": "外滩"}"#).await?;
    let waiting = async || {
        let call = redial.show_call(&id).await?;
        Ok(call.attempts_made.first().filter(|_| call.state == "retry_wait").and_then(|first| first.retry_at))
    };
    let planned = until("the call waits for its retry", waiting).await?;
    redial.kill_dev().await?;
    let left = planned - Utc::now();
    ensure!(left > TimeDelta::seconds(1), "the retry was due too soon after the kill: in {}", seconds(left));
    let took = redial.start_dev().await?.as_secs_f64();
    let up_at = Utc::now();

    let call = redial.ended_call(&id).await?;
    call.expect(&["unavailable", "succeeded"])?;
    let second = call.attempts_made.get(1).context("there is no second attempt")?;
    let late = second.started_at - planned;
    ensure!(late >= TimeDelta::zero(), "the retry started {} too early", seconds(-late));
    ensure!(second.started_at <= planned.max(up_at) + TOLERANCE, "the retry started {} late", seconds(late));
    let requests = redial.service.requests("/taxis");
    let [first, again] = requests.as_slice() else { bail!("the service received {requests:?}") };
    ensure!(first.key.is_some() && first.key == again.key, "the Idempotency-Key changed");
    Ok(format!(
        "dispatcher, NATS and Postgres killed {} before a retry was due, back after {took:.2} s; it started {} after its time",
        seconds(left),
        seconds(late)
    ))
}
