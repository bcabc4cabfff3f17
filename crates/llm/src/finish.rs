//! Why a model stopped, in the words of all providers.

use redial_proto::Finish;

/// Reads the reason; `called` says that the reply has calls. A reason that is missing or unknown is [`Finish::Other`].
pub(crate) fn read(reason: Option<&str>, called: bool) -> Finish {
    match reason.map(str::to_ascii_lowercase).as_deref() {
        Some(
            "length"
            | "max_tokens"
            | "max_output_tokens"
            | "max_length"
            | "model_length"
            | "token_limit"
            | "model_context_window_exceeded",
        ) => Finish::Length,
        Some("content_filter" | "refusal" | "safety" | "recitation" | "blocklist" | "prohibited_content") => {
            Finish::Refused
        }
        _ if called => Finish::ToolCalls,
        Some("stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "complete" | "completed") => Finish::Stop,
        _ => Finish::Other,
    }
}
