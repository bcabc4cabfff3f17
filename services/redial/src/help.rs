//! What the derived command line does not say by itself: examples, where the common settings are, and exit codes.

use clap::{Arg, Command, CommandFactory};

use crate::{
    cli::{Cli, values},
    settings::{common, with_flags},
};

/// The name of the command that explains the settings.
const SETTINGS: &str = "settings";
/// What every command ends its help with.
const MORE: &str = "Common settings (addresses, --json, logs): redial help settings. Exit codes: redial help.";

/// At the end of `redial help`. `docs/OPERATIONS.md` has the same.
const EXIT_CODES: &str = "\
Exit codes:
  0    done; with --wait also: the call or task succeeded
  1    it failed: the call, the task, a check, some lines of a file, or a server that cannot be
       reached; or the output could not be written
  2    a mistake of the command line, of a setting, or of a file such as tools.toml
  130  ended by Ctrl-C; a role (dev, dispatcher, worker, gateway) ends with 0 after the first one
  141  the reader of the output closed the pipe, as head does
  143  ended by SIGTERM; a role ends with 0 after the first one

Settings: redial help settings. Completion for your shell: redial help completions.";

/// Examples of each command but the one that lists settings.
const EXAMPLES: [(&str, &[&str]); 29] = [
    (
        "dev",
        &[
            "redial dev                               everything, with tools.toml, models.toml and agents.toml of this folder",
            "redial dev --check                       only check the settings and files",
            "redial dev --only-servers --folder /tmp/redial",
        ],
    ),
    (
        "dispatcher",
        &[
            "redial dispatcher --agents agents.toml --lease 15s",
            "redial dispatcher --access access.toml --nats-inbox-prefix _INBOX_dispatcher",
        ],
    ),
    (
        "worker",
        &[
            "redial worker --tools tools.toml --slots 16",
            "redial worker --models models.toml --worker-name models --worker-pools models",
        ],
    ),
    (
        "gateway",
        &[
            "redial gateway",
            "redial gateway --listen 0.0.0.0:8700 --gateway-hosts redial.example.com --access access.toml",
        ],
    ),
    ("migrate", &["redial migrate", "redial migrate --database-url postgres://redial_owner@db.example.com/redial"]),
    ("health", &["redial health", "redial health --json", "redial health --gateway http://127.0.0.1:8700"]),
    (
        "call",
        &[
            "redial call echo '{\"hello\": \"world\"}' --wait",
            "redial call book_flight - --key order-17 < arguments.json",
        ],
    ),
    ("submit", &["redial submit calls.jsonl", "generate | redial submit - --name nightly"]),
    ("task", &["redial task \"Say hello with the tool.\" --agent helper --wait"]),
    ("watch", &["redial watch 01a20236-ac46", "redial watch 01a20236-ac46 --json"]),
    ("tasks", &["redial tasks --state failed --since 2h"]),
    (
        "check",
        &["redial check '{\"city\": \"Paris\"}' --tool get_weather", "redial check - --schema schema.json < lines.txt"],
    ),
    (
        "history",
        &[
            "redial history --tool book_flight --class unavailable --since 2h",
            "redial history --tenant acme --state failed",
        ],
    ),
    (
        "stats",
        &["redial stats", "redial stats --by hour --since 3days --tool book_flight", "redial stats --by worker --csv"],
    ),
    (
        "show",
        &[
            "redial show 01a20236-ac46",
            "redial show 01a20236-ac46 --json > task.json",
            "redial show 01a20236-ac46 --mermaid",
        ],
    ),
    ("replay", &["redial replay 01a20236-ac46", "redial replay --file task.json"]),
    (
        "tools",
        &[
            "redial tools",
            "redial tools accept book_flight --identity travel --fingerprint 0b6a6f1f3c9de4c2a1a7708f2b5d8e96c4e1d230",
            "redial tools forget old_tool",
        ],
    ),
    (
        "webhooks",
        &[
            "redial webhooks",
            "redial webhooks create https://example.com/hook --event call.failed --event 'task.*'",
            "redial webhooks test 4f6c1f0e-8a0f-4c43-9d5e-0d7f6d4f4f10",
        ],
    ),
    ("workers", &["redial workers --all"]),
    ("dead-letters", &["redial dead-letters --limit 10", "redial dead-letters --json"]),
    ("actions", &["redial actions --by alice --since 24h", "redial actions --action conversations.forget"]),
    ("cancel", &["redial cancel 01a20236-ac46-7781-a3d0-49c0fb4d6170"]),
    (
        "redrive",
        &[
            "redial redrive 01a20236-ac46-7781-a3d0-49c0fb4d6170",
            "redial redrive --tool book_flight --class unavailable --dry-run",
            "redial redrive --tool charge_card --state unknown      after you checked that nothing happened",
        ],
    ),
    (
        "forget",
        &[
            "redial forget --conversation trip-9 --dry-run",
            "redial forget --conversation trip-9 --tenant acme --cancel --yes",
            "redial forget --tenant acme",
            "redial forget --list",
        ],
    ),
    (
        "token",
        &[
            "redial token create --roles submit,read --label ci      prints the token, once",
            "redial token create --for acme.alice --expires 30days",
            "redial token list --all",
            "redial token revoke c4e7x2ksh5qa",
        ],
    ),
    (
        "nats-config",
        &[
            "redial nats-config --access deploy/access.toml --output deploy/users.conf",
            "redial nats-config --access deploy/access.toml --output deploy/users.conf --check",
        ],
    ),
    (
        "env",
        &[
            "redial env                        of the redial dev in this folder; in a shell: eval \"$(redial env)\"",
            "redial env --user acme.alice --access deploy/access.toml --server nats.example.com:4222",
            "redial env --worker tools --json",
        ],
    ),
    ("version", &["redial version", "redial version --json"]),
    (
        "completions",
        &[
            "redial completions bash > ~/.local/share/bash-completion/completions/redial",
            "redial completions zsh > ~/.zfunc/_redial      with ~/.zfunc in fpath",
            "redial completions fish > ~/.config/fish/completions/redial.fish",
        ],
    ),
];

