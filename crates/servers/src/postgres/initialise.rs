//! The first start: `initdb`, the password and the database; of a standby, a copy of the server that it follows.
//!
//! Everything is created in `data.new`, which is renamed to `data` at the end, so that a kill at any moment leaves either
//! nothing or a complete database. The remains of a killed attempt are removed.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use super::{
    command::{Program, clean},
    location::Home,
    upstream::Upstream,
};
use crate::{
    Process, ServerError,
    folder::{Folder, Log, write_private},
    programs::PostgresPrograms,
    running::copy,
};

/// `initdb` takes half a second on an idle machine.
const PATIENCE: Duration = Duration::from_mins(2);

pub(super) struct Inputs<'a> {
    pub(super) programs: &'a PostgresPrograms,
    pub(super) home: &'a Home,
    pub(super) folder: &'a Folder,
    /// Given to `initdb` too, so that no other process starts over while that of a killed owner still writes.
    pub(super) lock: &'a File,
    /// False if a crash of the machine may lose the data.
    pub(super) durable: bool,
    pub(super) upstream: Option<&'a Upstream>,
}

/// Creates the database unless it exists.
pub(super) fn once(inputs: &Inputs<'_>) -> Result<(), ServerError> {
    let data = inputs.home.data();
    if data.join("PG_VERSION").exists() {
        let file = inputs.folder.password_file();
        return if file.exists() { Ok(()) } else { Err(ServerError::PasswordLost { file, data }) };
    }
    let fresh = inputs.home.folder.join("data.new");
    remove_remains(&fresh)?;
    if let Some(upstream) = inputs.upstream {
        copy_upstream(inputs, &fresh, upstream)?;
        return keep(inputs, &fresh, &data);
    }
    let password_file = hand_over_password(inputs)?;
    let made = initdb(inputs, &fresh, &password_file).and_then(|()| create_database(inputs, &fresh));
    fs::remove_file(&password_file).map_err(ServerError::io("remove", &password_file))?;
    made?;
    keep(inputs, &fresh, &data)
}

/// Gives what is complete its name.
fn keep(inputs: &Inputs<'_>, fresh: &Path, data: &Path) -> Result<(), ServerError> {
    fs::rename(fresh, data).map_err(ServerError::io("rename", fresh))?;
    let home = &inputs.home.folder;
    File::open(home).and_then(|folder| folder.sync_all()).map_err(ServerError::io("write", home))
}

fn remove_remains(fresh: &Path) -> Result<(), ServerError> {
    match fs::remove_dir_all(fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ServerError::io("remove", fresh)(error)),
        _ => Ok(()),
    }
}

/// Copies the password so that the user who runs `initdb` can read it.
fn hand_over_password(inputs: &Inputs<'_>) -> Result<PathBuf, ServerError> {
    let file = inputs.home.folder.join("initdb-password");
    write_private(&file, &inputs.folder.password()?)?;
    if let Some(user) = &inputs.home.user {
        user.own(&file)?;
    }
    Ok(file)
}

/// Creates an empty folder that only the user of the server can enter.
fn create(inputs: &Inputs<'_>, fresh: &Path) -> Result<(), ServerError> {
    fs::create_dir(fresh).map_err(ServerError::io("create", fresh))?;
    fs::set_permissions(fresh, fs::Permissions::from_mode(0o700)).map_err(ServerError::io("close", fresh))?;
    inputs.home.user.as_ref().map_or(Ok(()), |user| user.own(fresh))
}

fn initdb(inputs: &Inputs<'_>, fresh: &Path, password_file: &Path) -> Result<(), ServerError> {
    create(inputs, fresh)?;
    let user = inputs.home.user.as_ref();
    let mut command = clean(&Program { path: &inputs.programs.initdb, folder: fresh, user })?;
    command.args(["--username=redial", "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-instructions"]);
    command.arg("--pwfile").arg(password_file).arg("--pgdata").arg(fresh);
    if !inputs.durable {
        command.arg("--no-sync");
    }
    command.stdin(copy(inputs.lock, inputs.folder)?);
    run("initdb", command, inputs.folder)
}

/// Creates the database in single-user mode, so that no client program or library is needed.
fn create_database(inputs: &Inputs<'_>, fresh: &Path) -> Result<(), ServerError> {
    let user = inputs.home.user.as_ref();
    let mut command = clean(&Program { path: &inputs.programs.postgres, folder: fresh, user })?;
    let fsync = if inputs.durable { "fsync=on" } else { "fsync=off" };
    command.args(["--single", "-c", fsync, "-c", "exit_on_error=on", "-D"]).arg(fresh).arg("postgres");
    let (reader, mut writer) = io::pipe().map_err(ServerError::io("open a pipe to", &inputs.programs.postgres))?;
    writer.write_all(b"CREATE DATABASE redial\n").map_err(ServerError::io("write to", &inputs.programs.postgres))?;
    drop(writer);
    command.stdin(reader);
    run("Postgres (creating the database)", command, inputs.folder)
}

/// Copies a running server with `pg_basebackup`, which also writes whom the copy follows.
fn copy_upstream(inputs: &Inputs<'_>, fresh: &Path, upstream: &Upstream) -> Result<(), ServerError> {
    // The roles are copied, too.
    write_private(&inputs.folder.password_file(), &upstream.password)?;
    create(inputs, fresh)?;
    let program = inputs.programs.beside("pg_basebackup")?;
    let mut command = clean(&Program { path: &program, folder: fresh, user: inputs.home.user.as_ref() })?;
    command.args([
        "--host=127.0.0.1",
        "--username=redial",
        "--no-password",
        "--checkpoint=fast",
        "--write-recovery-conf",
    ]);
    command.arg(format!("--port={}", upstream.port)).arg("--pgdata").arg(fresh).env("PGPASSWORD", &upstream.password);
    if !inputs.durable {
        command.arg("--no-sync");
    }
    command.stdin(copy(inputs.lock, inputs.folder)?);
    run("pg_basebackup", command, inputs.folder)
}

/// Runs a program to its end.
pub(super) fn run(program: &'static str, mut command: Command, folder: &Folder) -> Result<(), ServerError> {
    let log = folder.log("initdb.log")?;
    command.stdout(copy(&log.file, folder)?).stderr(copy(&log.file, folder)?);
    let process = Process::spawn(command)?;
    match process.wait(PATIENCE) {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(ServerError::Ended { server: program, status, log: log.path.clone(), tail: log.tail() }),
        None => Err(not_ready(program, &log)),
    }
}

fn not_ready(server: &'static str, log: &Log) -> ServerError {
    ServerError::NotReady { server, seconds: PATIENCE.as_secs(), log: log.path.clone(), tail: log.tail() }
}
