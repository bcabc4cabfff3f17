//! Arguments and results that do not fit into one message.

use std::collections::HashMap;

use redial_proto::{ApiError, Code, ErrorClass, Payload, PieceReply, PieceRequest, payload::pieces};
use redial_worker::Tool;
use serde_json::json;

use crate::dispatcher::{Dispatcher, Received};

/// What a scripted dispatcher keeps of bodies in pieces.
#[derive(Default)]
pub(crate) struct Pieces {
    /// By id and number.
    kept: HashMap<(String, u32), String>,
    /// The arguments of granted calls are fetched apart.
    pub(crate) are_used: bool,
    /// The arguments of the next grants that are opened.
    pub(crate) arguments: String,
    /// Opening grants fails so many times.
    pub(crate) failures: u32,
    /// Opening grants is refused.
    pub(crate) refused: Option<Code>,
}

impl Pieces {
    pub(crate) fn answer(&mut self, request: PieceRequest) -> Result<PieceReply, ApiError> {
        match request {
            PieceRequest::Put { payload, piece, text } => {
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

    /// A body, put together; it is dropped.
    pub(crate) fn take(&mut self, payload: Payload) -> String {
        (0..payload.pieces)
            .map(|piece| self.kept.remove(&(payload.payload.to_string(), piece)).expect("it is there"))
            .collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// 2 MB of JSON with what pieces must not break.
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
async fn an_attempt_whose_arguments_cannot_be_fetched_is_given_back() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().pieces.are_used = true;
    dispatcher.script().pieces.refused = Some(Code::WrongState);
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo").await;
    let released =
        dispatcher.next(|received| if let Received::Release(release) = received { Some(release) } else { None }).await;
    assert_eq!(released.jobs[0].job_ref(), job);
    worker.stop().await;
}

#[tokio::test]
async fn an_attempt_whose_arguments_cannot_be_put_together_ends_as_a_bug() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().pieces.are_used = true;
    dispatcher.script().pieces.refused = Some(Code::Internal);
    let worker = dispatcher.worker(4, [Tool::echo()]).await;
    let job = dispatcher.submit("echo").await;
    let report = dispatcher.report().await;
    let error = report.error.as_ref().unwrap();
    assert_eq!((report.job_ref(), error.class, error.effect_possible), (job, ErrorClass::Internal, false));
    assert_eq!(error.message, "refused");
    worker.stop().await;
}
