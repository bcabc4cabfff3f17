//! Arguments and results that do not fit into one message.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use redial_proto::{
    ApiError, Code, ControlMessage, ErrorClass, JobRef, Payload, PieceReply, PieceRequest, ToolEffect, payload::pieces,
};
use redial_worker::Tool;
use serde_json::json;
use tokio::sync::Notify;

use crate::{
    dispatcher::Dispatcher,
    tools::{self, Event},
    within,
};

/// What a scripted dispatcher keeps of bodies in pieces.
#[derive(Default)]
pub(crate) struct Pieces {
    /// By id and number.
    kept: HashMap<(String, u32), String>,
    /// The ids of all bodies that were put.
    bodies: HashSet<String>,
    /// The arguments of granted calls are fetched apart.
    pub(crate) are_used: bool,
    /// The arguments of the next grants that are opened.
    pub(crate) arguments: String,
    /// Opening grants fails so many times.
    pub(crate) failures: u32,
    /// Opening grants is refused.
    pub(crate) refused: Option<Code>,
    /// The next opening of a grant, or the next piece, is answered once this is notified, and nothing else about pieces before that.
    hold: Option<Arc<Notify>>,
}

impl Pieces {
    /// Returns what the answer to a request has to wait for.
    pub(crate) fn held(&mut self, request: &PieceRequest) -> Option<Arc<Notify>> {
        let waits = matches!(request, PieceRequest::Open { .. } | PieceRequest::Put { .. });
        if waits { self.hold.take() } else { None }
    }

    pub(crate) fn answer(&mut self, request: PieceRequest) -> Result<PieceReply, ApiError> {
        match request {
            PieceRequest::Put { payload, piece, text } => {
                self.bodies.insert(payload.payload.to_string());
                self.kept.insert((payload.payload.to_string(), piece), text);
            }
            PieceRequest::Get { payload, piece } => {
                return Ok(PieceReply {
                    text: self.kept.get(&(payload.to_string(), piece)).cloned(),
                    ..PieceReply::default()
                });
            }
            PieceRequest::Drop { payload } => self.kept.retain(|(kept, _), _| *kept != payload.to_string()),
            PieceRequest::Open { .. } => {
                if let Some(code) = self.refused {
                    return Err(ApiError::new(code, "refused"));
                }
                if self.failures > 0 {
                    self.failures -= 1;
                    return Err(ApiError::new(Code::Unavailable, "try again"));
                }
                let texts = pieces(&self.arguments);
                let payload = Payload::of(texts.len());
                let numbered =
                    (0..).zip(&texts).map(|(n, text)| ((payload.payload.to_string(), n), (*text).to_owned()));
                self.kept.extend(numbered);
                return Ok(PieceReply { opened: Some(payload), ..PieceReply::default() });
            }
        }
        Ok(PieceReply::default())
    }

