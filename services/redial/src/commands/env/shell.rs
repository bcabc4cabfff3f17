//! Texts for a POSIX shell.

/// A line for each variable, and a function, because the program `nats` has no variable for its inbox prefix.
pub(super) fn exports(variables: &[(&'static str, String)]) -> String {
    let line = |(name, value): &(&str, String)| format!("export {name}={}\n", quoted(value));
    let lines: Vec<String> = variables.iter().map(line).collect();
    format!("{}nats() {{ command nats --inbox-prefix=\"$REDIAL_NATS_INBOX_PREFIX\" \"$@\"; }}\n", lines.concat())
}

/// A word in which a shell sees nothing special. There are no control characters in it.
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
