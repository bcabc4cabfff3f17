//! Classifies how a program ended. Pure; exit codes are those of `sysexits.h`, unless the manifest says what one means.
//!
//! | end | class |
//! | --- | --- |
//! | 0 | success: standard output is the result |
//! | a code in the manifest's `exit_codes` | as declared there |
//! | 64 USAGE, 65 DATAERR | `invalid_arguments` |
//! | 66 NOINPUT, 68 NOHOST, 69 UNAVAILABLE, 71 OSERR, 73 CANTCREAT, 74 IOERR, 75 TEMPFAIL, 76 PROTOCOL | `unavailable` |
//! | 70 SOFTWARE, 101 (a Rust panic) | `internal` |
//! | 77 NOPERM | `auth` |
//! | 72 OSFILE, 78 CONFIG, 126, 127 (the program could not be run) | `configuration` |
//! | 1 and every other code | `tool_failed` |
//! | killed by SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP | `internal`: the program crashed |
//! | killed by any other signal, e.g. SIGKILL when memory ran out | `unavailable` |
//! | 128 + n, as shells report it | as killed by signal n |
//!
//! A structured error on standard output takes precedence, with any exit code but 0. An exit code never proves that
//! there was no effect: only a structured error or the manifest does, with `effect_possible = false`.
//!
//! What a program wrote otherwise was not meant for a model: it is kept for operators, and becomes part of the message only
//! if the manifest says so.

use std::{collections::BTreeMap, io, os::unix::process::ExitStatusExt, process::ExitStatus};

use redial_proto::{ErrorClass, Failure, limits};

use crate::{
    handler::ToolResult,
    output,
    structured::{self, ReportedError},
};

/// Bytes of standard output that the error quotes if standard error is empty.
const SHOWN: usize = 500;

