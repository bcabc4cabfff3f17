//! The user that command tools run as.
//!
//! A program that runs as the worker's own user can do what the worker can: read its files, send it signals, and read its
//! memory where the kernel lets it. As root it can read the memory of every process. So root runs no command tools
//! unless another user is named, or root itself.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use super::setpriv::{self, Setpriv};

/// Users that own nothing on an ordinary machine, in the order in which they are chosen.
const UNPRIVILEGED: [&str; 1] = ["nobody"];

/// The user that command tools run as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CommandUser {
    /// The worker's own user. If that is root, command tools are refused.
    #[default]
    Own,
    /// Root, because an operator said so: a program can then read all of the worker's secrets.
    Root,
    /// Another user. The worker needs root's rights, or `CAP_SETUID`, `CAP_SETGID` and `CAP_KILL`.
    Other(Account),
}

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name, or the number of a user without one.
    pub name: String,
    /// Number of the user; never 0.
    pub uid: u32,
    /// Number of its group, the only group that programs have.
    pub gid: u32,
    /// Its home, which programs get as `HOME`.
    pub home: String,
}

impl CommandUser {
    /// A user as an operator writes it: a name or a number of `/etc/passwd`, `UID:GID` without it, or `root`. The error says
    /// what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let own = rustix::process::geteuid().as_raw();
        match read(text, &passwd)? {
            None if own == 0 => Ok(Self::Root),
            None => Err("this process does not run as root; leave the setting out".to_owned()),
            Some(account) if account.uid == own => Ok(Self::Own),
            Some(account) => Ok(Self::Other(account)),
        }
    }

    /// A user without rights for command tools; `None` if this machine has none.
    pub fn unprivileged() -> Option<Self> {
        UNPRIVILEGED.iter().find_map(|name| Self::parse(name).ok()).filter(|user| matches!(user, Self::Other(_)))
    }

    /// The worker's own user or, if that is root, one without rights.
    pub fn own_or_unprivileged() -> Option<Self> {
        if Self::Own.is_missing() { Self::unprivileged() } else { Some(Self::Own) }
    }

    /// True if no user is named and this process runs as root: [`CommandUser::check`] fails.
    pub fn is_missing(&self) -> bool {
        *self == Self::Own && rustix::process::geteuid().is_root()
    }

    /// Checks that command tools can run as this user. The error says why not, and what to do.
    pub fn check(&self) -> Result<(), String> {
        match self {
            _ if self.is_missing() => Err("the worker runs as root, so the programs of command tools could read its memory and all of \
                                           its secrets; start it as another user, or set command_user (--command-user, \
                                           REDIAL_COMMAND_USER) to a user for the programs, such as nobody; root runs them as root \
                                           all the same"
                .to_owned()),
            Self::Own | Self::Root => Ok(()),
            Self::Other(account) => account.check(),
        }
    }

    /// Returns the account that programs change to.
    pub(crate) fn account(&self) -> Option<&Account> {
        if let Self::Other(account) = self { Some(account) } else { None }
    }
}

impl Account {
    fn check(&self) -> Result<(), String> {
        let can = match setpriv::find() {
            Some(setpriv) => setpriv::runs(&setpriv.path, &self.setpriv_arguments(&setpriv)),
            // Without it, only root can leave its groups.
            None => rustix::process::geteuid().is_root(),
        };
        if can {
            return Ok(());
        }
        Err(format!(
            "command_user is {}, and this process may not start programs as another user: it needs to run as root, or to have \
             setpriv (util-linux) and the ambient capabilities CAP_SETUID, CAP_SETGID and CAP_KILL; without command_user \
             programs run as the worker's own user",
            self.name
        ))
    }

    /// Returns arguments for the user, one group, no capabilities, and no way to get others, such as sudo.
    pub(super) fn setpriv_arguments(&self, setpriv: &Setpriv) -> Vec<String> {
        let (user, group) = (format!("--reuid={}", self.uid), format!("--regid={}", self.gid));
        let fixed = ["--clear-groups", "--inh-caps=-all", "--no-new-privs"];
        let bounds = setpriv.drops_bounds.then_some("--bounding-set=-all");
        [user, group].into_iter().chain(fixed.into_iter().chain(bounds).map(str::to_owned)).collect()
    }

    /// True if it may enter a folder, by the folder's own mode. Programs start in it, so the folders above do not
    /// matter.
    pub(crate) fn may_enter(&self, folder: &Path) -> bool {
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

/// Reads the account that a text names; `None` for root.
fn read(text: &str, passwd: &str) -> Result<Option<Account>, String> {
    let accounts = || passwd.lines().filter_map(account);
    let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
    let number = user.parse::<u32>().ok();
    let known =
        accounts().find(|account| account.name == user || (number == Some(account.uid) && account.name != "root"));
    let wrong = || "allowed: a user of /etc/passwd, such as nobody, its number, or UID:GID".to_owned();
    let mut found = match (known, number) {
        _ if user == "root" || number == Some(0) => return Ok(None),
        (Some(account), _) => account,
        (None, Some(uid)) => Account { name: uid.to_string(), uid, gid: uid, home: "/".to_owned() },
        (None, None) => return Err(wrong()),
    };
    if let Some(group) = group {
        found.gid = group.parse().map_err(|_| wrong())?;
    }
    match (found.uid, found.gid) {
        (u32::MAX, _) | (_, u32::MAX) => Err(wrong()),
        // Another name for root.
        (0, _) => Ok(None),
        _ => Ok(Some(found)),
    }
}

/// Reads one line of passwd(5): `name:password:uid:gid:comment:home:shell`.
fn account(line: &str) -> Option<Account> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, uid, gid, _, home, ..] = fields[..] else { return None };
    Some(Account { name: name.to_owned(), uid: uid.parse().ok()?, gid: gid.parse().ok()?, home: home.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\ntoor:x:0:0::/root:/bin/sh\nbroken\n\
                          nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\n";

    #[test]
    fn users_are_named_by_name_number_or_both_numbers() {
        let numbers = |text: &str| read(text, PASSWD).unwrap().map(|account| (account.uid, account.gid));
        assert_eq!(numbers("nobody"), Some((65534, 65533)));
        assert_eq!(numbers("65534"), Some((65534, 65533)));
        assert_eq!(numbers("1234"), Some((1234, 1234)));
        assert_eq!(numbers("1234:77"), Some((1234, 77)));
        for root in ["root", "0", "0:5", "toor"] {
            assert_eq!(numbers(root), None, "{root}");
        }
        for wrong in ["", "nobdy", "-1", "4294967295", "1:x", "nobody:"] {
            assert!(read(wrong, PASSWD).unwrap_err().contains("such as nobody"), "{wrong}");
        }
    }
}
