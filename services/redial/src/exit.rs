//! Exit codes and the output of errors.

use std::process::ExitCode;

use clap::error::ErrorKind;
use redial_dispatcher::DispatcherError;
use redial_gateway::GatewayError;
use redial_proto::{ApiError, Code};
use redial_queue::QueueError;
use redial_servers::ServerError;
use redial_store::StoreError;
use redial_telemetry::visible_json;
use redial_worker::WorkerError;

use crate::{
    output::{self, WriteError},
    timeline::{Page, text as timeline_text},
};

/// A call, a line or a check failed.
pub(crate) const FAILED: u8 = 1;
/// A usage error: an invalid flag, setting or file.
pub(crate) const USAGE: u8 = 2;
/// The reader of the output closed the pipe; what a shell reports of a program that this ends.
const CLOSED_PIPE: u8 = 141;

/// Prints the help that was asked for, or what is wrong with the command line; returns the exit code.
pub(crate) fn help(help: &clap::Error) -> ExitCode {
    let text = help.render();
    let is_mistake = help.use_stderr() && help.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    // It could not be parsed, so what it asks for is looked up in the words themselves.
    if is_mistake && std::env::args_os().any(|argument| argument == "--json") {
        return report(&ApiError::new(Code::InvalidValue, mistake(&text.to_string())).into(), true);
    }
    if help.use_stderr() {
        output::note_text(&if Page::of_stderr().form().1 { text.ansi().to_string() } else { text.to_string() });
        return ExitCode::from(USAGE);
    }
    let text = if Page::of_stdout().form().1 { text.ansi().to_string() } else { text.to_string() };
    match output::write(&text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error.into(), false),
    }
}

