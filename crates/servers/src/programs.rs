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

impl PostgresPrograms {
    /// Returns another program of the same installation, which few need.
    pub(crate) fn beside(&self, name: &'static str) -> Result<PathBuf, ServerError> {
        let file = self.postgres.with_file_name(name);
        if file.is_file() {
            return Ok(file);
        }
        let looked = self.postgres.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
        let remedy = "Install all programs of this version (Debian, Ubuntu: postgresql, postgresql-client)".to_owned();
        Err(ServerError::MissingProgram { program: name, looked, remedy })
    }
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

/// Fails if a program that a server needs is missing; names all of them.
pub fn check_programs() -> Result<(), ServerError> {
    let found = [postgres().map(drop), nats_server().map(drop), check_setpriv()];
    let mut missing: Vec<ServerError> = found.into_iter().filter_map(Result::err).collect();
    match missing.pop() {
        None => Ok(()),
        Some(only) if missing.is_empty() => Err(only),
        Some(last) => {
            missing.push(last);
            Err(ServerError::MissingPrograms(missing))
        }
    }
}

fn check_setpriv() -> Result<(), ServerError> {
    if cfg!(target_os = "linux") { setpriv().map(drop) } else { Ok(()) }
}

/// Finds Postgres; the error says where it was searched.
pub(crate) fn postgres() -> Result<PostgresPrograms, ServerError> {
    const VARIABLE: &str = "REDIAL_POSTGRES_BIN";
    let around = Surroundings::read(VARIABLE, debian_postgres("/usr/lib/postgresql"));
    let named = around.named.is_some();
    search_postgres(around).map_err(|looked| ServerError::MissingProgram {
        program: "Postgres (initdb and postgres)",
        looked: if named { named_place(VARIABLE, &looked) } else { usual_places("/usr/lib/postgresql") },
        remedy: remedy("postgresql", VARIABLE, "the folder with both programs"),
    })
}

/// Finds Postgres, and another program of the same installation, such as `pg_waldump`. The error says where it was searched.
pub fn postgres_program(name: &'static str) -> Result<PathBuf, ServerError> {
    postgres()?.beside(name)
}

/// Finds nats-server; the error says where it was searched.
pub fn nats_server() -> Result<PathBuf, ServerError> {
    const VARIABLE: &str = "REDIAL_NATS_SERVER";
    let around = Surroundings::read(VARIABLE, ["/usr/sbin", "/usr/local/bin"].map(PathBuf::from).to_vec());
    let named = around.named.is_some();
    search_nats_server(around).map_err(|looked| ServerError::MissingProgram {
        program: "nats-server",
        looked: if named { named_place(VARIABLE, &looked) } else { usual_places("/usr/sbin, /usr/local/bin") },
        remedy: remedy("nats-server", VARIABLE, "the program"),
    })
}

/// Finds `setpriv` of util-linux, which kills a server when this process ends.
pub(crate) fn setpriv() -> Result<PathBuf, ServerError> {
    let mut folders = path_folders();
    folders.extend(["/usr/bin", "/bin"].map(PathBuf::from));
    let files: Vec<PathBuf> = folders.iter().map(|folder| folder.join("setpriv")).collect();
    first_file(files).map_err(|_| ServerError::MissingProgram {
        program: "setpriv",
        looked: usual_places("/usr/bin, /bin"),
        remedy: "Install the package util-linux".to_owned(),
    })
}

fn named_place(variable: &str, looked: &[PathBuf]) -> String {
    let place = looked.first().map(|path| path.display().to_string()).unwrap_or_default();
    format!("{place}, which {variable} names")
}

/// Describes the usual places. The folders of PATH are counted, because a user knows them and a list would hide the
/// rest.
fn usual_places(others: &str) -> String {
    format!("the {} folders of PATH, {others}", path_folders().len())
}

/// Says what to do; `./dev setup` helps only who has the sources.
fn remedy(package: &str, variable: &str, what: &str) -> String {
    let sources = env::current_dir().is_ok_and(|here| here.ancestors().any(|folder| folder.join("dev").is_file()));
    let setup = if sources { "run ./dev setup, " } else { "" };
    let text = format!("{setup}install the package {package} (Debian, Ubuntu, Homebrew), or set {variable} to {what}");
    text[..1].to_uppercase() + &text[1..]
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

/// Lists `<root>/<version>/bin`, the newest version first.
fn debian_postgres(root: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut versions: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions.iter().map(|version| Path::new(root).join(version.to_string()).join("bin")).collect()
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
