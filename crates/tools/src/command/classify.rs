//! Classifies how a program ended. Pure; exit codes are those of `sysexits.h`.
//!
//! | end | class |
//! | --- | --- |
//! | 0 | success: standard output is the result |
//! | 64 USAGE, 65 DATAERR | `invalid_arguments` |
//! | 66 NOINPUT, 68 NOHOST, 69 UNAVAILABLE, 71 OSERR, 73 CANTCREAT, 74 IOERR, 75 TEMPFAIL, 76 PROTOCOL | `unavailable` |
//! | 70 SOFTWARE, 101 (a Rust panic) | `internal` |
//! | 77 NOPERM | `auth` |
//! | 72 OSFILE, 78 CONFIG, 126, 127 (the program could not be run) | `configuration` |
//! | 1 and every other code | `business_rule` |
//! | killed by SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP | `internal`: the program crashed |
//! | killed by any other signal, e.g. SIGKILL when memory ran out | `unavailable` |
//! | 128 + n, as shells report it | as killed by signal n |
//!
//! A structured error on standard output takes precedence, with any exit code but 0. An exit code never proves that
//! there was no effect: only a structured error with `"effect_possible": false` does.

use std::{io, os::unix::process::ExitStatusExt, process::ExitStatus};

use redial_proto::{ErrorClass, Failure, limits};

use crate::{handler::ToolResult, output, structured};

/// Bytes of standard output that the error quotes if standard error is empty.
const SHOWN: usize = 500;

/// The result of a program that ended by itself, or by a signal from elsewhere.
pub(super) fn ended(status: ExitStatus, stdout: &[u8], stderr: &str) -> ToolResult {
    if status.success() {
        return output::from_bytes(stdout);
    }
    let reported = structured::read(stdout).unwrap_or_default();
    let text = reported.message.unwrap_or_else(|| {
        let stdout = String::from_utf8_lossy(stdout);
        let text = if stderr.is_empty() { limits::shorten(stdout.trim(), SHOWN) } else { stderr.to_owned() };
        let end = describe(status);
        if text.is_empty() { end } else { format!("{end}: {}", text.replace('\0', "\u{fffd}")) }
    });
    let mut failure = Failure::new(reported.class.unwrap_or_else(|| class_of(status)), text);
    failure.effect_possible = reported.effect_possible.unwrap_or(true);
    failure.retry_after_ms = reported.retry_after_ms;
    failure.details = reported.details;
    Err(failure)
}

/// The failure of a program that could not be started and therefore had no effect.
pub(super) fn spawn_error(error: &io::Error) -> Failure {
    use io::ErrorKind as Kind;
    let class = match error.kind() {
        Kind::ArgumentListTooLong => ErrorClass::InvalidArguments,
        Kind::NotFound | Kind::PermissionDenied | Kind::InvalidInput | Kind::NotADirectory => ErrorClass::Configuration,
        _ => ErrorClass::Unavailable,
    };
    Failure::new(class, format!("the program could not be started: {error}")).without_effect()
}

/// The failure of a program that was started and then could not be observed any more.
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
        _ => ErrorClass::BusinessRule,
    }
}

fn class_of_signal(signal: i32) -> ErrorClass {
    use rustix::process::Signal;
    let crashes = [Signal::ABORT, Signal::BUS, Signal::FPE, Signal::ILL, Signal::SEGV, Signal::SYS, Signal::TRAP];
    if crashes.iter().any(|crash| crash.as_raw() == signal) { ErrorClass::Internal } else { ErrorClass::Unavailable }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the program ended with exit code {code}"),
        (None, Some(signal)) => format!("the program was killed by signal {signal}"),
        (None, None) => "the program ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn every_exit_status_has_a_class() {
        use ErrorClass::{Auth, BusinessRule, Configuration, Internal, InvalidArguments, Unavailable};
        for (codes, class) in [
            (&[64, 65][..], InvalidArguments),
            (&[66, 68, 69, 71, 73, 74, 75, 76, 129, 130, 137, 143], Unavailable),
            (&[70, 101, 134, 139], Internal),
            (&[77], Auth),
            (&[72, 78, 126, 127], Configuration),
            (&[1, 2, 63, 67, 79, 128, 255], BusinessRule),
        ] {
            for code in codes {
                assert_eq!(ended(exit(*code), b"", "").unwrap_err().class, class, "exit code {code}");
            }
        }
        for (signal, class) in [(9, Unavailable), (15, Unavailable), (13, Unavailable), (6, Internal), (11, Internal)] {
            assert_eq!(ended(ExitStatus::from_raw(signal), b"", "").unwrap_err().class, class, "signal {signal}");
        }
    }

    #[test]
    fn a_structured_error_takes_precedence() {
        let body =
            br#"{"error":{"class":"rate_limited","message":"slow down","retry_after_ms":50,"effect_possible":false,
            "details":[{"path":"/n","rule":"quota","sent":3,"allowed":"2 a day"}]}}"#;
        let failure = ended(exit(1), body, "noise").unwrap_err();
        assert_eq!(failure.class, ErrorClass::RateLimited);
        assert_eq!(failure.message, "slow down");
        assert_eq!((failure.retry_after_ms, failure.effect_possible), (Some(50), false));
        assert_eq!(failure.details[0].path, "/n");
    }

    #[test]
    fn messages_quote_the_program() {
        let message = |status, stdout: &[u8], stderr| ended(status, stdout, stderr).unwrap_err().message;
        assert_eq!(message(exit(3), b"", ""), "the program ended with exit code 3");
        assert_eq!(message(exit(3), b"out", ""), "the program ended with exit code 3: out");
        assert_eq!(message(exit(3), b"out", "err"), "the program ended with exit code 3: err");
        assert_eq!(message(ExitStatus::from_raw(9), b"", ""), "the program was killed by signal 9");
    }

    #[test]
    fn success_is_the_output() {
        assert_eq!(ended(exit(0), b"{\"error\":\"fine\"}", "warning").unwrap().get(), "{\"error\":\"fine\"}");
    }
}