/// What a manifest says about a program's failures.
#[derive(Debug, Default)]
pub(crate) struct FailureRules {
    /// By exit code, from 1 to 255.
    pub(crate) exit_codes: BTreeMap<i32, ExitRule>,
    /// Whether what the program wrote without a form may be part of the message, which models read.
    pub(crate) stderr_to_model: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ExitRule {
    pub(crate) class: ErrorClass,
    /// False if the program certainly did nothing.
    pub(crate) effect_possible: bool,
}

/// Returns the result of a program that ended by itself, or by a signal from elsewhere.
pub(super) fn ended(status: ExitStatus, stdout: &[u8], stderr: &str, rules: &FailureRules) -> ToolResult {
    if status.success() {
        return output::from_bytes(stdout);
    }
    let rule = status.code().and_then(|code| rules.exit_codes.get(&code).copied());
    let rule = rule.unwrap_or_else(|| ExitRule { class: class_of(status), effect_possible: true });
    Err(match structured::read(stdout) {
        Some(reported) => structured_failure(status, rule, reported),
        None => plain_failure(status, rule, &written(stdout, stderr), rules.stderr_to_model),
    })
}

fn structured_failure(status: ExitStatus, rule: ExitRule, reported: ReportedError) -> Failure {
    let class = reported.class.unwrap_or(rule.class);
    let mut failure = Failure::new(class, reported.message.unwrap_or_else(|| describe(status, class)));
    failure.effect_possible = reported.effect_possible.unwrap_or(rule.effect_possible);
    failure.retry_after_ms = reported.retry_after_ms;
    failure.details = reported.details;
    failure
}

fn plain_failure(status: ExitStatus, rule: ExitRule, written: &str, to_model: bool) -> Failure {
    let mut failure = Failure::new(rule.class, describe(status, rule.class));
    failure.effect_possible = rule.effect_possible;
    if to_model && !written.is_empty() {
        failure.message = format!("{}: {written}", failure.message);
        return failure;
    }
    failure.with_diagnostics(written)
}

/// Returns what the program wrote for people: the end of standard error, else the start of standard output.
fn written(stdout: &[u8], stderr: &str) -> String {
    let stdout = String::from_utf8_lossy(stdout);
    let text = if stderr.is_empty() { limits::shorten(stdout.trim(), SHOWN) } else { stderr.to_owned() };
    text.replace('\0', "\u{fffd}")
}

/// Makes the failure of a program that could not be started and therefore had no effect.
pub(super) fn spawn_error(error: &io::Error) -> Failure {
    use io::ErrorKind as Kind;
    let class = match error.kind() {
        Kind::ArgumentListTooLong => ErrorClass::InvalidArguments,
        Kind::NotFound | Kind::PermissionDenied | Kind::InvalidInput | Kind::NotADirectory => ErrorClass::Configuration,
        _ => ErrorClass::Unavailable,
    };
    Failure::new(class, format!("the program could not be started: {error}")).without_effect()
}

/// Makes the failure of a program that was started and then could not be observed any more.
pub(super) fn wait_error(error: &io::Error) -> Failure {
    Failure::new(ErrorClass::Unavailable, format!("the program can no longer be observed: {error}"))
}

fn class_of(status: ExitStatus) -> ErrorClass {
    match (status.code(), status.signal()) {
        (_, Some(signal)) => class_of_signal(signal),
        (Some(code @ 129..=192), _) => class_of_signal(code - 128),
        (Some(code), _) => class_of_code(code),
        (None, None) => ErrorClass::Unavailable,
    }
}

const fn class_of_code(code: i32) -> ErrorClass {
    match code {
        64 | 65 => ErrorClass::InvalidArguments,
        66 | 68 | 69 | 71 | 73..=76 => ErrorClass::Unavailable,
        70 | 101 => ErrorClass::Internal,
        77 => ErrorClass::Auth,
        72 | 78 | 126 | 127 => ErrorClass::Configuration,
        _ => ErrorClass::ToolFailed,
    }
}

fn class_of_signal(signal: i32) -> ErrorClass {
    use rustix::process::Signal;
    let crashes = [Signal::ABORT, Signal::BUS, Signal::FPE, Signal::ILL, Signal::SEGV, Signal::SYS, Signal::TRAP];
    if crashes.iter().any(|crash| crash.as_raw() == signal) { ErrorClass::Internal } else { ErrorClass::Unavailable }
}

/// Writes a sentence without a word of the program's own.
fn describe(status: ExitStatus, class: ErrorClass) -> String {
    let end = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => return format!("the program was killed by signal {signal}"),
        (None, None) => return "the program ended".to_owned(),
    };
    match class {
        ErrorClass::InvalidArguments => format!("the program refused the arguments, with {end}"),
        ErrorClass::BusinessRule => format!("the program refused the call, with {end}"),
        _ => format!("the program ended with {end}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    fn failed(status: ExitStatus, stdout: &[u8], stderr: &str, rules: &FailureRules) -> Failure {
        ended(status, stdout, stderr, rules).unwrap_err()
    }

    fn failure(status: ExitStatus) -> Failure {
        failed(status, b"", "", &FailureRules::default())
    }

    #[test]
    fn every_exit_status_has_a_class() {
        use ErrorClass::{Auth, Configuration, Internal, InvalidArguments, ToolFailed, Unavailable};
        for (codes, class) in [
            (&[64, 65][..], InvalidArguments),
            (&[66, 68, 69, 71, 73, 74, 75, 76, 129, 130, 137, 143], Unavailable),
            (&[70, 101, 134, 139], Internal),
            (&[77], Auth),
            (&[72, 78, 126, 127], Configuration),
            (&[1, 2, 63, 67, 79, 128, 255], ToolFailed),
        ] {
            for code in codes {
                let failure = failure(exit(*code));
                assert_eq!((failure.class, failure.effect_possible), (class, true), "exit code {code}");
            }
        }
        for (signal, class) in [(9, Unavailable), (15, Unavailable), (13, Unavailable), (6, Internal), (11, Internal)] {
            assert_eq!(failure(ExitStatus::from_raw(signal)).class, class, "signal {signal}");
        }
    }

    #[test]
    fn the_manifest_says_what_an_exit_code_means() {
        let rule = |class, effect_possible| ExitRule { class, effect_possible };
        let exit_codes = BTreeMap::from([
            (2, rule(ErrorClass::InvalidArguments, false)),
            (75, rule(ErrorClass::BusinessRule, true)),
            (137, rule(ErrorClass::RateLimited, true)),
        ]);
        let rules = FailureRules { exit_codes, ..FailureRules::default() };
        let end = |status| {
            let failure = failed(status, b"", "", &rules);
            (failure.class, failure.effect_possible)
        };
        assert_eq!(end(exit(2)), (ErrorClass::InvalidArguments, false));
        assert_eq!(end(exit(75)), (ErrorClass::BusinessRule, true));
        assert_eq!(end(exit(137)), (ErrorClass::RateLimited, true));
        assert_eq!(end(exit(3)), (ErrorClass::ToolFailed, true));
        assert_eq!(end(ExitStatus::from_raw(2)), (ErrorClass::Unavailable, true), "a signal is no exit code");
        let structured = failed(exit(2), br#"{"error":{"class":"unavailable","message":"later"}}"#, "", &rules);
        assert_eq!((structured.class, structured.message.as_str()), (ErrorClass::Unavailable, "later"));
        let without_class = failed(exit(2), br#"{"error":"no"}"#, "", &rules);
        assert_eq!((without_class.class, without_class.effect_possible), (ErrorClass::InvalidArguments, false));
    }

    #[test]
    fn a_structured_error_takes_precedence() {
        let body =
            br#"{"error":{"class":"rate_limited","message":"slow down","retry_after_ms":50,"effect_possible":false,
            "details":[{"path":"/n","rule":"quota","sent":3,"allowed":"2 a day"}]}}"#;
        let failure = failed(exit(1), body, "noise", &FailureRules::default());
        assert_eq!(failure.class, ErrorClass::RateLimited);
        assert_eq!((failure.message.as_str(), failure.diagnostics), ("slow down", None));
        assert_eq!((failure.retry_after_ms, failure.effect_possible), (Some(50), false));
        assert_eq!(failure.details[0].path, "/n");
    }

    #[test]
    fn what_a_program_wrote_is_for_operators_unless_the_manifest_allows_it() {
        let allowed = FailureRules { stderr_to_model: true, ..FailureRules::default() };
        let hidden = FailureRules::default();
        let read = |status, stdout: &[u8], stderr, rules| {
            let failure = failed(status, stdout, stderr, rules);
            (failure.message, failure.diagnostics.unwrap_or_default())
        };
        let pair = |message: &str, diagnostics: &str| (message.to_owned(), diagnostics.to_owned());
        for (stdout, stderr, written) in [("", "", ""), ("out", "", "out"), ("out", "err", "err"), ("{}", "", "{}")] {
            let kept = read(exit(3), stdout.as_bytes(), stderr, &hidden);
            assert_eq!(kept, pair("the program ended with exit code 3", written));
            let shown = read(exit(3), stdout.as_bytes(), stderr, &allowed);
            let message = if written.is_empty() { String::new() } else { format!(": {written}") };
            assert_eq!(shown, pair(&format!("the program ended with exit code 3{message}"), ""));
        }
        let killed = read(ExitStatus::from_raw(9), b"", "err", &hidden);
        assert_eq!(killed, pair("the program was killed by signal 9", "err"));
        let refused = read(exit(65), b"", "err", &hidden);
        assert_eq!(refused, pair("the program refused the arguments, with exit code 65", "err"));
    }

    #[test]
    fn success_is_the_output() {
        let output = ended(exit(0), b"{\"error\":\"fine\"}", "warning", &FailureRules::default());
        assert_eq!(output.unwrap().get(), "{\"error\":\"fine\"}");
    }
}
