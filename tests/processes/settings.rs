//! A wrong setting stops the program with its name, its value, its place and what is allowed.

use std::fs;

use redial_testkit::{Servers, unique_path};
use serde_json::Value;

use crate::redial;

/// Nothing listens there; what is wrong must be found before anybody connects.
const NATS: &str = "nats://me:secret-canary@127.0.0.1:1";
const DATABASE: &str = "postgres://me:secret-canary@127.0.0.1:1/redial";

/// A wrong value in each place where it can stand: flag, variable, file.
struct Wrong {
    role: &'static str,
    name: &'static str,
    value: &'static str,
    allowed: &'static str,
}

const WRONG: [Wrong; 8] = [
    Wrong { role: "dispatcher", name: "lease", value: "1ms", allowed: "300ms to 1h" },
    Wrong { role: "dispatcher", name: "lease", value: "soon", allowed: "300ms to 1h" },
    Wrong { role: "dispatcher", name: "retention", value: "5s", allowed: "1m and more, such as 30days" },
    Wrong { role: "dispatcher", name: "database_connections", value: "3", allowed: "4 to 1000" },
    Wrong { role: "worker", name: "slots", value: "0", allowed: "1 to 100000" },
    Wrong { role: "worker", name: "slots", value: "-1", allowed: "1 to 100000" },
    Wrong { role: "worker", name: "drain_grace", value: "5", allowed: "a duration such as 30s" },
    Wrong { role: "worker", name: "log_format", value: "xml", allowed: "auto, text, json" },
];

#[tokio::test]
async fn a_wrong_value_is_named_with_its_place_and_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let servers = [("REDIAL_NATS_URL", NATS), ("REDIAL_DATABASE_URL", DATABASE)];
    for Wrong { role, name, value, allowed } in WRONG {
        let flag = format!("--{}={value}", name.replace('_', "-"));
        let variable = format!("REDIAL_{}", name.to_uppercase());
        let mut environment = servers.to_vec();
        let by_flag = redial(folder.path(), &environment, &[role, &flag]).await;
        environment.push((&variable, value));
        let by_variable = redial(folder.path(), &environment, &[role]).await;
        fs::write(folder.path().join("redial.toml"), format!("{name} = {value:?}\n")).unwrap();
        let by_file = redial(folder.path(), &servers, &[role]).await;
        fs::remove_file(folder.path().join("redial.toml")).unwrap();
        let places = [
            (by_flag, format!("flag --{}", name.replace('_', "-"))),
            (by_variable, format!("environment variable {variable}")),
            (by_file, "redial.toml".to_owned()),
        ];
        for (run, place) in places {
            let wanted = format!("error: {name} is {value:?} ({place}); allowed: {allowed} [invalid_configuration]\n");
            assert_eq!((run.code, run.err.as_str(), run.out.as_str()), (2, wanted.as_str(), ""));
        }
    }
}

#[tokio::test]
async fn a_flag_wins_over_a_variable_and_that_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("redial.toml"), "lease = \"1ms\"\n").unwrap();
    let servers = [("REDIAL_NATS_URL", NATS), ("REDIAL_DATABASE_URL", DATABASE)];
    let mut with_variable = servers.to_vec();
    with_variable.push(("REDIAL_LEASE", "2ms"));
    let file = redial(folder.path(), &servers, &["dispatcher"]).await;
    assert!(file.err.contains("lease is \"1ms\""), "{}", file.err);
    let variable = redial(folder.path(), &with_variable, &["dispatcher"]).await;
    assert!(variable.err.contains("lease is \"2ms\""), "{}", variable.err);
    let flag = redial(folder.path(), &with_variable, &["dispatcher", "--lease", "3ms"]).await;
    assert!(flag.err.contains("lease is \"3ms\""), "{}", flag.err);
}

