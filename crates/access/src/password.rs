//! How a user proves who it is.

use std::fmt;

/// Characters of a bcrypt hash.
const HASH: usize = 60;
/// Longest password, in bytes. It is one line of nats-server's configuration.
const LONGEST: usize = 256;

/// A password as the file has it.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// `$NAME`: the environment variable that has it, there where it is needed.
    Variable(String),
    /// A bcrypt hash of it, which only nats-server can use.
    Hash(String),
    Plain(String),
}

impl Password {
    /// Reads a password. The error says what is allowed; it does not repeat the password.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix('$')
            && is_variable(name)
        {
            return Ok(Self::Variable(name.to_owned()));
        }
        if is_hash(text) {
            return Ok(Self::Hash(text.to_owned()));
        }
        if text.starts_with('$') {
            return Err("password begins with '$', but is neither a variable nor a bcrypt hash; allowed: \"$NAME\" with the name of an \
                        environment variable (letters, digits and '_'), or a whole bcrypt hash (\"$2a$…\", 60 characters)"
                .to_owned());
        }
        if text.is_empty() || text.len() > LONGEST || text.chars().any(char::is_control) {
            return Err(format!(
                "password is empty, longer than {LONGEST} bytes, or has control characters; allowed: \"$NAME\" with the name \
                 of an environment variable, a bcrypt hash, or a text without control characters"
            ));
        }
        Ok(Self::Plain(text.to_owned()))
    }
}

/// Never shows the password.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "${name}"),
            Self::Hash(_) => f.write_str("a hash"),
            Self::Plain(_) => f.write_str("a plain password"),
        }
    }
}

fn is_variable(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(fits) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// True for `$2a$`, the cost, `$`, and 53 characters of bcrypt's alphabet.
fn is_hash(text: &str) -> bool {
    let kind = ["$2a$", "$2b$", "$2y$"].iter().find_map(|kind| text.strip_prefix(kind));
    let Some((cost, rest)) = kind.and_then(|rest| rest.split_once('$')) else { return false };
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '/';
    text.len() == HASH && cost.len() == 2 && cost.chars().all(|c| c.is_ascii_digit()) && rest.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_a_variable_a_hash_or_plain() {
        let hash = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
        assert_eq!(Password::parse("$A_1"), Ok(Password::Variable("A_1".into())));
        assert_eq!(Password::parse(hash), Ok(Password::Hash(hash.into())));
        assert_eq!(Password::parse("p$x"), Ok(Password::Plain("p$x".into())));
        for wrong in ["", "$", "$1A", "$A B", "$2a$05$short", "a\nb", &"x".repeat(300), &hash.replace('C', "!")] {
            let error = Password::parse(wrong).unwrap_err();
            assert!(error.contains("allowed: \"$NAME\""), "{wrong}: {error}");
        }
        assert_eq!(format!("{:?}", Password::Plain("secret".into())), "a plain password");
    }
}
