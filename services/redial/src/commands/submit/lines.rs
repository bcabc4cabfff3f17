//! The lines of a file of submissions, each with its key.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use redial_proto::{ApiError, Code, Submission};
use serde_json::value::RawValue;

use super::keys::Keys;

/// Bytes of lines in one request, unless one has more: it fits into one message.
const MAX_BYTES: usize = 700 * 1024;
/// A longer line cannot be a submission.
const LONGEST_LINE: u64 = 17 * 1024 * 1024;
const ALLOWED: &str = "allowed: a file with one JSON submission on each line, or - for standard input";

/// A line that is not empty.
#[derive(Debug)]
pub(super) struct Line {
    /// Counted from 1.
    pub(super) number: u64,
    /// The submission with a key, or what is wrong with the line.
    pub(super) submission: Result<Box<RawValue>, ApiError>,
}

/// Reads a file once, line by line.
pub(super) struct Lines {
    reader: Box<dyn BufRead>,
    /// How errors call the file.
    shown: String,
    keys: Option<Keys>,
    number: u64,
    /// Size of the file, if it has one.
    pub(super) bytes: Option<u64>,
    pub(super) read: u64,
    /// A line that did not fit into the last batch.
    left: Option<Line>,
}

impl Lines {
    /// Opens a file, or standard input for `-`, which has no name of its own.
    pub(super) fn open(path: &Path, name: Option<&str>) -> Result<Self, ApiError> {
        if path == Path::new("-") {
            let reader = Box::new(BufReader::new(io::stdin()));
            return Ok(Self::of(reader, "standard input".to_owned(), name.map(str::to_owned), None));
        }
        let shown = path.display().to_string();
        let wrong = |what: String| ApiError::new(Code::InvalidValue, format!("{shown}: {what}; {ALLOWED}"));
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let metadata = file.metadata().map_err(|error| wrong(error.to_string()))?;
        if metadata.is_dir() {
            return Err(wrong("is a folder".to_owned()));
        }
        let whole = fs::canonicalize(path).map_err(|error| wrong(error.to_string()))?;
        let name = name.map_or_else(|| whole.display().to_string(), str::to_owned);
        let bytes = metadata.is_file().then_some(metadata.len());
        Ok(Self::of(Box::new(BufReader::with_capacity(1 << 18, file)), shown, Some(name), bytes))
    }

    fn of(reader: Box<dyn BufRead>, shown: String, name: Option<String>, bytes: Option<u64>) -> Self {
        Self { reader, shown, keys: name.map(Keys::new), number: 0, bytes, read: 0, left: None }
    }

    /// Says whether a second run finds the calls of the first one by their keys.
    pub(super) const fn has_name(&self) -> bool {
        self.keys.is_some()
    }

    /// Returns the next lines that fit one request, valid or not; none at the end of the file.
    pub(super) fn batch(&mut self, most: usize) -> Result<Vec<Line>, ApiError> {
        let mut batch: Vec<Line> = Vec::with_capacity(most);
        let mut bytes = 0;
        while batch.len() < most {
            let next = match self.left.take() {
                Some(line) => Some(line),
                None => self.next()?,
            };
            let Some(line) = next else { break };
            bytes += line.submission.as_ref().map_or(0, |submission| submission.get().len());
            if bytes > MAX_BYTES && !batch.is_empty() {
                self.left = Some(line);
                break;
            }
            batch.push(line);
        }
        Ok(batch)
    }

    /// Returns the next line that is not empty.
    fn next(&mut self) -> Result<Option<Line>, ApiError> {
        loop {
            let mut text = Vec::new();
            let read = self.reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut text);
            let read = read.map_err(|error| self.unreadable(&error))? as u64;
            if read == 0 {
                return Ok(None);
            }
            self.read += read;
            self.number += 1;
            let number = self.number;
            if read == LONGEST_LINE && text.last() != Some(&b'\n') {
                self.read += skip_line(&mut self.reader).map_err(|error| self.unreadable(&error))?;
                return Ok(Some(Line { number, submission: Err(ApiError::new(Code::TooLarge, "longer than 17 MiB")) }));
            }
            if !text.trim_ascii().is_empty() {
                return Ok(Some(Line {
                    number,
                    submission: submission(&text, self.keys.as_mut())
                        .map_err(|wrong| ApiError::new(Code::InvalidMessage, wrong)),
                }));
            }
        }
    }

    fn unreadable(&self, error: &io::Error) -> ApiError {
        let (shown, after) = (&self.shown, self.number);
        ApiError::new(Code::InvalidValue, format!("{shown}: cannot be read after line {after}: {error}; {ALLOWED}"))
    }
}

