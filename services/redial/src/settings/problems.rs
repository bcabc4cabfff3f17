//! Collects mistakes, so that a user is told all of them at once.

use redial_proto::{ApiError, Code};

/// Mistakes in settings and files, in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problems(Vec<ApiError>);

impl Problems {
    /// Returns the value; keeps an error.
    pub(crate) fn keep<T>(&mut self, done: Result<T, ApiError>) -> Option<T> {
        done.map_err(|error| self.add(error)).ok()
    }

    /// Returns the value that was found, or the default; also if there is an error, which is kept.
    pub(crate) fn keep_or<T>(&mut self, found: Result<Option<T>, ApiError>, default: T) -> T {
        self.keep(found).flatten().unwrap_or(default)
    }

    pub(crate) fn add(&mut self, error: ApiError) {
        self.0.push(error);
    }

    /// Adds the same code with several messages.
    pub(crate) fn add_all(&mut self, code: Code, messages: impl IntoIterator<Item = String>) {
        self.0.extend(messages.into_iter().map(|message| ApiError::new(code, message)));
    }

    /// Returns one error with a line for each mistake. Its code is that of the mistakes if they have the same one.
    pub(crate) fn into_result(self) -> Result<(), ApiError> {
        let Some(first) = self.0.first() else { return Ok(()) };
        let same = self.0.iter().all(|error| error.code == first.code);
        let code = if same { first.code } else { Code::InvalidConfiguration };
        let lines: Vec<&str> = self.0.iter().map(|error| error.message.as_str()).collect();
        Err(ApiError::new(code, lines.join("\n")))
    }
}
