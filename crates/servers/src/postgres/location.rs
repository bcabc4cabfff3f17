//! Where a server's data is, and who owns it.

use std::{
    fs, io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use uuid::Uuid;

use crate::{ServerError, folder::Folder, user::User};

/// Only root can write here, so no other user can prepare a link under a name that will be used.
const ELSEWHERE: &str = "/var/lib/redial";

/// The folder that holds `data`, and the user that Postgres runs as if it is not this process's.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub(super) folder: PathBuf,
    pub(super) user: Option<User>,
}

impl Home {
    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }
}

/// Finds the server's own folder, or another one if the user that Postgres runs as cannot reach it.
pub(super) fn find(folder: &Folder) -> Result<Home, ServerError> {
    let link = folder.join("elsewhere");
    let linked = match fs::read_link(&link) {
        Ok(target) => Some(target),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(ServerError::io("read the link", &link)(error)),
    };
    let home = linked.clone().unwrap_or_else(|| folder.path().to_owned());
    let user = User::to_drop_to(&home.join("data"))?;
    if linked.is_some() || user.as_ref().is_none_or(|user| user.reaches(&home)) {
        fs::create_dir_all(&home).map_err(ServerError::io("create", &home))?;
        return Ok(Home { folder: home, user });
    }
    let target = Path::new(ELSEWHERE).join(Uuid::new_v4().simple().to_string());
    for step in [Path::new(ELSEWHERE), &target] {
        fs::create_dir_all(step).map_err(ServerError::io("create", step))?;
        // Independent of the umask: others may traverse the folder, but not list it.
        fs::set_permissions(step, fs::Permissions::from_mode(0o711)).map_err(ServerError::io("open", step))?;
    }
    symlink(&target, &link).map_err(ServerError::io("create the link", &link))?;
    Ok(Home { folder: target, user })
}