#[tokio::test]
async fn a_settings_file_that_is_none_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.toml");
    let cases = [
        ("leese = \"5s\"\n", "unknown setting \"leese\", did you mean \"lease\"? allowed: nats_url, "),
        ("lease = \n", "TOML parse error at line 1, column"),
        ("[lease]\nvalue = 1\n", "lease is "),
    ];
    for (text, wanted) in cases {
        fs::write(&other, text).unwrap();
        let arguments = ["dispatcher", "--config", other.to_str().unwrap()];
        let servers = [("REDIAL_NATS_URL", NATS), ("REDIAL_DATABASE_URL", DATABASE)];
        let run = redial(folder.path(), &servers, &arguments).await;
        assert!(run.code == 2 && run.err.contains(wanted) && run.err.contains("other.toml"), "{text:?}: {}", run.err);
    }
    let missing = redial(folder.path(), &[("REDIAL_CONFIG", "nowhere.toml")], &["migrate"]).await;
    assert!(missing.code == 2 && missing.err.contains("settings file nowhere.toml: No such file"), "{}", missing.err);
}

#[tokio::test]
async fn what_is_not_set_is_named_with_every_place_for_it() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, name, form) in [
        (["call", "echo"].as_slice(), "nats_url", "nats://user:password@host:port"),
        (["migrate"].as_slice(), "database_url", "postgres://user:password@host:port/name"),
        (["history"].as_slice(), "database_url", "postgres://user:password@host:port/name"),
    ] {
        let run = redial(folder.path(), &[], arguments).await;
        let (flag, variable) = (format!("--{}", name.replace('_', "-")), format!("REDIAL_{}", name.to_uppercase()));
        let parts = [format!("{name} is not set"), flag, variable, "redial.toml".to_owned(), form.to_owned()];
        assert_eq!(run.code, 2, "{}", run.err);
        for part in parts {
            assert!(run.err.contains(&part), "no {part:?} in {}", run.err);
        }
    }
}

#[tokio::test]
async fn a_wrong_address_is_named_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, part) in [
        (["call", "echo", "--nats-url", "http://me:secret-canary@host:1"].as_slice(), "http://host:1"),
        (["migrate", "--database-url", "postgres://me:secret-canary@host:port/x"].as_slice(), "port"),
    ] {
        let run = redial(folder.path(), &[], arguments).await;
        assert!(run.code == 2 && run.err.contains(part), "{arguments:?}: {} {}", run.code, run.err);
        assert!(!run.err.contains("secret-canary"), "{}", run.err);
    }
}

#[tokio::test]
async fn a_wrong_manifest_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let servers = [("REDIAL_NATS_URL", NATS)];
    let run = redial(folder.path(), &servers, &["worker", "--tools", "nowhere.toml"]).await;
    assert!(run.code == 2 && run.err.contains("nowhere.toml") && run.err.contains("[invalid_manifest]"), "{}", run.err);
    fs::write(folder.path().join("tools.toml"), "[[tool]]\nname = \"a\"\neffect = \"harmless\"\n").unwrap();
    let run = redial(folder.path(), &servers, &["worker"]).await;
    assert!(run.code == 2 && run.err.contains("harmless") && run.err.contains("idempotent"), "{}", run.err);
}

#[tokio::test]
async fn a_database_without_tables_is_named() {
    let servers = Servers::start().await;
    redial_store::admin::create_database(servers.postgres_url(), servers.database()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let addresses = ["--nats-url", servers.nats_url(), "--database-url", servers.database_url()];
    let run = redial(folder.path(), &[], &[&["dispatcher"], addresses.as_slice()].concat()).await;
    assert!(run.code == 2 && run.err.contains("migrations are missing"), "{} {}", run.code, run.err);
    let run = redial(folder.path(), &[], &[&["migrate", "--json"], addresses.as_slice()].concat()).await;
    assert_eq!((run.code, serde_json::from_str::<Value>(&run.out).unwrap()["applied"].as_u64() > Some(0)), (0, true));
    let run = redial(folder.path(), &[], &[&["health"], addresses.as_slice()].concat()).await;
    assert_eq!((run.code, run.out.as_str()), (0, "nats: ok\npostgres: ok\n"));
}

#[tokio::test]
async fn errors_are_json_for_machines() {
    let folder = unique_path("folder");
    fs::create_dir(&folder).unwrap();
    let run = redial(&folder, &[], &["call", "echo", "{", "--json"]).await;
    let error: Value = serde_json::from_str(&run.err).unwrap_or_else(|_| panic!("{}", run.err));
    assert_eq!((run.code, error["error"]["code"].as_str()), (2, Some("invalid_message")));
}
