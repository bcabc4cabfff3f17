//! The commands that run programs of Postgres.

use std::{path::Path, process::Command};

use crate::{Process, ServerError, user::User};

/// A program of Postgres, the folder to run it in, and the user to run it as if that is not this process's.
pub(super) struct Program<'a> {
    pub(super) path: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) user: Option<&'a User>,
}

/// Makes the command of the server on the data in the program's folder.
pub(super) fn server(program: &Program<'_>, port: u16, settings: &[(String, String)]) -> Result<Command, ServerError> {
    let mut command = clean(program)?;
    command.arg("-D").arg(program.folder).arg("-p").arg(port.to_string());
    let defaults = [
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", ""),
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("max_connections", "200"),
        ("timezone", "UTC"),
        ("log_timezone", "UTC"),
        // Compiling a query costs more than the short queries gain, and a private installation may lack the library.
        ("jit", "off"),
    ];
    for (name, value) in defaults {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    for (name, value) in settings {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    Ok(command)
}

/// Makes a command that the environment of this process (PGDATA, PGPORT, a locale) does not affect.
pub(super) fn clean(program: &Program<'_>) -> Result<Command, ServerError> {
    let mut command = Process::server(program.path, program.user)?;
    command.env("LC_ALL", "C").current_dir(program.folder);
    Ok(command)
}
