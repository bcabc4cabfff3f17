//! `redial call`: submits one tool call with the request that any client sends.

use std::{
    ops::RangeInclusive,
    process::ExitCode,
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta, Utc};
use redial_proto::{
    ApiError, CallId, CallState, CallView, Code, ErrorClass, GetRequest, RetryOverride, Submission, SubmitResult,
    SubmitStatus, WaitReason, Waiting,
    subjects::{self, Verb},
};
use redial_queue::{Queue, QueueError};
use serde_json::value::RawValue;

use crate::{
    cli::{self, CallArgs},
    connect::{self, REQUEST},
    exit, output,
    settings::Settings,
    timeline::{text, totals},
};

/// What to do about a tool that is declared, and not known.
const READ_AT_START: &str = "a worker reads its tools.toml only when it starts: restart it (or `redial dev`) if the tool was declared since then";
/// Events can get lost, and a large result has none; the call is read again after an eighth of the time that it was waited for,
/// within these bounds.
const READ_AGAIN: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(2);

pub(crate) async fn run(settings: &Settings, args: CallArgs) -> anyhow::Result<ExitCode> {
    let wait_for_end = args.wait;
    let submission = submission(args)?;
    let queue = connect::queue(settings).await?;
    let asked = connect::request(&queue, Verb::CallSubmit, &submission).await;
    let is_uncertain = match &asked {
        Ok(result) => connect::is_retryable(result),
        // Nobody took it.
        Err(QueueError::NoResponders { .. }) => false,
        Err(error) => error.is_retryable(),
    };
    if let Some(key) = submission.key.as_ref().filter(|_| is_uncertain && !settings.json()) {
        output::note(format!("the call may be on record or not; sent again with --key {key} it is there once"));
    }
    let result: SubmitResult = asked.map_err(connect::api)?;
    if !matches!(result.status, SubmitStatus::Accepted | SubmitStatus::Existing) {
        if settings.json() {
            output::json(&result)?;
            return Ok(exit::of(result.error.map_or(Code::Internal, |error| error.code)));
        }
        if let Some(call) = result.call {
            output::note(format!("call {call} is on record as refused"));
        }
        if result.error.as_ref().is_some_and(|error| error.code == Code::UnknownTool) {
            output::note(READ_AT_START);
        }
        return Err(result.error.unwrap_or_else(|| ApiError::new(Code::Internal, "refused without a reason")).into());
    }
    let Some(call) = result.call else { anyhow::bail!("the dispatcher accepted the call but did not name it") };
    if !wait_for_end {
        if settings.json() {
            output::json(&result)?;
        } else {
            output::line(call.to_string())?;
            if result.waits_for == Some(WaitReason::Worker) {
                output::note("no live worker has the tool: the call waits for one, until its deadline (redial tools)");
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    wait(settings, &queue, call).await
}

fn submission(args: CallArgs) -> anyhow::Result<Submission> {
    let place = if args.arguments == "-" { "standard input is" } else { "the arguments are" };
    let text = cli::argument_or_stdin(args.arguments)?;
    let arguments: Box<RawValue> = serde_json::from_str(&text).map_err(|error| {
        let mistake = redial_files::json_mistake(&text, &error);
        ApiError::new(Code::InvalidMessage, format!("{place} not JSON: {mistake}"))
    })?;
    let mut submission = Submission::new(&args.tool, arguments);
    // A generated key makes it safe to retry the request when the reply was lost.
    submission.key = Some(args.key.unwrap_or_else(|| format!("cli-{}", uuid::Uuid::new_v4())));
    submission.conversation = args.conversation;
    submission.timeout_ms = args.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    submission.retry = args.max_attempts.map(|n| RetryOverride { max_attempts: Some(n), ..RetryOverride::default() });
    submission.notify = args.wait;
    Ok(submission)
}

async fn wait(settings: &Settings, queue: &Queue, call: CallId) -> anyhow::Result<ExitCode> {
    let interrupted = connect::shutdown()?;
    let mut events = queue.subscribe(&subjects::call_events(queue.tenant().as_str(), call)).await?;
    let began = Instant::now();
    let (mut last, mut unanswered) = (None, false);
    loop {
        let view = match queue
            .ask::<_, CallView>(
                Verb::CallGet,
                &GetRequest { call, language: redial_proto::Language::default() },
                REQUEST,
            )
            .await
        {
            Ok(view) => Some(view),
            Err(error) if error.is_retryable() => {
                if !std::mem::replace(&mut unanswered, true) {
                    let why = connect::user_error(error).message;
                    output::note(format!("{why}. The call is on record; still waiting for it"));
                }
                None
            }
            Err(error) => {
                output::note(format!("the call is on record, its end is not known: redial show {call}"));
                return Err(connect::api(error));
            }
        };
        if let Some(view) = view {
            unanswered = false;
            if view.state.is_terminal() {
                return print(settings, &view);
            }
            print_progress(&view, &mut last, began.elapsed());
        }
        tokio::select! {
            event = events.next() => {
                if let Ok(view) = serde_json::from_slice(&event) {
                    return print(settings, &view);
                }
            }
            () = tokio::time::sleep((began.elapsed() / 8).clamp(*READ_AGAIN.start(), *READ_AGAIN.end())) => {}
            () = interrupted.cancelled() => {
                output::note(format!("the call continues: redial show {call}"));
                return Ok(ExitCode::from(130));
            }
        }
    }
}

/// What was printed last: the same is not printed twice.
type Progress = (CallState, u32, Option<WaitReason>);

/// `waited`: for how long it was waited.
fn print_progress(view: &CallView, last: &mut Option<Progress>, waited: Duration) {
    if waited < *READ_AGAIN.end() && view.state == CallState::Running {
        // Most calls end soon.
        return;
    }
    let now = Utc::now();
    let waits = view.waits.filter(|waits| !is_usual(waits, now));
    let progress = (view.state, view.attempts, waits.map(|waits| waits.reason));
    if last.replace(progress) == Some(progress) {
        return;
    }
    // If it will be held back, the time of its turn is another one.
    let due = waits.map(|waits| waits.since).or(view.next_attempt_at);
    if let (CallState::RetryWait, Some(at)) = (view.state, due) {
        let class = view.class.map(ErrorClass::as_str);
        output::note(text::retry(view.attempts, class, view.message.as_deref(), at, now));
    }
    if let Some(waits) = waits {
        output::note(format!("waiting {}", text::waiting(&waits, &view.tool, "", now)));
    }
    if view.state == CallState::Running {
        output::note(format!("attempt {} runs", view.attempts));
    }
}

/// Says whether a wait is usual: each call waits a moment for a worker, and the first of a tool in the backlog.
fn is_usual(waits: &Waiting, now: DateTime<Utc>) -> bool {
    match waits.reason {
        WaitReason::Queue | WaitReason::Backlog => now - waits.since < TimeDelta::seconds(1),
        WaitReason::Worker | WaitReason::Retries => false,
    }
}

fn print(settings: &Settings, view: &CallView) -> anyhow::Result<ExitCode> {
    let succeeded = view.state == CallState::Succeeded;
    if settings.json() {
        output::json(view)?;
    } else if succeeded {
        output::json_text(view.output.as_ref().map_or("null", |output| output.get()))?;
    } else {
        let class = view.class.map(ErrorClass::as_str).unwrap_or_default();
        let message = output::plain(view.message.as_deref().unwrap_or_default());
        let attempts = totals::count(view.attempts.into(), "attempt");
        output::note(format!("call {} ended {} after {attempts}: {message} [{class}]", view.call, view.state));
        if view.state == CallState::Unknown {
            output::note(format!("whether it took effect is unknown, see redial show {}", view.call));
        }
    }
    Ok(if succeeded { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}
