//! A server's folder: its lock, and the files that survive a restart.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use uuid::Uuid;

use crate::{ServerError, port, process, remains};

/// A log above this is renamed to `.old` at the next start.
const LOG_BYTES: u64 = 16 * 1024 * 1024;
/// Processes whose owner died are killed by the kernel, or notice it themselves; after this time they are asked to end.
const BY_THEMSELVES: Duration = Duration::from_secs(1);
/// How much of a log an error quotes.
const QUOTED_LINES: usize = 12;
const QUOTED_BYTES: u64 = 4096;

/// A folder that belongs to one server.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates the folder if it is missing.
    pub(crate) fn create(path: &Path) -> Result<Self, ServerError> {
        fs::create_dir_all(path).map_err(ServerError::io("create", path))?;
        fs::canonicalize(path).map(Self).map_err(ServerError::io("resolve", path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Takes the folder's lock. The server gets it as its standard input, so it is held until the last process of that
    /// server has ended, so its holder knows that none is left. Waits for the remaining processes of a server
    /// whose owner died or was this process, and then asks them to end; refuses at once if the owner is alive.
    pub(crate) fn lock(&self, patience: Duration) -> Result<File, ServerError> {
        let path = self.join("lock");
        let io = |action| ServerError::io(action, &path);
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).to_owned();
        let mut file = options.open(&path).map_err(io("open"))?;
        let begin = Instant::now();
        let deadline = begin + patience;
        let mut asked = false;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(fs::TryLockError::Error(error)) => return Err(io("lock")(error)),
                Err(fs::TryLockError::WouldBlock) => {
                    let owner = fs::read_to_string(&path).unwrap_or_default();
                    if Instant::now() > deadline || is_another(&owner) {
                        let owner = if owner.is_empty() { "?".to_owned() } else { owner };
                        return Err(ServerError::FolderInUse { folder: self.0.clone(), owner });
                    }
                    if !asked && begin.elapsed() > BY_THEMSELVES && process::living(&owner).is_none() {
                        asked = true;
                        remains::stop(&path);
                    }
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
        file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())).map_err(io("write"))?;
        Ok(file)
    }

    /// Returns the port of the last start if it is free, or a new one. With `wanted`: that one or an error.
    pub(crate) fn choose_port(&self, server: &'static str, wanted: Option<u16>) -> Result<u16, ServerError> {
        if let Some(port) = wanted {
            return if port::is_free(port) { Ok(port) } else { Err(ServerError::PortTaken { server, port }) };
        }
        let file = self.join("port");
        let remembered = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
        if let Some(port) = remembered.filter(|port| port::is_free(*port)) {
            return Ok(port);
        }
        let port = port::any_free().ok_or(ServerError::NoPort { server })?;
        write_private(&file, &port.to_string())?;
        Ok(port)
    }

    /// Returns the stored password; generated at the first start. Letters and digits only.
    pub(crate) fn password(&self) -> Result<String, ServerError> {
        let file = self.password_file();
        match fs::read_to_string(&file) {
            Ok(text) if !text.is_empty() => Ok(text),
            Ok(_) => self.new_password(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.new_password(),
            Err(error) => Err(ServerError::io("read", &file)(error)),
        }
    }

    pub(crate) fn password_file(&self) -> PathBuf {
        self.join("password")
    }

    fn new_password(&self) -> Result<String, ServerError> {
        let password = Uuid::new_v4().simple().to_string();
        write_private(&self.password_file(), &password)?;
        Ok(password)
    }

    pub(crate) fn log(&self, name: &str) -> Result<Log, ServerError> {
        let path = self.join(name);
        if fs::metadata(&path).is_ok_and(|found| found.len() > LOG_BYTES) {
            fs::rename(&path, path.with_extension("log.old")).map_err(ServerError::io("rename", &path))?;
        }
        let opened = OpenOptions::new().create(true).append(true).open(&path);
        let file = opened.map_err(ServerError::io("open", &path))?;
        let start = file.metadata().map_or(0, |found| found.len());
        Ok(Log { path, file, start })
    }
}

/// A log file, and where in it the present run began.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    start: u64,
}

impl Log {
    /// Returns the last lines of the present run.
    pub(crate) fn tail(&self) -> String {
        self.read_tail().unwrap_or_else(|error| format!("(cannot be read: {error})"))
    }

    fn read_tail(&self) -> std::io::Result<String> {
        let mut file = File::open(&self.path)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(self.start.max(end.saturating_sub(QUOTED_BYTES))))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        Ok(lines[lines.len().saturating_sub(QUOTED_LINES)..].join("\n"))
    }
}

/// Writes a file that only its owner can read, atomically.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), ServerError> {
    let fresh = path.with_extension("new");
    let io = |action| ServerError::io(action, &fresh);
    let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh);
    let mut file = opened.map_err(io("open"))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(io("write"))?;
    fs::rename(&fresh, path).map_err(io("rename"))
}

fn is_another(owner: &str) -> bool {
    owner != std::process::id().to_string() && process::living(owner).is_some()
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, os::unix::fs::PermissionsExt};

    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::create(&temp.path().join("server")).unwrap();
        (temp, folder)
    }

    #[test]
    fn a_lock_excludes_and_names_the_living_owner() {
        let (_temp, folder) = folder();
        let held = folder.lock(Duration::ZERO).unwrap();
        let owner = std::process::id().to_string();
        let refused = folder.lock(Duration::from_millis(20)).unwrap_err();
        assert!(matches!(&refused, ServerError::FolderInUse { owner: found, .. } if *found == owner), "{refused}");

        fs::write(folder.join("lock"), "1").unwrap();
        // A living owner is not waited for: else this would take an hour.
        let refused = folder.lock(Duration::from_hours(1)).unwrap_err();
        assert!(refused.to_string().contains("process 1;"), "{refused}");

        drop(held);
        fs::write(folder.join("lock"), owner).unwrap();
        // A program that another test starts just now has the file open until it runs.
        folder.lock(Duration::from_mins(1)).unwrap();
    }

    #[test]
    fn a_password_is_generated_once_and_private() {
        let (_temp, folder) = folder();
        let password = folder.password().unwrap();
        assert_eq!(password.len(), 32);
        assert_eq!(folder.password().unwrap(), password);
        let mode = fs::metadata(folder.password_file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn the_port_is_remembered_unless_taken() {
        let (_temp, folder) = folder();
        let port = folder.choose_port("test", None).unwrap();
        assert_eq!(folder.choose_port("test", None).unwrap(), port);
        let _taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
        assert_ne!(folder.choose_port("test", None).unwrap(), port);
        let refused = folder.choose_port("test", Some(port)).unwrap_err();
        assert!(refused.to_string().contains(&format!("port {port} of 127.0.0.1, wanted for test")), "{refused}");
    }

    #[test]
    fn a_tail_is_of_the_present_run_only() {
        let (_temp, folder) = folder();
        fs::write(folder.join("a.log"), "old\n").unwrap();
        let mut log = folder.log("a.log").unwrap();
        for line in 0..20 {
            writeln!(log.file, "line {line}").unwrap();
        }
        let tail = log.tail();
        assert!(tail.starts_with("line 8\n") && tail.ends_with("line 19"), "{tail}");
    }

    #[test]
    fn a_large_log_is_renamed() {
        let (_temp, folder) = folder();
        File::create(folder.join("a.log")).unwrap().set_len(LOG_BYTES + 1).unwrap();
        assert_eq!(folder.log("a.log").unwrap().start, 0);
        assert!(folder.join("a.log.old").exists());
    }
}
