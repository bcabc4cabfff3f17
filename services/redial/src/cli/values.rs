//! Parsers of values: of those that completion scripts and error messages can list, and of times.

use std::{ffi::OsStr, ops::RangeInclusive, time::Duration};

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveTime, TimeDelta, Utc};
use clap::{
    Arg, Command,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use redial_engine::call::may_redrive;
use redial_proto::{CallState, ErrorClass, TaskState, UserRole};

const TIMES: &str = "allowed: 30m, 2h, 3days, 2026-11-20, 2026-11-20T08:00:00Z";

/// Reads a size as Postgres does.
pub(crate) fn memory_size(text: &str) -> Result<String, String> {
    let number = ["kB", "MB", "GB"].iter().find_map(|unit| text.strip_suffix(unit));
    let is_number = |number: &&str| number.parse::<u32>().is_ok_and(|number| number > 0);
    number
        .filter(is_number)
        .map(|_| text.to_owned())
        .ok_or_else(|| "expected a number with the unit kB, MB or GB, as Postgres has them".to_owned())
}

pub(crate) fn call_state() -> impl TypedValueParser<Value = CallState> {
    PossibleValuesParser::new(CallState::ALL.map(CallState::as_str)).try_map(|name| name.parse::<CallState>())
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Redrivable;

impl Redrivable {
    /// Names the states in the order of [`CallState::ALL`].
    fn names() -> impl Iterator<Item = &'static str> {
        CallState::ALL.into_iter().filter(|state| may_redrive(*state).is_ok()).map(CallState::as_str)
    }

    fn parse(text: &str) -> Result<CallState, String> {
        let why = match text.parse() {
            Ok(state) => match may_redrive(state) {
                Ok(()) => return Ok(state),
                Err(why) => why,
            },
            Err(_) => "no such state".to_owned(),
        };
        Err(format!("{why}; allowed: {}", Self::names().collect::<Vec<_>>().join(", ")))
    }
}

impl TypedValueParser for Redrivable {
    type Value = CallState;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<CallState, clap::Error> {
        TypedValueParser::parse_ref(&Self::parse, command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Self::names().map(PossibleValue::new)))
    }
}

pub(crate) fn number(within: RangeInclusive<u32>) -> impl TypedValueParser<Value = u32> {
    move |text: &str| match text.parse() {
        Ok(number) if within.contains(&number) => Ok(number),
        _ if *within.end() == u32::MAX => Err(format!("allowed: a number, {} or more", within.start())),
        _ => Err(format!("allowed: a number, {} to {}", within.start(), within.end())),
    }
}

pub(crate) fn task_state() -> impl TypedValueParser<Value = TaskState> {
    PossibleValuesParser::new(TaskState::ALL.map(TaskState::as_str)).try_map(|name| name.parse::<TaskState>())
}

pub(crate) fn user_role() -> impl TypedValueParser<Value = UserRole> {
    PossibleValuesParser::new(UserRole::ALL.map(UserRole::as_str)).try_map(|name| name.parse::<UserRole>())
}

pub(crate) fn error_class() -> impl TypedValueParser<Value = ErrorClass> {
    PossibleValuesParser::new(ErrorClass::ALL.map(ErrorClass::as_str)).try_map(|name| name.parse::<ErrorClass>())
}

pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    redial_proto::tool::parse_timeout(text).map(Duration::from_millis)
}

/// Reads the earliest of points in time, for which it must have happened already.
pub(crate) fn since(text: &str) -> Result<DateTime<Utc>, String> {
    let since = time(text)?;
    if since > Utc::now() { Err(format!("this is in the future; {TIMES}")) } else { Ok(since) }
}

/// Reads a duration before now, a date, or a point in time. Before 1970 nothing is on record.
pub(crate) fn time(text: &str) -> Result<DateTime<Utc>, String> {
    let time = if let Ok(ago) = redial_proto::duration::parse(text) {
        TimeDelta::from_std(ago).ok().and_then(|ago| Utc::now().checked_sub_signed(ago)).unwrap_or_default()
    } else if let Ok(day) = text.parse::<NaiveDate>() {
        day.and_time(NaiveTime::MIN).and_utc()
    } else {
        text.parse().map_err(|_| TIMES.to_owned())?
    };
    // Postgres has no later ones than this, by far.
    if time.year() > 9999 { Err(TIMES.to_owned()) } else { Ok(time.max(DateTime::UNIX_EPOCH)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_be_as_long_ago_as_one_likes_and_since_not_later_than_now() {
        for text in ["999999999y", "300000years", "-200000-01-01", "1969-12-31T23:59:59Z"] {
            assert_eq!(time(text), Ok(DateTime::UNIX_EPOCH), "{text}");
        }
        let next_year = (Utc::now() + TimeDelta::days(366)).format("%Y-%m-%d").to_string();
        assert!(time(&next_year).is_ok());
        for (text, told) in [
            (next_year.as_str(), "this is in the future; allowed: 30m, 2h, "),
            ("+99999-01-01", "allowed: 30m, 2h, "),
            ("tomorrow", "allowed: 30m, 2h, "),
        ] {
            let error = since(text).expect_err(text);
            assert!(error.starts_with(told), "{text}: {error}");
        }
        assert!(since("0s").is_ok() && since("2026-11-20").is_ok());
    }
}