/// Returns the command line with everything that its help says.
pub(crate) fn command() -> Command {
    let command = with_flags(Cli::command()).after_help(EXIT_CODES);
    let command = command.mut_subcommand("redrive", |redrive| redrive.mut_arg("state", redrivable));
    command.mut_subcommands(|command| {
        let after = if command.get_name() == SETTINGS { settings_text() } else { after(command.get_name()) };
        command.after_help(after)
    })
}

fn redrivable(arg: Arg) -> Arg {
    arg.value_parser(values::Redrivable).help(
        "Only calls in this state; without it, failed and cancelled ones. unknown: the tool may have done its work, so check \
         first",
    )
}

fn after(name: &str) -> String {
    let examples = EXAMPLES.iter().find(|(command, _)| *command == name).map_or(&[][..], |(_, lines)| lines);
    if examples.is_empty() {
        return MORE.to_owned();
    }
    format!("Examples:\n  {}\n\n{MORE}", examples.join("\n  "))
}

/// A setting, with each way to set it. Its value is not here: some are passwords.
#[derive(serde::Serialize)]
pub(crate) struct Setting {
    flag: String,
    /// What stands for its value; `None` if it has none.
    value: Option<String>,
    environment: Option<String>,
    /// In redial.toml.
    file: Option<String>,
    help: String,
}

/// Returns the settings that every command has.
pub(crate) fn common_settings() -> Vec<Setting> {
    let setting = |flag: Arg| {
        let name = flag.get_id().to_string();
        let value = flag.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
        Setting {
            flag: format!("--{}", name.replace('_', "-")),
            value: value.filter(|_| flag.get_action().takes_values()),
            environment: (name != "json").then(|| format!("REDIAL_{}", name.to_uppercase())),
            help: flag.get_help().map(ToString::to_string).unwrap_or_default(),
            file: (name != "json" && name != "config").then_some(name),
        }
    };
    common().map(setting).collect()
}

/// Writes them as text.
pub(crate) fn settings_text() -> String {
    let mut text = "\
A flag wins over an environment variable, that over the settings file, and that over a running `redial dev` in this folder.
Durations have a unit: 500ms, 15s, 1h 30m, 30days.

"
    .to_owned();
    for Setting { flag, value, environment, file, help } in common_settings() {
        let value = value.map(|value| format!(" <{value}>")).unwrap_or_default();
        let elsewhere = match (environment, file) {
            (None, _) => String::new(),
            (Some(variable), None) => format!("      {variable}\n"),
            (Some(variable), Some(name)) => format!("      {variable} · {name} in redial.toml\n"),
        };
        text.push_str(&format!("  {flag}{value}\n      {help}\n{elsewhere}"));
    }
    text + "\nThe settings of roles are in `redial help dispatcher`, `worker` and `gateway`; they can be set in the same ways."
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_has_examples() {
        let commands = command();
        let names: BTreeSet<&str> = commands.get_subcommands().map(Command::get_name).collect();
        let with_examples: BTreeSet<&str> = EXAMPLES.iter().map(|(name, _)| *name).chain([SETTINGS]).collect();
        assert_eq!(with_examples, names);
        assert!(EXAMPLES.iter().all(|(_, lines)| !lines.is_empty()));
    }

    #[test]
    fn every_example_is_valid() {
        for (name, lines) in EXAMPLES {
            for line in lines {
                // What follows several spaces explains the example; what a shell does is not ours.
                let line = line.split("  ").next().unwrap_or_default().rsplit("| ").next().unwrap_or_default();
                let line =
                    line.split([' ']).take_while(|word| !matches!(*word, "<" | ">")).collect::<Vec<_>>().join(" ");
                let words: Vec<String> = words(&line);
                let parsed = command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                assert_eq!(words[1], name);
            }
        }
    }

    /// Splits words of a shell, for the quotes that the examples have.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quote) = (vec![String::new()], None);
        for c in line.chars() {
            match (quote, c) {
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), c) if c == open => quote = None,
                (None, ' ') => words.push(String::new()),
                (_, c) => words.last_mut().unwrap().push(c),
            }
        }
        words
    }

    #[test]
    fn the_help_of_a_command() {
        let help = |words: &[&str]| command().try_get_matches_from(words).unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                help(&["redial", "call", "--help"]),
                help(&["redial", "redrive", "-h"]),
                help(&["redial", "help", "settings"]),
                help(&["redial", "--help"]),
            ]
            .join("\n--------\n")
        );
    }
}
