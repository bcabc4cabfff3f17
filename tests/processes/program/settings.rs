//! An invalid setting stops the program with its name, its value, its source and what is allowed.

use std::fs;

use redial_test_stack::{Process, Servers, Stack};
use serde_json::Value;

use super::redial;

/// Nothing listens there: invalid settings must be found before any connection.
const SERVERS: [(&str, &str); 2] = [
    ("REDIAL_NATS_URL", "nats://me:secret-canary@127.0.0.1:1"),
    ("REDIAL_DATABASE_URL", "postgres://me:secret-canary@127.0.0.1:1/redial"),
];

/// A role, a setting, an invalid value of it, and what is allowed; tried as a flag, as a variable and in the file.
const INVALID: [(&str, &str, &str, &str); 11] = [
    ("dispatcher", "lease", "1ms", "300ms to 1h"),
    ("dispatcher", "lease", "soon", "300ms to 1h"),
    ("dispatcher", "retention", "5s", "1m to 100years, such as 30days"),
    ("dispatcher", "database_connections", "3", "4 to 1000"),
    ("worker", "slots", "0", "1 to 100000"),
    ("worker", "slots", "-1", "1 to 100000"),
    ("worker", "command_slots", "0", "1 to 100000"),
    ("worker", "drain_grace", "5", "a duration such as 30s"),
    ("worker", "log_format", "xml", "auto, text, json"),
    ("worker", "log", "loud", redial_telemetry::ALLOWED_FILTERS),
    ("dispatcher", "log", "info,redial=loud", redial_telemetry::ALLOWED_FILTERS),
];

#[tokio::test]
async fn an_invalid_value_is_named_with_its_source_and_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    for (role, name, value, allowed) in INVALID {
        let flag = format!("--{}={value}", name.replace('_', "-"));
        let variable = format!("REDIAL_{}", name.to_uppercase());
        let mut environment = SERVERS.to_vec();
        let by_flag = redial(folder.path(), &environment, &[role, &flag]).await;
        environment.push((&variable, value));
        let by_variable = redial(folder.path(), &environment, &[role]).await;
        fs::write(folder.path().join("redial.toml"), format!("{name} = {value:?}\n")).unwrap();
        let by_file = redial(folder.path(), &SERVERS, &[role]).await;
        fs::remove_file(folder.path().join("redial.toml")).unwrap();
        let places = [
            (by_flag, format!("flag --{}", name.replace('_', "-"))),
            (by_variable, format!("environment variable {variable}")),
            (by_file, format!("redial.toml:1:{}", name.len() + 4)),
        ];
        for (run, place) in places {
            let wanted = format!("error: {name} is {value:?} ({place}); allowed: {allowed} [invalid_configuration]\n");
            assert_eq!((run.code, run.err.as_str(), run.out.as_str()), (2, wanted.as_str(), ""));
        }
    }
}

#[tokio::test]
async fn an_invalid_settings_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.toml");
    let cases = [
        ("leese = \"5s\"\n", "unknown setting \"leese\"; did you mean \"lease\"? allowed: nats_url, "),
        ("lease = \n", "other.toml:1:"),
        ("[lease]\nvalue = 1\n", "lease is "),
        ("gateway_hosts = [\"a\"]\n", "gateway_hosts is a list or a table; allowed: text, a number, true or false"),
    ];
    for (text, wanted) in cases {
        fs::write(&other, text).unwrap();
        let arguments = ["dispatcher", "--config", other.to_str().unwrap()];
        let run = redial(folder.path(), &SERVERS, &arguments).await;
        assert!(run.code == 2 && run.err.contains(wanted) && run.err.contains("other.toml"), "{text:?}: {}", run.err);
    }
    let missing = redial(folder.path(), &[("REDIAL_CONFIG", "nowhere.toml")], &["migrate"]).await;
    assert!(missing.code == 2 && missing.err.contains("settings file nowhere.toml: No such file"), "{}", missing.err);
}

#[tokio::test]
async fn a_missing_setting_is_named_with_every_source() {
    for (arguments, name, form) in [
        (["call", "echo"].as_slice(), "nats_url", "nats://user:password@host:port"),
        (["migrate"].as_slice(), "database_url", "postgres://user:password@host:port/name"),
        (["history"].as_slice(), "database_url", "postgres://user:password@host:port/name"),
    ] {
        let run = super::run_alone(arguments).await;
        let (flag, variable) = (format!("--{}", name.replace('_', "-")), format!("REDIAL_{}", name.to_uppercase()));
        run.failed(2, &[&format!("{name} is not set"), &flag, &variable, "redial.toml", form]);
    }
}