/// Skips the rest of a line; returns its bytes.
fn skip_line(reader: &mut dyn BufRead) -> io::Result<u64> {
    reader.skip_until(b'\n').map(|skipped| skipped as u64)
}

/// Makes a submission with a key of a line.
fn submission(line: &[u8], keys: Option<&mut Keys>) -> Result<Box<RawValue>, String> {
    let text = std::str::from_utf8(line.trim_ascii_end())
        .map_err(|error| format!("byte {} is not UTF-8; expected JSON in UTF-8", error.valid_up_to() + 1))?;
    let mut submission: Submission =
        serde_json::from_str(text).map_err(|error| redial_files::json_mistake(text, &error).to_string())?;
    if submission.key.is_none() {
        submission.key =
            Some(keys.map_or_else(|| format!("cli-{}", uuid::Uuid::new_v4()), |keys| keys.next(line.trim_ascii())));
    }
    serde_json::value::to_raw_value(&submission).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the keys of the lines of a text, or what is wrong with them.
    fn keys(name: &str, text: &str) -> Vec<String> {
        let reader = Box::new(io::Cursor::new(text.to_owned()));
        let mut lines = Lines::of(reader, "calls".to_owned(), Some(name.to_owned()), None);
        let key = |line: Line| match line.submission {
            Ok(submission) => serde_json::from_str::<Submission>(submission.get()).unwrap().key.unwrap(),
            Err(wrong) => format!("{}: {}", line.number, wrong.message),
        };
        lines.batch(1000).unwrap().into_iter().map(key).collect()
    }

    fn text(values: &[&str]) -> String {
        let line = |value: &&str| ["{\"tool\":\"a\",\"arguments\":{\"n\":", value, "}}\n"].concat();
        values.iter().map(line).collect()
    }

    #[test]
    fn a_line_keeps_its_key_when_others_come_and_go() {
        let all = keys("f", &text(&["1", "2", "3", "2"]));
        assert_eq!(keys("f", &text(&["2", "3", "2"])), all[1..], "the first line was deleted");
        assert_eq!(keys("f", &text(&["1", "0", "2", "3", "2"]))[2..], all[1..], "a line was inserted");
        assert_eq!(keys("f", &("\n\n".to_owned() + &text(&["1", "2", "3", "2"]))), all, "empty lines were inserted");
        let moved = keys("f", &text(&["3", "2", "1"]));
        assert_eq!(moved, [all[2].clone(), all[1].clone(), all[0].clone()], "lines have another order");
        assert_ne!(all[1], all[3], "two equal lines are two calls");
        assert_eq!(keys("f", &text(&["2", "2"])), [all[1].clone(), all[3].clone()]);
        assert!(keys("g", &text(&["1", "2", "3", "2"])).iter().all(|key| !all.contains(key)), "another file");
    }

    #[test]
    fn lines_are_told_in_their_order_with_what_is_wrong() {
        let long = "x".repeat(17 * 1024 * 1024 + 5);
        let found =
            keys("f", &format!("{{\n{}\n\n{long}\n  x\n", "{\"tool\":\"a\",\"arguments\":{},\"key\":\"mine\"}"));
        let wanted = ["1: column 1: the text ends", "mine", "4: longer than 17 MiB", "5: column 3: found \"x\""];
        assert!(found.iter().zip(wanted).all(|(line, wanted)| line.starts_with(wanted)), "{found:?}");
        assert_eq!(found.len(), wanted.len());
    }

    #[test]
    fn a_folder_or_a_missing_file_is_named_with_what_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        for (path, what) in [(folder.path().to_owned(), "is a folder"), (folder.path().join("none"), "No such file")] {
            let error = Lines::open(&path, None).err().unwrap();
            assert_eq!(error.code, Code::InvalidValue);
            assert!(error.message.starts_with(&format!("{}: {what}", path.display())), "{error}");
            assert!(error.message.ends_with(ALLOWED), "{error}");
        }
    }
}
