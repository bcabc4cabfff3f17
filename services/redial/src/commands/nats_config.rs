//! `redial nats-config`: writes what nats-server has to know of users and permissions.

use std::{fs, io::Write, os::unix::fs::OpenOptionsExt, path::Path, process::ExitCode};

use redial_access::{Access, server_configuration};
use redial_proto::{ApiError, Code};

use crate::{cli::NatsConfigArgs, exit, output};

pub(crate) fn run(args: &NatsConfigArgs) -> anyhow::Result<ExitCode> {
    let access = read(&args.access)?;
    for warning in &access.warnings {
        output::note(format!("warning: {warning}"));
    }
    let name = args.access.file_name().unwrap_or_default().to_string_lossy();
    let text = server_configuration(&access, &name);
    match (&args.output, args.check) {
        (None, false) => output::write(&text)?,
        (None, true) => {}
        (Some(file), false) => {
            write(file, &text)?;
            output::note(format!(
                "wrote {}; let nats-server read it (nats-server --signal reload), a second time if a user or a worker is new",
                file.display()
            ));
        }
        (Some(file), true) => return Ok(check(file, &text, &args.access)),
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn read(file: &Path) -> Result<Access, ApiError> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|error| {
        ApiError::new(Code::InvalidConfiguration, format!("{name}: the access file cannot be read: {error}"))
    })?;
    Access::parse(&name, &text)
}

/// Replaces the file at once: nats-server may read it at any time. Only this user and its group may read it, because it may
/// contain passwords; a file that is there keeps its permissions.
fn write(file: &Path, text: &str) -> Result<(), ApiError> {
    let wrong = |error: std::io::Error| {
        ApiError::new(Code::InvalidConfiguration, format!("{}: the file cannot be written: {error}", file.display()))
    };
    let mut draft = file.as_os_str().to_owned();
    draft.push(".draft");
    let permissions = fs::metadata(file).ok().map(|found| found.permissions());
    let mut options = fs::OpenOptions::new();
    let mut opened = options.write(true).create(true).truncate(true).mode(0o640).open(&draft).map_err(wrong)?;
    let done = opened
        .write_all(text.as_bytes())
        .and_then(|()| permissions.map_or(Ok(()), |permissions| opened.set_permissions(permissions)))
        .and_then(|()| opened.sync_all())
        .and_then(|()| fs::rename(&draft, file));
    done.map_err(|error| {
        // A draft that cannot be removed is replaced by the next run.
        let _ = fs::remove_file(&draft);
        wrong(error)
    })
}

/// Says whether the file is what would be written.
fn check(file: &Path, text: &str, access: &Path) -> ExitCode {
    let found = fs::read_to_string(file);
    if found.is_ok_and(|found| found == text) {
        return ExitCode::SUCCESS;
    }
    output::note(format!(
        "{file} is not what {access} says; run redial nats-config --access {access} --output {file}, and let nats-server \
         read it again (nats-server --signal reload)",
        file = file.display(),
        access = access.display()
    ));
    ExitCode::from(exit::FAILED)
}
