//! The folder of this test process, removed when the process has ended, however it ends.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
};

use uuid::Uuid;

/// Removes the folder when its standard input ends, which is when this process ends. Servers that are killed with it may
/// still write for a moment, hence the repetition. A mounted disk, as a test of a full one needs, is unmounted first.
const JANITOR: &str = r#"
cat
umount -l "$1"/disk_* 2>/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1" 2>/dev/null && exit; sleep 0.2; done
"#;

static HOME: LazyLock<(PathBuf, Child)> = LazyLock::new(|| {
    let name = format!("redial-test-{}-{}", std::process::id(), &Uuid::new_v4().simple().to_string()[..8]);
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    // As root, Postgres runs as another user, who must be able to enter.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o711)).unwrap();
    let mut janitor = Command::new("sh");
    janitor.args(["-c", JANITOR, "janitor"]).arg(&folder);
    janitor.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    (folder, janitor.spawn().expect("sh must be on the PATH"))
});

/// Returns a folder that lives as long as this process.
pub(crate) fn folder() -> &'static Path {
    &HOME.0
}

/// Returns an unused path in that folder.
pub fn unique_path(what: &str) -> PathBuf {
    folder().join(unique(what))
}

/// Returns a name that nothing else has.
pub(crate) fn unique(what: &str) -> String {
    format!("{what}_{}", Uuid::new_v4().simple())
}
