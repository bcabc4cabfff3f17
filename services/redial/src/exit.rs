//! Exit codes and the output of errors.

use std::process::ExitCode;

use redial_dispatcher::DispatcherError;
use redial_proto::{ApiError, Code};
use redial_queue::QueueError;
use redial_servers::ServerError;
use redial_store::StoreError;
use redial_worker::WorkerError;

use crate::{
    output::{self, WriteError},
    timeline::{Page, text},
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

/// Prints the error with its code, and returns the exit code.
pub(crate) fn report(error: &anyhow::Error, json: bool) -> ExitCode {
    if error.downcast_ref().is_some_and(WriteError::is_closed_pipe) {
        return ExitCode::from(CLOSED_PIPE);
    }
    let api = to_api(error);
    if json {
        output::note(serde_json::json!({ "error": api }).to_string());
    } else {
        // The message repeats all field errors in one line.
        let message =
            if api.details.is_empty() { api.message.as_str() } else { "the arguments break the tool's rules" };
        output::note(format!("error: {message} [{}]", api.code));
        for detail in &api.details {
            output::note(format!("  {}", text::field_error(detail)));
        }
    }
    ExitCode::from(match api.code {
        Code::InvalidConfiguration
        | Code::InvalidManifest
        | Code::InvalidAgent
        | Code::InvalidMessage
        | Code::InvalidValue => USAGE,
        _ => FAILED,
    })
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
        match error {
            DispatcherError::Setting(_) => Code::InvalidConfiguration,
            DispatcherError::Agents(error) => error.code,
            DispatcherError::Store(error) => store_code(error),
            DispatcherError::Queue(error) => error.code(),
            DispatcherError::Panicked(_) => Code::Internal,
        }
    } else if let Some(ServerError::MissingProgram { .. }) = error.downcast_ref::<ServerError>() {
        Code::MissingProgram
    } else if let Some(WorkerError::Panicked(_)) = error.downcast_ref::<WorkerError>() {
        Code::Internal
    } else if let Some(WorkerError::Queue(error @ QueueError::Ended)) = error.downcast_ref::<WorkerError>() {
        error.code()
    } else if error.downcast_ref::<WorkerError>().is_some() {
        Code::InvalidConfiguration
    } else if error.downcast_ref::<WriteError>().is_some() {
        Code::OutputIncomplete
    } else if error.downcast_ref::<std::io::Error>().is_some() {
        Code::InvalidValue
    } else {
        Code::Internal
    };
    ApiError::new(code, format!("{error:#}"))
}

fn store_code(error: &StoreError) -> Code {
    match error {
        StoreError::BadAddress(_)
        | StoreError::UnsafeSetting { .. }
        | StoreError::NotMigrated(_)
        | StoreError::OtherVersion(_) => Code::InvalidConfiguration,
        StoreError::BadData(_) | StoreError::Migrate(_) => Code::Internal,
        StoreError::Timeout(_) | StoreError::Sql(_) => Code::Unavailable,
    }
}
