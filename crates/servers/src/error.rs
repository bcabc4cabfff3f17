//! The error of this crate. A user sees it when `redial dev` cannot start a server, so each text contains the remedy.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitStatus,
};

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A program is not on this machine, or not at the path that the environment sets.
    #[error("{program} is not installed: it is not in {looked}. {remedy}")]
    MissingProgram { program: &'static str, looked: String, remedy: String },
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    MissingPrograms(Vec<ServerError>),
    /// Postgres refuses to run as root, and the user it would run as cannot reach it.
    #[error(
        "{} cannot be run by user {user} (Postgres refuses to run as root): a folder above it is closed to that user. \
         Open it, or install Postgres elsewhere and set REDIAL_POSTGRES_BIN",
        program.display()
    )]
    UnreachableProgram { program: PathBuf, user: String },
    /// This process runs as root, and there is neither a user `postgres` nor `nobody`.
    #[error("Postgres refuses to run as root, and /etc/passwd has neither a user \"postgres\" nor \"nobody\"; add one")]
    NoUnprivilegedUser,
    /// A server of another process runs on this folder.
    #[error("{} is in use by a server of process {owner}; stop that one, or choose another folder", folder.display())]
    FolderInUse {
        folder: PathBuf,
        /// The process that started that server; `?` if unknown.
        owner: String,
    },
    #[error("port {port} of 127.0.0.1, wanted for {server}, is taken by another program; free it or choose another")]
    PortTaken { server: &'static str, port: u16 },
    #[error("no free port on 127.0.0.1 for {server}")]
    NoPort { server: &'static str },
    #[error("{server} ended at once ({status}); the end of {}:\n{tail}", log.display())]
    Ended {
        /// The server, or the program that prepares it.
        server: &'static str,
        status: ExitStatus,
        log: PathBuf,
        tail: String,
    },
    /// The server runs but did not become ready in time.
    #[error("{server} was not ready after {seconds} s; the end of {}:\n{tail}", log.display())]
    NotReady {
        /// The server, or the program that prepares it.
        server: &'static str,
        /// How long it was waited for.
        seconds: u64,
        log: PathBuf,
        tail: String,
    },
    /// The data exists, but not the password that was created with it.
    #[error(
        "{} is missing, but its data exists; restore the file, or remove {} to begin with an empty database",
        file.display(), data.display()
    )]
    PasswordLost { file: PathBuf, data: PathBuf },
    /// The operating system refused an action.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl ServerError {
    /// Names what was tried on what; for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