    /// Puts a body together and drops it.
    pub(crate) fn take(&mut self, payload: Payload) -> String {
        (0..payload.pieces)
            .map(|piece| self.kept.remove(&(payload.payload.to_string(), piece)).expect("it is there"))
            .collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// Makes 2 MB of JSON with what pieces must not break.
fn large() -> String {
    json!({"text": "好\"\\\n".repeat(300_000)}).to_string()
}

#[tokio::test]
async fn large_arguments_and_results_travel_in_pieces() {
    let mut dispatcher = Dispatcher::start().await;
    let arguments = large();
    {
        let mut script = dispatcher.script();
        script.pieces.are_used = true;
        (script.pieces.arguments, script.pieces.failures) = (arguments.clone(), 2);
    }
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit_many("default", "echo", 1, u32::try_from(arguments.len()).unwrap()).await[0];
    let report = dispatcher.report().await;
    assert_eq!((report.job_ref(), report.output.unwrap().get()), (job, arguments.as_str()));
    worker.stop().await;
    assert!(dispatcher.script().pieces.is_empty(), "all of it was dropped");
}

#[tokio::test]
async fn an_attempt_whose_arguments_cannot_be_fetched_is_given_back_or_ends_as_a_bug() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().pieces.are_used = true;
    dispatcher.script().pieces.refused = Some(Code::WrongState);
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo").await;
    assert_eq!(dispatcher.released().await, [job]);
    dispatcher.script().pieces.refused = Some(Code::Internal);
    let job = dispatcher.submit("echo").await;
    let report = dispatcher.report().await;
    let error = report.error.as_ref().unwrap();
    assert_eq!((report.job_ref(), error.class, error.effect_possible), (job, ErrorClass::Internal, false));
    assert_eq!(error.message, "refused");
    worker.stop().await;
}

/// A lease that lasts, although the machine stands still for some seconds.
const LEASE_MS: u64 = 20_000;

/// Starts an attempt of an unsafe tool whose arguments are being opened; that is answered once it is notified.
async fn start_opening(dispatcher: &mut Dispatcher, tool: &str) -> (JobRef, Arc<Notify>) {
    let hold = Arc::new(Notify::new());
    {
        let mut script = dispatcher.script();
        (script.lease_ms, script.timeout_ms, script.effect) = (LEASE_MS, 100, ToolEffect::Unsafe);
        (script.pieces.are_used, script.pieces.arguments) = (true, "{}".into());
        script.pieces.hold = Some(Arc::clone(&hold));
    }
    let job = dispatcher.submit(tool).await;
    dispatcher.claim().await;
    (job, hold)
}

#[tokio::test]
async fn a_large_report_holds_up_no_small_ones() {
    let mut dispatcher = Dispatcher::start().await;
    let worker = dispatcher.worker(4, [tools::with_output_of(2 * 1024 * 1024), Tool::echo()]).await;
    let hold = Arc::new(Notify::new());
    dispatcher.script().pieces.hold = Some(Arc::clone(&hold));
    let large = dispatcher.submit("with_output_of").await;
    within(20, async {
        while dispatcher.script().pieces.hold.is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let small = dispatcher.submit("echo").await;
    assert_eq!(dispatcher.report().await.job_ref(), small);
    hold.notify_one();
    assert_eq!(dispatcher.report().await.job_ref(), large);
    // Otherwise the small one only came once the worker had given the large one up, to put it anew.
    assert_eq!(dispatcher.script().pieces.bodies.len(), 1);
    worker.stop().await;
}

/// Nothing was started, so not even the attempt of an unsafe tool counts.
#[tokio::test]
async fn an_attempt_whose_arguments_come_too_late_is_given_back_and_does_not_time_out() {
    let mut dispatcher = Dispatcher::start().await;
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let (job, _hold) = start_opening(&mut dispatcher, "echo").await;
    assert_eq!(dispatcher.released().await, [job]);
    while !dispatcher.heartbeat().await.running.is_empty() {}
    worker.stop().await;
}

#[tokio::test]
async fn a_call_that_is_cancelled_during_the_fetch_is_reported_without_an_effect() {
    let mut dispatcher = Dispatcher::start().await;
    let (stuck, mut events) = tools::stuck();
    let worker = dispatcher.worker(4, [stuck]).await;
    let (job, hold) = start_opening(&mut dispatcher, "stuck").await;
    dispatcher.renewed(&[job]).await;
    let message = ControlMessage { cancelled: vec![dispatcher.grant_of(job)], ..ControlMessage::default() };
    dispatcher.send_control(&worker.id, &message).await;
    let report = dispatcher.report().await;
    let error = report.error.as_ref().unwrap();
    assert_eq!((report.job_ref(), error.class, error.effect_possible), (job, ErrorClass::Cancelled, false));
    hold.notify_one();
    worker.stop().await;
    assert_ne!(events.try_recv(), Ok(Event::Started));
}

/// In time or not: nothing was started, so nothing is reported as lost.
#[tokio::test]
async fn an_attempt_whose_arguments_are_fetched_during_the_drain_is_given_back() {
    for in_time in [true, false] {
        let mut dispatcher = Dispatcher::start().await;
        let (stuck, mut events) = tools::stuck();
        let grace = Duration::from_millis(if in_time { 15_000 } else { 300 });
        let worker = dispatcher.worker_with(|config| config.drain_grace = grace, [stuck]).await;
        let (job, hold) = start_opening(&mut dispatcher, "stuck").await;
        dispatcher.renewed(&[job]).await;
        worker.shutdown.cancel();
        if in_time {
            while !dispatcher.heartbeat().await.draining {}
            hold.notify_one();
        }
        assert_eq!(dispatcher.released().await, [job]);
        worker.ended().await;
        assert_ne!(events.try_recv(), Ok(Event::Started));
    }
}
