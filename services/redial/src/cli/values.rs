//! Parsers of values: of those that completion scripts and error messages can list, and of times.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use redial_proto::{CallState, ErrorClass, TaskState};

/// A state of a call.
pub(crate) fn call_state() -> impl TypedValueParser<Value = CallState> {
    call_states(&CallState::ALL)
}

/// One of these states.
pub(crate) fn call_states(states: &[CallState]) -> impl TypedValueParser<Value = CallState> + use<> {
    let names: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
    PossibleValuesParser::new(names).try_map(|name| name.parse::<CallState>())
}

/// A state of a task.
pub(crate) fn task_state() -> impl TypedValueParser<Value = TaskState> {
    PossibleValuesParser::new(TaskState::ALL.map(TaskState::as_str)).try_map(|name| name.parse::<TaskState>())
}

/// A class of an error.
pub(crate) fn error_class() -> impl TypedValueParser<Value = ErrorClass> {
    PossibleValuesParser::new(ErrorClass::ALL.map(ErrorClass::as_str)).try_map(|name| name.parse::<ErrorClass>())
}

/// A duration before now, a date, or a point in time.
pub(crate) fn since(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(ago) = redial_proto::duration::parse(text) {
        return Ok(Utc::now() - ago);
    }
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok(day.and_time(NaiveTime::MIN).and_utc());
    }
    text.parse().map_err(|_| "allowed: 30m, 2h, 3days, 2026-11-20, 2026-11-20T08:00:00Z".to_owned())
}
