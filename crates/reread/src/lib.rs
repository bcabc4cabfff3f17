//! A file that is read again when it has changed. An invalid version changes nothing but what is said about it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use redial_proto::{ApiError, Code};
use tokio::{fs, sync::Mutex};

/// Minimum time between two reads of the file's metadata.
pub const CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub struct Reread<T> {
    file: Option<PathBuf>,
    /// What it holds, for the log and for errors.
    what: &'static str,
    parse: fn(&str, &str) -> Result<T, ApiError>,
    known: Mutex<LastRead<T>>,
}

struct LastRead<T> {
    current: Current<T>,
    version: Option<Version>,
    /// That version could not be read.
    unread: bool,
    checked_at: Instant,
}

/// What shows that a file has changed: when it was written, and its size.
type Version = (Option<SystemTime>, u64);

#[derive(Debug)]
pub struct Current<T> {
    /// Of its last valid version; `None` without a file.
    pub value: Option<Arc<T>>,
    /// The file's name; `None` without a file.
    pub file: Option<Arc<str>>,
    /// Why the current file cannot be used; the value is that of its earlier version.
    pub problem: Option<Arc<str>>,
}

impl<T> Clone for Current<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), file: self.file.clone(), problem: self.problem.clone() }
    }
}

impl<T> Default for Current<T> {
    fn default() -> Self {
        Self { value: None, file: None, problem: None }
    }
}

impl<T> Reread<T> {
    /// Reads the file; `parse` gets its name and its text, and its error names both and what is allowed.
    pub async fn load(
        file: Option<PathBuf>,
        what: &'static str,
        parse: fn(&str, &str) -> Result<T, ApiError>,
    ) -> Result<Self, ApiError> {
        let mut known =
            LastRead { current: Current::default(), version: None, unread: false, checked_at: Instant::now() };
        if let Some(path) = &file {
            known.version = version(path).await;
            let value = parse(&path.display().to_string(), &text(path, what).await?)?;
            known.current =
                Current { value: Some(Arc::new(value)), file: Some(path.display().to_string().into()), problem: None };
        }
        Ok(Self { file, what, parse, known: Mutex::new(known) })
    }

    /// Returns what the file says, read at most once a second. An invalid file changes only [`Current::problem`].
    pub async fn at(&self, now: Instant) -> Current<T> {
        let mut known = self.known.lock().await;
        if let Some(path) = &self.file
            && now.saturating_duration_since(known.checked_at) >= CHECK_INTERVAL
        {
            known.checked_at = now;
            self.reload_if_changed(path, &mut known).await;
        }
        known.current.clone()
    }

    async fn reload_if_changed(&self, path: &Path, known: &mut LastRead<T>) {
        let version = version(path).await;
        if version == known.version && !known.unread {
            return;
        }
        known.version = version;
        let text = text(path, self.what).await;
        known.unread = text.is_err();
        match text.and_then(|text| (self.parse)(&path.display().to_string(), &text)) {
            Ok(value) => {
                tracing::info!(file = %path.display(), what = self.what, "Reloaded a file");
                known.current.value = Some(Arc::new(value));
                known.current.problem = None;
            }
            Err(error) => {
                let what = self.what;
                // One that cannot be read is tried every second.
                if known.current.problem.as_deref() != Some(error.message.as_str()) {
                    tracing::error!(
                        what,
                        error = error.message,
                        "Failed to reload a file; its earlier version stays in use"
                    );
                }
                known.current.problem = Some(error.message.into());
            }
        }
    }
}

/// Returns the file's version; `None` if its metadata cannot be read.
async fn version(path: &Path) -> Option<Version> {
    let metadata = fs::metadata(path).await.ok()?;
    Some((metadata.modified().ok(), metadata.len()))
}

async fn text(path: &Path, what: &str) -> Result<String, ApiError> {
    fs::read_to_string(path).await.map_err(|error| {
        let message = format!("{}: the {what} cannot be read: {error}", path.display());
        ApiError::new(Code::InvalidConfiguration, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(file: &str, text: &str) -> Result<u32, ApiError> {
        let wrong = |error| ApiError::new(Code::InvalidConfiguration, format!("{file}: {error}"));
        text.trim().parse().map_err(wrong)
    }

    #[tokio::test]
    async fn the_last_valid_version_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        std::fs::write(&path, "17").unwrap();
        let file = Reread::load(Some(path.clone()), "number", number).await.unwrap();
        let begin = Instant::now();
        let after = async |n| file.at(begin + CHECK_INTERVAL * n).await;
        let value = |current: &Current<u32>| current.value.as_deref().copied();

        std::fs::write(&path, "broken").unwrap();
        assert_eq!(value(&file.at(begin).await), Some(17), "looked at once a second at most");
        let broken = after(2).await;
        assert_eq!(value(&broken), Some(17));
        assert!(broken.problem.as_ref().is_some_and(|why| why.contains("invalid digit")), "{:?}", broken.problem);
        std::fs::remove_file(&path).unwrap();
        let gone = after(4).await;
        assert_eq!(value(&gone), Some(17));
        assert!(gone.problem.is_some_and(|why| why.contains("the number cannot be read")));
        std::fs::write(&path, "4").unwrap();
        let repaired = after(6).await;
        assert_eq!((value(&repaired), repaired.problem), (Some(4), None));

        // What could not be read is read again, although the file looks as before.
        let written_at = std::time::SystemTime::now();
        for (text, wanted, n) in [(b"\xff\xff", 4, 8), (b"42", 42, 10)] {
            std::fs::write(&path, text).unwrap();
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(written_at).unwrap();
            assert_eq!(value(&after(n).await), Some(wanted));
        }
    }

    #[tokio::test]
    async fn a_file_that_is_wrong_at_first_is_an_error_and_no_file_has_no_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        std::fs::write(&path, "broken").unwrap();
        let error = Reread::load(Some(path.clone()), "number", number).await.err().unwrap();
        assert!(error.message.starts_with(&path.display().to_string()), "{}", error.message);
        let none = Reread::load(None, "number", number).await.unwrap().at(Instant::now()).await;
        assert!(none.value.is_none() && none.file.is_none() && none.problem.is_none());
    }
}
