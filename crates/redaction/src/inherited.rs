//! Which variables of the environment hold secrets, as far as their names and values tell.

/// Shortest value of a variable whose name says that it is secret.
const MIN_NAMED: usize = 4;
/// Shortest value that is a secret whatever its name.
const MIN_VALUE: usize = 8;
/// Parts of the names of secrets.
const SECRET_NAMES: [&str; 11] =
    ["KEY", "TOKEN", "SECRET", "PASS", "PWD", "CREDENTIAL", "AUTH", "COOKIE", "SESSION", "PRIVATE", "SIGNATURE"];
/// Names whose values every program of a machine may know. Removing them would garble each result with a path in it.
const PUBLIC_NAMES: [&str; 22] = [
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "PWD",
    "OLDPWD",
    "TMPDIR",
    "TMP",
    "TEMP",
    "HOSTNAME",
    "HOST",
    "EDITOR",
    "PAGER",
    "DISPLAY",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
];
/// Starts of such names.
const PUBLIC_STARTS: [&str; 3] = ["LC_", "XDG_", "SSL_CERT_"];

/// True for a variable that is no secret whatever its value, such as `PATH`.
fn is_public_variable(name: &str) -> bool {
    PUBLIC_NAMES.contains(&name) || PUBLIC_STARTS.iter().any(|start| name.starts_with(start))
}

/// Returns the secrets in a variable that a program inherits and nobody declared as one: by its name (`…_TOKEN`), the
/// password of a URL, or a value that looks like none of a path, a number, a word or a name of words (`eu-central-1`).
pub fn secrets_of_variable(name: &str, value: &str) -> Vec<String> {
    if is_public_variable(name) {
        return Vec::new();
    }
    let upper = name.to_ascii_uppercase();
    let value = value.trim();
    let is_named = SECRET_NAMES.iter().any(|part| upper.contains(part));
    if is_path(value) || (!is_named && (value.len() < MIN_VALUE || is_words(value))) || value.len() < MIN_NAMED {
        return Vec::new();
    }
    if !value.contains("://") {
        return vec![value.to_owned()];
    }
    match password(value) {
        Some(password) => vec![value.to_owned(), password],
        None if is_named || value.contains('?') => vec![value.to_owned()],
        None => Vec::new(),
    }
}

/// True for one absolute path or several; not for Base64 that begins with a slash.
fn is_path(value: &str) -> bool {
    value.starts_with(['/', '~', '.'])
        && value.split(':').all(|path| path.is_empty() || path.starts_with(['/', '~', '.']))
        && !value.ends_with('=')
}

/// True for words of small letters, or numbers, with separators: nobody takes this for a generated secret.
fn is_words(value: &str) -> bool {
    let is_word = |word: &str| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        word.len() <= 16
            && (word.bytes().all(|b| b.is_ascii_lowercase()) || word.bytes().all(|b| b.is_ascii_uppercase()))
    };
    let is_number = |word: &str| word.len() <= 12 && word.bytes().all(|byte| byte.is_ascii_digit());
    value
        .split(['-', '_', '.', ',', ' ', ':', '/', '@', '='])
        .all(|word| is_number(word) || (is_word(word) && digits(word) <= 2))
}

fn digits(word: &str) -> usize {
    word.bytes().filter(u8::is_ascii_digit).count()
}

/// Returns the password in a URL, decoded if it is percent-encoded.
fn password(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (login, _) = authority.rsplit_once('@').or_else(|| rest.rsplit_once('@'))?;
    let password = login.split_once(':').map_or(login, |(_, password)| password);
    let decoded = percent_encoding::percent_decode_str(password).decode_utf8_lossy().into_owned();
    (decoded.len() >= MIN_NAMED).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_generated_or_named_is_secret_and_ordinary_settings_are_not() {
        for (name, value) in [
            ("API_TOKEN", "hunter"),
            ("DB_PASSWORD", "correcthorse"),
            ("X", "c2VjcmV0LXNlY3JldA=="),
            ("X", "AKIAIOSFODNN7EXAMPLE"),
            ("X", "f47ac10b-58cc-4372-a567-0e02b2c3d479"),
            ("X", "/9j4AAQSkZJRgABAQ=="),
            ("X", "Tr0ub4dor&3"),
            ("HOOK", "https://hooks.example.com/x?sig=12345"),
        ] {
            assert_eq!(secrets_of_variable(name, value), [value], "{name}");
        }
        for (name, value) in [
            ("PATH", "/usr/local/bin:/usr/bin"),
            ("HOME", "/home/correct-Horse-77"),
            ("LC_ALL", "de_DE.UTF-8-and-more"),
            ("CONFIG_PATHS", "/etc/app:/opt/app"),
            ("KEY_FILE", "/run/secrets/key.pem"),
            ("REGION", "eu-central-1"),
            ("STAGE", "production"),
            ("DATE", "2026-11-23"),
            ("COUNT", "1000000000"),
            ("AUTH", "no"),
            ("ENDPOINT", "https://api.example.com/v1"),
            ("FLAG", "true"),
        ] {
            assert_eq!(secrets_of_variable(name, value), [""; 0], "{name}");
        }
    }

    #[test]
    fn the_password_of_a_url_is_a_secret_of_its_own() {
        let url = "postgres://app:p%40ss-word@db:5432/orders";
        assert_eq!(secrets_of_variable("DATABASE_URL", url), [url, "p@ss-word"]);
        assert_eq!(password("nats://token-1234@host:1").as_deref(), Some("token-1234"));
    }
}
