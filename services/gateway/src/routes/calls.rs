//! `/v1/calls`.

mod answer;
mod events;
mod export;
mod get;
mod list;
mod many;
mod ndjson;
mod read;
mod redrive;
mod submit;
mod wait;

use redial_api::{CallList, CallRecord, WaitReply};
use redial_proto::{
    AnswerReply, CallView, CancelReply, Submission, SubmitBatch, SubmitBatchReply, SubmitResult, UserRole,
};
use schemars::JsonSchema;

use crate::{
    endpoint::{Endpoint, IDEMPOTENCY_KEY, LAST_EVENT_ID, PREFER},
    events::{After, MEDIA, ServerSentEvent},
};

pub(crate) use wait::{Ended, ended_within};

const TAG: &str = "calls";
const READ: &[UserRole] = &[UserRole::Read];
const SUBMIT: &[UserRole] = &[UserRole::Submit];
const OPERATE: &[UserRole] = &[UserRole::Operate];

/// One call, or up to 1,000 in one request.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes what is read")]
enum SubmitBody {
    One(Submission),
    List(Vec<Submission>),
    Batch(SubmitBatch),
}

#[expect(clippy::too_many_lines, reason = "a list, as it is read in the document")]
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/v1/calls", submit::submit)
            .about(TAG, "submit_calls", "Submit a call, a list of calls, or a stream of any number")
            .description(
                "The answer comes after the commit: what is accepted is on record and will run. As `application/x-ndjson` \
                 each line is a submission, and each line of the answer, in the same order, says what became of it; read \
                 the answer while you send.",
            )
            .roles(SUBMIT)
            .header(PREFER)
            .header(IDEMPOTENCY_KEY)
            .body::<SubmitBody>()
            .body_as::<String>(ndjson::MEDIA)
            .answer::<CallView>(200, "With `Prefer: wait`: the call has ended. For a list: a result for each call.")
            .answer::<SubmitBatchReply>(200, "With `Prefer: wait`: the call has ended. For a list: a result for each call.")
            .answer_as::<String>(200, "With `Prefer: wait`: the call has ended. For a list: a result for each call.", ndjson::MEDIA)
            .answer::<SubmitResult>(202, "Accepted: `Location` is the call."),
        Endpoint::get("/v1/calls", list::list)
            .about(TAG, "list_calls", "List and search calls, newest first")
            .description(
                "One request looks at a bounded number of calls and says how far it came; `next_page_token` goes on there.",
            )
            .roles(READ)
            .query::<list::CallsQuery>()
            .answer::<CallList>(200, "Calls that match, and how far the request looked."),
        Endpoint::get("/v1/calls/export", export::export)
            .about(TAG, "export_calls", "The calls that match a filter, as a file")
            .description(
                "A stream, newest first, with the filters of `GET /v1/calls`. Its last line says whether it is all: of JSONL \
                 `{\"exported\": …, \"complete\": …}`, of CSV `# exported …`. A file that breaks off without it is not whole.",
            )
            .roles(READ)
            .query::<export::ExportQuery>()
            .answer_as::<String>(200, "The file.", "text/csv")
            .answer_as::<String>(200, "The file.", ndjson::MEDIA),
        Endpoint::post("/v1/calls/{id}/cancel", redrive::cancel)
            .about(TAG, "cancel_call", "Stop a call")
            .description("What has ended stays as it is. After `cancelled` no attempt of it starts any more.")
            .roles(SUBMIT)
            .answer::<CancelReply>(200, "The state of the call now."),
        Endpoint::post("/v1/calls/{id}/answer", answer::answer)
            .about(TAG, "answer_call", "Answer a call of a function that the client serves")
            .description("Either `output` or `error` is needed. The first answer counts: the same one again gets the same reply.")
            .roles(SUBMIT)
            .body::<answer::AnswerBody>()
            .answer::<AnswerReply>(200, "The state of the call now."),
        Endpoint::post("/v1/calls/{id}/redrive", redrive::redrive)
            .about(TAG, "redrive_call", "Run an ended call again, perhaps with other arguments")
            .description(
                "As a new call that names the old one. A call is redriven once: the same request again gets the same new \
                 call. Whoever names an `unknown` call confirms that it may run again.",
            )
            .roles(OPERATE)
            .header(PREFER)
            .optional_body::<redrive::RedriveCallBody>()
            .answer::<CallView>(200, "With `Prefer: wait`: the new call has ended.")
            .answer::<SubmitResult>(202, "Accepted: `Location` is the new call."),
        Endpoint::get("/v1/calls/{id}", get::get)
            .about(TAG, "get_call", "A call with everything on record about it")
            .roles(READ)
            .query::<get::GetQuery>()
            .header(PREFER)
            .answer::<CallRecord>(200, "The call. With `Prefer: wait`: it has ended.")
            .answer::<CallRecord>(202, "With `Prefer: wait`: it has not ended yet."),
        Endpoint::get("/v1/calls/{id}/events", events::events)
            .about(TAG, "follow_call", "The events of a call as they happen")
            .description(
                "Server-sent events: `attempt` for each attempt that ended, with an id to go on after; `state` when it stands \
                 elsewhere, without one; `end` with the call, then nothing.",
            )
            .roles(READ)
            .query::<After>()
            .header(LAST_EVENT_ID)
            .answer_as::<ServerSentEvent>(200, "The events.", MEDIA)
            .empty_answer(204, "You have its end."),
        Endpoint::post("/v1/calls/wait", many::wait)
            .about(TAG, "wait_for_calls", "Wait until any or all of up to 1,000 calls have ended")
            .roles(READ)
            .header(PREFER)
            .body::<many::WaitRequest>()
            .answer::<WaitReply>(200, "They have ended.")
            .answer::<WaitReply>(202, "They have not ended yet."),
    ]
}
