//! Keeps other processes out of a role, and secrets out of what they may see.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
};

use anyhow::Context;
use redial_worker::CommandUser;

use crate::{
    cli::Command,
    environment,
    settings::{Settings, WEBHOOK_KEY},
};

/// Settings that hold passwords, if they have an `@`.
const URLS: [&str; 2] = ["nats_url", "database_url"];

/// Protects a role before it starts any thread; does nothing for other commands. Returns at once if there are no secrets in
/// the environment and the command line; otherwise the process starts again without them.
pub(crate) fn protect(command: &Command, settings: impl Fn() -> Settings) -> anyhow::Result<()> {
    let is_worker = match command {
        Command::Worker => true,
        Command::Dev(args) => !args.no_worker && !args.only_servers,
        Command::Dispatcher | Command::Gateway => false,
        _ => return Ok(()),
    };
    redial_worker::protect_process().context("this process cannot be protected from others (prctl PR_SET_DUMPABLE)")?;
    if environment::is_second_execution() {
        return environment::receive_secrets().context("the secrets on standard input cannot be read");
    }
    let (arguments, mut secrets) = without_urls(std::env::args_os().collect());
    for name in names(&settings(), is_worker) {
        if let Ok(value) = std::env::var(&name) {
            secrets.entry(name).or_insert(value);
        }
    }
    if secrets.is_empty() {
        return Ok(());
    }
    let failed = environment::start_again(arguments, &secrets);
    failed.context("this process cannot start again without the secrets in its environment")
}

/// The arguments without URLs that have a password, and these by the variables that mean the same.
fn without_urls(arguments: Vec<OsString>) -> (Vec<OsString>, BTreeMap<String, String>) {
    let (mut kept, mut secrets) = (Vec::new(), BTreeMap::new());
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy().into_owned();
        let (flag, value) = text.split_once('=').map_or((text.as_str(), None), |(flag, value)| (flag, Some(value)));
        let url = URLS.into_iter().find(|url| flag == format!("--{}", url.replace('_', "-")));
        let value = value.map(str::to_owned).or_else(|| arguments.peek()?.to_str().map(str::to_owned));
        match (url, value.filter(|value| value.contains('@'))) {
            (Some(url), Some(value)) => {
                if !text.contains('=') {
                    arguments.next();
                }
                secrets.insert(variable_of(url), value);
            }
            _ => kept.push(argument),
        }
    }
    (kept, secrets)
}

fn variable_of(setting: &str) -> String {
    format!("REDIAL_{}", setting.to_uppercase())
}

/// The variables that hold secrets: URLs with passwords, the key of webhooks, and whatever the files of a worker name, except what
/// the process itself needs there. Mistakes in the files are told later.
fn names(settings: &Settings, is_worker: bool) -> BTreeSet<String> {
    let urls = URLS.map(variable_of).into_iter().filter(|name| std::env::var(name).is_ok_and(|url| url.contains('@')));
    let named = RefCell::new(BTreeSet::new());
    let variable = |name: &str| {
        named.borrow_mut().insert(name.to_owned());
        std::env::var(name).ok()
    };
    if is_worker {
        if let Some(file) = settings.manifest() {
            // No program is started here.
            let _ = redial_tools::load_with(&file, &CommandUser::Root, &variable);
        }
        if let Some(file) = settings.models(&[]) {
            let _ = redial_worker::check_models(&file, &variable);
        }
    }
    let named = named.into_inner().into_iter().filter(|name| !is_needed(name));
    named.chain(urls).chain([WEBHOOK_KEY.to_owned()]).collect()
}

/// Whether libraries of this process read the variable, so that it has to stay.
fn is_needed(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    redial_tools::is_public_variable(name)
        || lower.ends_with("_proxy")
        || ["OTEL_", "RUST_", "REDIAL_"].iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_with_passwords_leave_the_command_line() {
        let split = |text: &str| {
            let (kept, secrets) = without_urls(text.split(' ').map(OsString::from).collect());
            let kept: Vec<String> = kept.into_iter().map(|part| part.into_string().unwrap()).collect();
            (kept.join(" "), secrets.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>())
        };
        let (nats, database) = ("REDIAL_NATS_URL=nats://a:b@c:1", "REDIAL_DATABASE_URL=postgres://a@c/d?e=f");
        for (given, kept, secrets) in [
            ("redial worker --nats-url nats://a:b@c:1 --slots 3", "redial worker --slots 3", &[nats][..]),
            (
                "redial --nats-url=nats://a:b@c:1 dispatcher --database-url=postgres://a@c/d?e=f",
                "redial dispatcher",
                &[database, nats],
            ),
            ("redial worker --nats-url nats://c:1 --tools a@b", "redial worker --nats-url nats://c:1 --tools a@b", &[]),
            ("redial worker --nats-url", "redial worker --nats-url", &[]),
        ] {
            assert_eq!(split(given), (kept.to_owned(), secrets.iter().map(|text| (*text).to_owned()).collect()));
        }
    }

    #[test]
    fn what_libraries_read_stays() {
        for name in ["PATH", "HTTPS_PROXY", "no_proxy", "OTEL_EXPORTER_OTLP_HEADERS", "RUST_BACKTRACE", "SSL_CERT_FILE"]
        {
            assert!(is_needed(name), "{name}");
        }
        assert!(!is_needed("OPENAI_API_KEY") && !is_needed("WEATHER_TOKEN"));
    }
}