#[tokio::test]
async fn an_invalid_address_is_named_without_its_password() {
    for (arguments, part) in [
        (["call", "echo", "--nats-url", "http://me:secret-canary@host:1"].as_slice(), "http://host:1"),
        (&["migrate", "--database-url", "postgres://me:secret-canary@host:port/x"], "port"),
        (&["call", "echo", "--nats-url", "foo"], "allowed: nats://host:port or tls://host:port"),
        (&["health", "--nats-url", "me:secret-canary@foo"], "NATS URL \"foo\": it does not begin with nats://"),
        (
            &["migrate", "--database-url", "mysql://me:secret-canary@127.0.0.1:1/x"],
            "it begins with mysql://; allowed: postgres://",
        ),
        (
            &["history", "--database-url", "me:secret-canary@foo"],
            "it does not begin with postgres://; allowed: postgres://",
        ),
    ] {
        let run = super::run_alone(arguments).await;
        assert!(run.code == 2 && run.err.contains(part), "{arguments:?}: {} {}", run.code, run.err);
        assert_eq!(run.err.lines().count(), 1, "it is told at once, without a try to connect: {}", run.err);
        assert!(!run.err.contains("secret-canary"), "{}", run.err);
    }
}

/// A configured file wins over the default one; a flag wins over a variable, and that over redial.toml.
#[tokio::test]
async fn an_invalid_file_of_models_or_agents_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (role, name, variable, wrong, code) in [
        ("worker", "models", "REDIAL_MODELS", "[models.small]\nprovider = \"oracle\"\n", "invalid_configuration"),
        ("dispatcher", "agents", "REDIAL_AGENTS", "[agents.clerk]\nmodel = 3\n", "invalid_agent"),
    ] {
        let default = folder.path().join(format!("{name}.toml"));
        fs::write(&default, wrong).unwrap();
        let run = redial(folder.path(), &SERVERS, &[role]).await;
        let named = run.err.contains(&format!("{name}.toml")) && run.err.contains(&format!("[{code}]"));
        assert!(run.code == 2 && named, "{role}: {} {}", run.code, run.err);

        fs::write(folder.path().join("redial.toml"), format!("{name} = \"by-file.toml\"\n")).unwrap();
        let by_file = redial(folder.path(), &SERVERS, &[role]).await;
        let mut environment = SERVERS.to_vec();
        environment.push((variable, "by-variable.toml"));
        let by_variable = redial(folder.path(), &environment, &[role]).await;
        let by_flag = redial(folder.path(), &environment, &[role, &format!("--{name}"), "by-flag.toml"]).await;
        for (run, file) in [(by_file, "by-file"), (by_variable, "by-variable"), (by_flag, "by-flag")] {
            let named = run.err.contains(&format!("{file}.toml")) && run.err.contains("No such file");
            assert!(run.code == 2 && named, "{role}: {} {}", run.code, run.err);
        }
        fs::remove_file(folder.path().join("redial.toml")).unwrap();
        fs::remove_file(default).unwrap();
    }
}

/// A file that only lies in the folder is left alone by a worker that serves no models, and it says so.
#[tokio::test]
async fn a_file_of_models_is_not_the_business_of_a_worker_without_models() {
    let (stack, folder) = (Stack::start().await, tempfile::tempdir().unwrap());
    fs::write(folder.path().join("models.toml"), "[models.small]\nprovider = \"oracle\"\n").unwrap();
    let worker = Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
        command.args(["worker", "--worker-pools", "echo", "--log", "debug"]).current_dir(folder.path());
        command.env("REDIAL_NATS_URL", stack.servers.nats_url());
    });
    worker.line("Worker started").await;
    worker.terminate();
    assert!(worker.ended().await.success(), "{}", worker.output());
    let output = worker.output();
    assert_eq!(output.matches("Left a file of models alone").count(), 1, "{output}");
    assert!(output.contains("it uses no tools.toml and no models.toml") && !output.contains("Found no"), "{output}");
    stack.finish().await;
}

#[tokio::test]
async fn a_database_without_tables_is_an_error() {
    let servers = Servers::start().await;
    redial_store::admin::create_database(servers.postgres_url(), servers.database()).await.unwrap();
    let addresses = ["--nats-url", servers.nats_url(), "--database-url", servers.database_url()];
    let run = super::run_alone(&[&["dispatcher"], addresses.as_slice()].concat()).await;
    assert!(run.code == 2 && run.err.contains("migrations are missing"), "{} {}", run.code, run.err);
    let run = super::run_alone(&[&["migrate", "--json"], addresses.as_slice()].concat()).await;
    assert_eq!((run.code, serde_json::from_str::<Value>(&run.out).unwrap()["applied"].as_u64() > Some(0)), (0, true));
    let run = super::run_alone(&[&["health"], addresses.as_slice()].concat()).await;
    // The servers answer, but nobody serves requests.
    assert_eq!(run.code, 1);
    let found = ["nats: ok\n", "postgres: ok\n", "dispatcher: no dispatcher is running", "`redial dispatcher`"];
    assert!(found.iter().all(|part| run.out.contains(part)), "{}", run.out);
}