/// Says what is wrong with a command line, in one line and without the usage.
fn mistake(text: &str) -> String {
    let (what, _usage) = text.split_once("\n\nUsage:").unwrap_or((text, ""));
    let lines: Vec<&str> = what.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

/// Prints the error with its code, and returns the exit code.
pub(crate) fn report(error: &anyhow::Error, json: bool) -> ExitCode {
    if error.downcast_ref().is_some_and(WriteError::is_closed_pipe) {
        return ExitCode::from(CLOSED_PIPE);
    }
    let api = to_api(error);
    if json {
        output::note(visible_json(&serde_json::json!({ "error": api }).to_string()));
    } else {
        output::note(output::plain(&text(&api)));
    }
    of(api.code)
}

/// Returns [`USAGE`] if what the user wrote is wrong, else [`FAILED`]. The same with and without `--json`.
pub(crate) fn of(code: Code) -> ExitCode {
    ExitCode::from(match code {
        Code::InvalidConfiguration
        | Code::InvalidManifest
        | Code::InvalidAgent
        | Code::InvalidMessage
        | Code::InvalidValue
        | Code::UnknownAgent
        | Code::UnknownModel => USAGE,
        _ => FAILED,
    })
}

/// Writes an error as people read it. Several mistakes, and the rules that arguments break, have a line each.
fn text(api: &ApiError) -> String {
    if !api.details.is_empty() {
        // The message repeats all field errors in one line.
        let mut lines = vec![format!("error: the arguments break the tool's rules [{}]", api.code)];
        lines.extend(api.details.iter().map(|detail| format!("  {}", timeline_text::field_error(detail))));
        return lines.join("\n");
    }
    // Whatever made the message may have begun it in the same way.
    let message = api.message.trim_start_matches("error: ").trim_end();
    let mistakes: Vec<&str> = message.lines().collect();
    if mistakes.len() < 2 || !is_a_list(api.code) {
        return format!("error: {message} [{}]", api.code);
    }
    let lines = mistakes.iter().map(|line| format!("  {line}"));
    std::iter::once(format!("error: {} problems [{}]", mistakes.len(), api.code))
        .chain(lines)
        .collect::<Vec<_>>()
        .join("\n")
}

const fn is_a_list(code: Code) -> bool {
    matches!(code, Code::InvalidConfiguration | Code::InvalidManifest | Code::InvalidAgent | Code::MissingProgram)
}

/// Returns true if something could not be reached, which is no mistake of the user.
pub(crate) fn is_unavailable(error: &anyhow::Error) -> bool {
    to_api(error).code == Code::Unavailable
}

/// Maps each error to its code; unknown errors are internal.
fn to_api(error: &anyhow::Error) -> ApiError {
    if let Some(api) = error.downcast_ref::<ApiError>() {
        return api.clone();
    }
    let code = if let Some(error) = error.downcast_ref::<StoreError>() {
        store_code(error)
    } else if let Some(error) = error.downcast_ref::<QueueError>() {
        error.code()
    } else if let Some(error) = error.downcast_ref::<DispatcherError>() {
        dispatcher_code(error)
    } else if let Some(error) = error.downcast_ref::<GatewayError>() {
        gateway_code(error)
    } else if let Some(error) = error.downcast_ref::<ServerError>() {
        server_code(error)
    } else if let Some(WorkerError::Panicked(_)) = error.downcast_ref::<WorkerError>() {
        Code::Internal
    } else if error.downcast_ref::<WorkerError>().is_some() {
        Code::InvalidConfiguration
    } else if error.downcast_ref::<WriteError>().is_some() {
        Code::OutputIncomplete
    } else if error.downcast_ref::<std::io::Error>().is_some() {
        Code::InvalidValue
    } else {
        Code::Internal
    };
    ApiError::new(code, message(error))
}

fn dispatcher_code(error: &DispatcherError) -> Code {
    match error {
        DispatcherError::Setting(_) => Code::InvalidConfiguration,
        DispatcherError::File(error) => error.code,
        DispatcherError::Store(error) => store_code(error),
        DispatcherError::Queue(error) => error.code(),
        DispatcherError::Panicked(_) => Code::Internal,
    }
}

fn gateway_code(error: &GatewayError) -> Code {
    match error {
        GatewayError::Setting(_) | GatewayError::Listen { .. } => Code::InvalidConfiguration,
        GatewayError::File(error) => error.code,
        GatewayError::Store(error) => store_code(error),
        GatewayError::Queue(error) => error.code(),
        GatewayError::Panicked(_) => Code::Internal,
    }
}

/// Writes the causes of an error, each once: some errors already quote their causes.
fn message(error: &anyhow::Error) -> String {
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

const fn server_code(error: &ServerError) -> Code {
    match error {
        ServerError::MissingProgram { .. } | ServerError::MissingPrograms(_) => Code::MissingProgram,
        ServerError::FolderInUse { .. } | ServerError::PortTaken { .. } => Code::WrongState,
        ServerError::UnreachableProgram { .. }
        | ServerError::NoUnprivilegedUser
        | ServerError::PasswordLost { .. }
        | ServerError::Io { .. } => Code::InvalidConfiguration,
        ServerError::NoPort { .. } | ServerError::Ended { .. } | ServerError::NotReady { .. } => Code::Unavailable,
    }
}

fn store_code(error: &StoreError) -> Code {
    match error {
        StoreError::BadAddress(_)
        | StoreError::Refused { .. }
        | StoreError::NoRight(_)
        | StoreError::LossyPooler(_)
        | StoreError::UnsafeSetting { .. }
        | StoreError::NotMigrated(_)
        | StoreError::OtherSchema(_)
        | StoreError::Migration { .. }
        | StoreError::OtherVersion(_) => Code::InvalidConfiguration,
        StoreError::BadData(_)
        | StoreError::FullPool(_)
        | StoreError::TooManyWorkers(_)
        | StoreError::TooManyTools(_)
        | StoreError::TooLargeTools(_)
        | StoreError::TooManyPending(_)
        | StoreError::Migrate(_) => Code::Internal,
        StoreError::Timeout(_)
        | StoreError::NoPartition(_)
        | StoreError::ClockBehind(_)
        | StoreError::NoPrimary(_)
        | StoreError::Sql(_) => Code::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_mistakes_have_a_line_each() {
        let error = |code, message: &str| text(&ApiError::new(code, message));
        let shown = [
            error(Code::InvalidConfiguration, "redial.toml:1:1: unknown setting \"x\""),
            error(Code::InvalidManifest, "tools.toml:1:1: a\ntools.toml:2:1: b"),
            error(Code::Unavailable, "error: Postgres ended; its log:\nno space left\n"),
        ];
        insta::assert_snapshot!(shown.join("\n\n"));
    }

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow::anyhow!("inner").context("outer: inner");
        assert_eq!(message(&error), "outer: inner");
        assert_eq!(message(&anyhow::anyhow!("inner").context("outer")), "outer: inner");
    }
}
