//! Where the servers' programs are: the environment, the project's `.redial/servers`, PATH, then the usual folders.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use crate::ServerError;

/// The two programs of Postgres that are needed; always from one folder.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PostgresPrograms {
    pub(crate) initdb: PathBuf,
    pub(crate) postgres: PathBuf,
}

/// The inputs of a search.
#[derive(Clone, Debug, Default)]
struct Surroundings {
    /// `REDIAL_POSTGRES_BIN` or `REDIAL_NATS_SERVER`: if set, nothing else is tried.
    named: Option<OsString>,
    /// `.redial/servers` of the current folder, or of the nearest one above it that has one.
    project: Option<PathBuf>,
    /// The folders of PATH.
    path: Vec<PathBuf>,
    /// Folders of a distribution's packages, best first.
    usual: Vec<PathBuf>,
}

impl Surroundings {
    fn read(variable: &str, usual: Vec<PathBuf>) -> Self {
        Self {
            named: env::var_os(variable).filter(|value| !value.is_empty()),
            project: env::current_dir().ok().and_then(|here| project_servers(&here)),
            path: path_folders(),
            usual,
        }
    }
}

/// Finds Postgres; the error lists the paths that were tried.
pub(crate) fn postgres() -> Result<PostgresPrograms, ServerError> {
    let found = search_postgres(Surroundings::read("REDIAL_POSTGRES_BIN", debian_postgres("/usr/lib/postgresql")));
    found.map_err(|looked| ServerError::MissingProgram {
        program: "Postgres (initdb and postgres)",
        looked: listed(&looked),
        remedy: "Run ./dev once, install the package postgresql, or set REDIAL_POSTGRES_BIN to the folder with both",
    })
}

/// Finds nats-server; the error lists the paths that were tried.
pub(crate) fn nats_server() -> Result<PathBuf, ServerError> {
    let usual = ["/usr/sbin", "/usr/local/bin"].map(PathBuf::from).to_vec();
    search_nats_server(Surroundings::read("REDIAL_NATS_SERVER", usual)).map_err(|looked| ServerError::MissingProgram {
        program: "nats-server",
        looked: listed(&looked),
        remedy: "Run ./dev once, install the package nats-server, or set REDIAL_NATS_SERVER to the file",
    })
}

/// Finds `setpriv` of util-linux, which kills a server when this process ends.
pub(crate) fn setpriv() -> Result<PathBuf, ServerError> {
    let mut folders = path_folders();
    folders.extend(["/usr/bin", "/bin"].map(PathBuf::from));
    let files: Vec<PathBuf> = folders.iter().map(|folder| folder.join("setpriv")).collect();
    first_file(files).map_err(|looked| ServerError::MissingProgram {
        program: "setpriv",
        looked: listed(&looked),
        remedy: "Install the package util-linux",
    })
}

fn search_postgres(around: Surroundings) -> Result<PostgresPrograms, Vec<PathBuf>> {
    let folders = match around.named {
        Some(folder) => vec![PathBuf::from(folder)],
        None => {
            around.project.map(|p| p.join("postgres/bin")).into_iter().chain(around.path).chain(around.usual).collect()
        }
    };
    let complete = folders.iter().find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file());
    match complete {
        Some(folder) => {
            Ok(PostgresPrograms { initdb: real(folder.join("initdb")), postgres: real(folder.join("postgres")) })
        }
        None => Err(folders),
    }
}

fn search_nats_server(around: Surroundings) -> Result<PathBuf, Vec<PathBuf>> {
    if let Some(file) = around.named {
        return first_file(vec![PathBuf::from(file)]);
    }
    let folders = around.project.into_iter().chain(around.path).chain(around.usual);
    first_file(folders.map(|folder| folder.join("nats-server")).collect())
}

fn first_file(files: Vec<PathBuf>) -> Result<PathBuf, Vec<PathBuf>> {
    match files.iter().find(|file| file.is_file()) {
        Some(file) => Ok(real(file.clone())),
        None => Err(files),
    }
}

/// Resolves links: whether another user can reach a program depends on where the file is.
fn real(path: PathBuf) -> PathBuf {
    fs::canonicalize(&path).unwrap_or(path)
}

fn project_servers(here: &Path) -> Option<PathBuf> {
    here.ancestors().map(|folder| folder.join(".redial/servers")).find(|servers| servers.is_dir())
}

fn path_folders() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

/// `<root>/<version>/bin`, the newest version first.
fn debian_postgres(root: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut versions: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions.iter().map(|version| Path::new(root).join(version.to_string()).join("bin")).collect()
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    #[test]
    fn the_order_is_environment_project_path_usual() {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        let mut around = Surroundings {
            named: None,
            project: Some(root.join("project")),
            path: vec![root.join("path")],
            usual: vec![root.join("usual")],
        };
        for place in ["usual", "path", "project"] {
            touch(&root.join(place).join("nats-server"));
            assert_eq!(search_nats_server(around.clone()), Ok(root.join(place).join("nats-server")));
        }
        around.named = Some(root.join("mine").into());
        assert_eq!(search_nats_server(around.clone()), Err(vec![root.join("mine")]), "a wrong name is not passed over");
        touch(&root.join("mine"));
        assert_eq!(search_nats_server(around), Ok(root.join("mine")));
    }

    #[test]
    fn both_programs_of_postgres_come_from_one_folder() {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        touch(&root.join("half/postgres"));
        touch(&root.join("full/postgres"));
        touch(&root.join("full/initdb"));
        let around = Surroundings { path: vec![root.join("half"), root.join("full")], ..Surroundings::default() };
        let found = search_postgres(around).unwrap();
        assert_eq!(found, PostgresPrograms { initdb: root.join("full/initdb"), postgres: root.join("full/postgres") });
    }

    #[test]
    fn newest_packaged_postgres_first() {
        let temp = tempfile::tempdir().unwrap();
        for version in ["9", "15", "common"] {
            fs::create_dir(temp.path().join(version)).unwrap();
        }
        let root = temp.path().to_str().unwrap();
        assert_eq!(debian_postgres(root), [temp.path().join("15/bin"), temp.path().join("9/bin")]);
    }

    #[test]
    fn the_project_is_found_from_a_folder_inside_it() {
        let temp = tempfile::tempdir().unwrap();
        let inside = temp.path().join("crates/store");
        fs::create_dir_all(&inside).unwrap();
        assert_eq!(project_servers(&inside), None);
        let servers = temp.path().join(".redial/servers");
        fs::create_dir_all(&servers).unwrap();
        assert_eq!(project_servers(&inside), Some(servers));
    }
}
