//! Passwords that are allowed but probably not meant.

use std::collections::HashMap;

use redial_files::{LIMIT, position_of};

use crate::Password;

/// The passwords of a file: who has each, and where.
#[derive(Default)]
pub(crate) struct Passwords(Vec<(String, usize, Password)>);

impl Passwords {
    pub(crate) fn add(&mut self, owner: String, at: usize, password: &Password) {
        self.0.push((owner, at, password.clone()));
    }

    /// Returns a line for each password that is written down and for each that two have, in the order of the file.
    pub(crate) fn warnings(mut self, file: &str, text: &str) -> Vec<String> {
        self.0.sort_by_key(|(_, at, _)| *at);
        let mut first: HashMap<&str, &str> = HashMap::new();
        let mut found = Vec::new();
        for (owner, at, password) in &self.0 {
            let (Password::Variable(text_of) | Password::Hash(text_of) | Password::Plain(text_of)) = password;
            let mut warn = |message: String| found.push((*at, format!("{owner}: {message}")));
            if matches!(password, Password::Plain(_)) {
                warn(
                    "the password is written in this file; name an environment variable (\"$NAME\") or write a bcrypt hash"
                        .to_owned(),
                );
            }
            match first.get(text_of.as_str()) {
                Some(other) => warn(format!("{other} has the same password; give each its own")),
                None => {
                    first.insert(text_of, owner);
                }
            }
        }
        let line = |(at, message)| format!("{file}:{}: {message}", position_of(text, at));
        found.into_iter().take(LIMIT).map(line).collect()
    }
}
