//! A standby becomes the primary.

use std::path::Path;

use super::{
    command::{Program, clean},
    initialise,
    location::Home,
};
use crate::{ServerError, folder::Folder};

/// Runs `pg_ctl promote`, which waits until the server takes writes.
pub(super) fn promote(program: &Path, home: &Home) -> Result<(), ServerError> {
    let data = home.data();
    let mut command = clean(&Program { path: program, folder: &data, user: home.user.as_ref() })?;
    command.args(["promote", "--wait", "--timeout=60", "--pgdata"]).arg(&data);
    initialise::run("pg_ctl promote", command, &Folder::create(&home.folder)?)
}
