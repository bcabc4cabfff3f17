//! How the program ends: 0 done, 1 failed, 2 used wrongly.

use std::process::ExitCode;

use redial_dispatcher::DispatcherError;
use redial_proto::{ApiError, Code};
use redial_queue::QueueError;
use redial_servers::ServerError;
use redial_store::StoreError;

/// Something failed: the call, a line, a check.
pub(crate) const FAILED: u8 = 1;
/// The program was used wrongly: a flag, a setting, a file.
pub(crate) const USAGE: u8 = 2;

/// Says what went wrong, with its code, and gives the exit code.
#[expect(clippy::print_stderr, reason = "this is where the program speaks its last word")]
pub(crate) fn report(error: &anyhow::Error, json: bool) -> ExitCode {
    let api = to_api(error);
    if json {
        eprintln!("{}", serde_json::json!({ "error": api }));
    } else {
        // The message of broken rules repeats them all in one line.
        let message =
            if api.details.is_empty() { api.message.as_str() } else { "the arguments break the tool's rules" };
        eprintln!("error: {message} [{}]", api.code);
        for detail in &api.details {
            let hint = detail.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
            let sent = match detail.rule.as_str() {
                "required" => "is missing".to_owned(),
                rule => format!("{rule}: {} was sent", detail.sent),
            };
            eprintln!("  {}: {sent}; allowed: {}{hint}", detail.path, detail.allowed);
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

/// Every error has a code; what no type knows is a failure of ours.
fn to_api(error: &anyhow::Error) -> ApiError {
    if let Some(api) = error.downcast_ref::<ApiError>() {
        return api.clone();
    }
    let code = if let Some(error) = error.downcast_ref::<StoreError>() {
        store_code(error)
    } else if let Some(error) = error.downcast_ref::<QueueError>() {
        queue_code(error)
    } else if let Some(error) = error.downcast_ref::<DispatcherError>() {
        match error {
            DispatcherError::Setting(_) => Code::InvalidConfiguration,
            DispatcherError::Agents(error) => error.code,
            DispatcherError::Store(error) => store_code(error),
            DispatcherError::Queue(error) => queue_code(error),
        }
    } else if let Some(ServerError::MissingProgram { .. }) = error.downcast_ref::<ServerError>() {
        Code::MissingProgram
    } else if error.downcast_ref::<redial_worker::WorkerError>().is_some() {
        Code::InvalidConfiguration
    } else if error.downcast_ref::<std::io::Error>().is_some() {
        Code::InvalidValue
    } else {
        Code::Internal
    };
    ApiError::new(code, format!("{error:#}"))
}

fn store_code(error: &StoreError) -> Code {
    match error {
        StoreError::BadAddress(_) | StoreError::UnsafeSetting { .. } | StoreError::NotMigrated(_) => {
            Code::InvalidConfiguration
        }
        StoreError::BadData(_) | StoreError::Migrate(_) => Code::Internal,
        StoreError::Timeout(_) | StoreError::Sql(_) => Code::Unavailable,
    }
}

fn queue_code(error: &QueueError) -> Code {
    match error {
        QueueError::Api(error) => error.code,
        error if error.is_retryable() => Code::Unavailable,
        _ => Code::InvalidConfiguration,
    }
}
