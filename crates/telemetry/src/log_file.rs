//! A log file of bounded size.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Above this the file is renamed to `.old`, which replaces the one before: both together take twice as much at most.
const BYTES: u64 = 16 * 1024 * 1024;

/// Appends lines to a file. A full disk loses lines, and never stops the program.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    most: u64,
}

impl LogFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::with_limit(path, BYTES)
    }

    fn with_limit(path: &Path, most: u64) -> io::Result<Self> {
        let file = append(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, bytes, most })
    }

    fn begin_new(&mut self) -> io::Result<()> {
        let mut old = self.path.clone().into_os_string();
        old.push(".old");
        fs::rename(&self.path, old)?;
        self.file = append(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.bytes >= self.most
            && let Err(_kept) = self.begin_new()
        {
            // The file cannot be renamed, perhaps because its folder was removed: it goes on as it is.
            self.bytes = 0;
        }
        let written = self.file.write(line)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Opens the file so that only this user may read it: a log can quote what a tool said.
fn append(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("redial.log");
        let mut log = LogFile::with_limit(&path, 1000).unwrap();
        for line in 0..1000 {
            writeln!(log, "{line:9}").unwrap();
        }
        drop(log);
        let size = |name: &str| fs::metadata(folder.path().join(name)).unwrap().len();
        assert!(size("redial.log") <= 1010 && size("redial.log.old") <= 1010, "{}", size("redial.log"));
        assert!(fs::read_to_string(&path).unwrap().ends_with("      999\n"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        writeln!(LogFile::open(&path).unwrap(), "the next start").unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with("      999\nthe next start\n"), "it is continued");
    }
}
