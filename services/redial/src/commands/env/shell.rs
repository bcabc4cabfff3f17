//! Texts for a POSIX shell.

/// Makes `eval "$(redial env …)"` fail like the command itself.
pub(super) const FAILURE: &str = "false\n";

/// Settings that belong to one login only: those of another one are taken back.
const OWN: [&str; 4] = ["REDIAL_TENANT", "REDIAL_USER", "REDIAL_WORKER_NAME", "REDIAL_WORKER_POOLS"];

/// Writes a line for each variable, and a function, because the program `nats` has no variable for its inbox prefix.
pub(super) fn exports(variables: &[(&'static str, String)]) -> String {
    let others = OWN.into_iter().filter(|own| variables.iter().all(|(name, _)| name != own));
    let lines = variables.iter().map(|(name, value)| format!("export {name}={}\n", quoted(value)));
    let lines: Vec<String> = lines.chain(others.map(|name| format!("unset {name}\n"))).collect();
    format!("{}nats() {{ command nats --inbox-prefix=\"$REDIAL_NATS_INBOX_PREFIX\" \"$@\"; }}\n", lines.concat())
}

/// Quotes a word so that a shell sees nothing special in it. There are no control characters in it.
fn quoted(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._~:/@%,+".contains(c);
    if !text.is_empty() && text.chars().all(fits) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_what_was_meant() {
        for text in ["", "plain", "it's", "$HOME `id` \"x\" \\ # ; & | * ? ~ !", "中文 passwort"] {
            let script = format!("v={}; printf %s \"$v\"", quoted(text));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
