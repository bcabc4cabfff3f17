//! What each error class leads to; nothing else decides this.

use redial_proto::ErrorClass;

/// Where a failed attempt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The service is at fault and may recover: try again with backoff.
    Retry,
    /// It is unknown whether the tool did its work: try again only if the tool's effect allows it.
    Uncertain,
    /// The caller is at fault and can correct itself: the call fails, the error is feedback.
    Feedback,
    /// An operator has to act: the call fails, trying again would not help.
    Operator,
    /// The user, a limit or a client that did not answer ended it.
    End,
    /// The tool failed without saying why, most likely in the same way again: the call fails, and the caller learns only
    /// that it failed. The effect of an `unsafe` tool is uncertain.
    Unexplained,
    /// A bug: the call fails loudly; an `unsafe` tool's effect is uncertain.
    Bug,
}

pub const fn route(class: ErrorClass) -> Route {
    match class {
        ErrorClass::RateLimited | ErrorClass::Unavailable => Route::Retry,
        ErrorClass::Timeout | ErrorClass::Lost => Route::Uncertain,
        ErrorClass::MalformedArguments
        | ErrorClass::UnknownTool
        | ErrorClass::InvalidArguments
        | ErrorClass::RepeatedCall
        | ErrorClass::BusinessRule
        | ErrorClass::OutputInvalid
        | ErrorClass::OutputTooLarge
        | ErrorClass::Rejected => Route::Feedback,
        ErrorClass::Auth | ErrorClass::Configuration => Route::Operator,
        ErrorClass::BudgetExhausted | ErrorClass::Cancelled | ErrorClass::Unanswered => Route::End,
        ErrorClass::ToolFailed => Route::Unexplained,
        ErrorClass::Internal => Route::Bug,
    }
}
