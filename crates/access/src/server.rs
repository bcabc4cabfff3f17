//! The part of nats-server's configuration that says who may do what.

use std::fmt::Write as _;

use crate::{Access, Account, Direction, Export, Import, Limits, Password};

/// Characters of a line of subjects.
const LINE: usize = 118;

/// Writes the `accounts` block of nats-server's configuration; the same for the same file. `file` is the name of the
/// access file.
pub fn server_configuration(access: &Access, file: &str) -> String {
    let mut text = format!(
        "# Written by `redial nats-config` from {file}; change that file and run it again. nats-server reads this one again at\n\
         # SIGHUP (`nats-server --signal reload`).\n\
         #\n\
         # Every user and every worker identity has an account of its own, and imports what it may use from REDIAL, the account of\n\
         # the dispatchers. There is no default user: a connection without a password is refused. `$NAME` is an environment\n\
         # variable of nats-server, whose value must be in double quotes there: '\"secret\"'.\n\
         \n\
         accounts {{\n"
    );
    let accounts: Vec<String> = access.accounts().iter().map(account).collect();
    text.push_str(&accounts.join("\n"));
    text.push_str("}\n");
    text
}

fn account(account: &Account) -> String {
    let mut text = format!("  # {}\n  {} {{\n", account.about, quoted(&account.name));
    // Writing to a String cannot fail.
    match &account.limits {
        None => text.push_str("    jetstream: enabled\n"),
        Some(Limits { connections, subscriptions }) => {
            let _ = writeln!(text, "    limits: {{ max_conn: {connections}, max_subs: {subscriptions} }}");
        }
    }
    let _ = write!(
        text,
        "    users: [\n      {{\n        user: {}\n        password: {}\n        permissions: {{\n",
        quoted(&account.user),
        password(&account.password)
    );
    let _ = write!(
        text,
        "          publish: {{\n            allow: [\n{}            ]\n          }}\n",
        subjects(&account.publish)
    );
    let _ = write!(
        text,
        "          subscribe: {{\n            allow: [\n{}            ]\n          }}\n",
        subjects(&account.subscribe)
    );
    text.push_str("        }\n      }\n    ]\n");
    if !account.exports.is_empty() {
        let lines: Vec<String> = account.exports.iter().map(|one| format!("      {}\n", export(one))).collect();
        let _ = write!(text, "    exports: [\n{}    ]\n", lines.concat());
    }
    if !account.imports.is_empty() {
        let lines: Vec<String> = account.imports.iter().map(|one| format!("      {}\n", import(one))).collect();
        let _ = write!(text, "    imports: [\n{}    ]\n", lines.concat());
    }
    text.push_str("  }\n");
    text
}

fn export(export: &Export) -> String {
    let subject = quoted(&export.subject);
    match export.direction {
        Direction::Service => format!("{{ service: {subject} }}"),
        Direction::Replies => format!("{{ service: {subject}, response_type: stream }}"),
        Direction::Stream => format!("{{ stream: {subject} }}"),
    }
}

fn import(import: &Import) -> String {
    let kind = if import.direction == Direction::Stream { "stream" } else { "service" };
    format!("{{ {kind}: {{ account: {}, subject: {} }} }}", quoted(&import.account), quoted(&import.subject))
}

fn subjects(subjects: &[String]) -> String {
    const INDENT: &str = "              ";
    let (mut text, mut line) = (String::new(), String::from(INDENT));
    for subject in subjects.iter().map(|subject| quoted(subject)) {
        if line.len() > INDENT.len() && line.len() + 2 + subject.len() > LINE {
            text.push_str(&line);
            text.push('\n');
            INDENT.clone_into(&mut line);
        }
        if line.len() > INDENT.len() {
            line.push_str(", ");
        }
        line.push_str(&subject);
    }
    format!("{text}{line}\n")
}

fn password(password: &Password) -> String {
    match password {
        Password::Variable(name) => format!("${name}"),
        Password::Hash(text) | Password::Plain(text) => quoted(text),
    }
}

/// Quotes a text without control characters as nats-server reads it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_configuration() {
        let access = Access::read("access.toml", include_str!("example.toml")).unwrap();
        insta::assert_snapshot!(server_configuration(&access, "access.toml"));
    }

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quoted("a \"b\" \\ $C #{}"), r#""a \"b\" \\ $C #{}""#);
    }
}
