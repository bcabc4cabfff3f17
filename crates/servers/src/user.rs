//! The user that Postgres runs as if this process runs as root.

use std::{
    fs,
    os::unix::fs::{MetadataExt, chown},
    path::Path,
};

use crate::ServerError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl User {
    /// Returns the user to run as; `None` unless this process runs as root. Existing data keeps its owner, so that a
    /// user `postgres` that is added later does not make it unreadable.
    pub(crate) fn to_drop_to(data: &Path) -> Result<Option<Self>, ServerError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        if let Some(owner) = Self::owner_of(data) {
            return Ok(Some(owner));
        }
        let passwd = Path::new("/etc/passwd");
        let text = fs::read_to_string(passwd).map_err(ServerError::io("read", passwd))?;
        Self::choose(&text).map(Some).ok_or(ServerError::NoUnprivilegedUser)
    }

    fn owner_of(data: &Path) -> Option<Self> {
        let found = fs::metadata(data).ok().filter(|metadata| metadata.uid() != 0)?;
        Some(Self { name: format!("#{}", found.uid()), uid: found.uid(), gid: found.gid() })
    }

    fn choose(passwd: &str) -> Option<Self> {
        ["postgres", "nobody"].iter().find_map(|wanted| passwd.lines().find_map(|line| Self::parse(line, wanted)))
    }

    /// Parses one line of passwd(5): `name:password:uid:gid:…`.
    fn parse(line: &str, wanted: &str) -> Option<Self> {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| *name == wanted)?;
        let uid = fields.nth(1)?.parse().ok().filter(|uid| *uid != 0)?;
        Some(Self { name: name.to_owned(), uid, gid: fields.next()?.parse().ok()? })
    }

    /// Makes this user the owner of a file or folder.
    pub(crate) fn own(&self, path: &Path) -> Result<(), ServerError> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(ServerError::io("change the owner of", path))
    }

    /// True if this user can enter a folder. Checks mode bits only; with access lists this is stricter than needed.
    pub(crate) fn reaches(&self, folder: &Path) -> bool {
        fs::canonicalize(folder).is_ok_and(|real| real.ancestors().all(|step| self.may_enter(step)))
    }

    fn may_enter(&self, folder: &Path) -> bool {
        fs::metadata(folder).is_ok_and(|found| {
            let bit = match (found.uid() == self.uid, found.gid() == self.gid) {
                (true, _) => 0o100,
                (false, true) => 0o010,
                (false, false) => 0o001,
            };
            found.mode() & bit != 0
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn postgres_is_preferred_to_nobody_and_root_never_chosen() {
        let nobody = "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n";
        assert_eq!(User::choose(nobody).map(|user| (user.name, user.uid)), Some(("nobody".to_owned(), 65534)));
        let both = format!("{nobody}postgres:x:101:104:,,,:/var/lib/postgresql:/bin/bash\n");
        let user = User::choose(&both);
        assert_eq!(user, Some(User { name: "postgres".to_owned(), uid: 101, gid: 104 }));
        assert_eq!(User::choose("postgres:x:0:0::/:/bin/sh"), None);
        assert_eq!(User::choose("postgres:x:broken"), None);
    }

    #[test]
    fn a_closed_folder_above_closes_all_below() {
        let temp = tempfile::tempdir().unwrap();
        let inside = temp.path().join("a/b");
        fs::create_dir_all(&inside).unwrap();
        let stranger = User { name: "stranger".to_owned(), uid: 54321, gid: 54321 };
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert!(stranger.reaches(&inside));
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!stranger.reaches(&inside));
        let owner = fs::metadata(temp.path()).unwrap();
        let us = User { name: "us".to_owned(), uid: owner.uid(), gid: owner.gid() };
        assert!(us.reaches(&inside));
    }
}
