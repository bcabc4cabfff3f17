//! `docker-compose.yml`, the manifests for Kubernetes and the files that they use, as far as they can be checked without an engine or a
//! cluster. `./dev compose` runs the former.

mod kubernetes;

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use redial_access::{Access, Password, server_configuration};
use redial_proto::WorkerIdentity;
use serde_json::{Map, Value};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&text(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

struct Compose(Value);

impl Compose {
    fn read() -> Self {
        Self(yaml("docker-compose.yml"))
    }

    fn services(&self) -> &Map<String, Value> {
        self.0["services"].as_object().unwrap()
    }

    /// Services that run Redial's image.
    fn ours(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.services().iter().filter(|(_, service)| !service["build"].is_null())
    }
}

/// The strings of a list; none if there is no list.
fn strings(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().map(|item| item.as_str().unwrap()).collect()
}

/// Names in `${NAME…}`.
fn variables(text: &str) -> BTreeSet<String> {
    let name = |rest: &str| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap().to_owned();
    text.split("${").skip(1).map(name).collect()
}

#[test]
fn only_the_documented_ports_are_published_and_only_on_this_machine() {
    let compose = Compose::read();
    let ports: Vec<_> = compose.services().values().flat_map(|service| strings(&service["ports"])).collect();
    let own = ["127.0.0.1:${REDIAL_NATS_PORT:-14222}:4222", "127.0.0.1:${REDIAL_HTTP_PORT:-8080}:8080"];
    assert_eq!(ports, own);
    let documented = text("docs/OPERATIONS.md");
    assert!(documented.contains("127.0.0.1:14222") && documented.contains("127.0.0.1:8080"));
}

#[test]
fn our_services_run_one_image_and_commands_that_exist() {
    let compose = Compose::read();
    let image = &compose.services()["dispatcher"]["image"];
    let mut commands = BTreeSet::from(["health"]);
    for (name, service) in compose.ours() {
        assert_eq!(&service["image"], image, "{name}");
        commands.extend(strings(&service["command"]).first());
        let check = strings(&service["healthcheck"]["test"]);
        let is_check = match name.as_str() {
            "gateway" => check == ["CMD", "redial", "health", "--gateway", "http://127.0.0.1:8080"],
            _ => check == ["CMD", "redial", "health"],
        };
        assert!(service["restart"] == "no" || is_check, "{name}: {check:?}");
    }
    assert_eq!(commands, BTreeSet::from(["dispatcher", "gateway", "health", "migrate", "worker"]));
    for command in commands {
        let help = Command::new(env!("CARGO_BIN_EXE_redial")).args([command, "--help"]).output().unwrap();
        assert!(help.status.success(), "redial {command}: {}", String::from_utf8_lossy(&help.stderr));
    }
    let dockerfile = text("deploy/Dockerfile");
    for line in [r#"ENTRYPOINT ["tini", "-s", "--", "redial"]"#, "USER 10001:10001"] {
        assert!(dockerfile.lines().any(|one| one == line), "{line}: {dockerfile}");
    }
}

/// What is said if a password is not set.
const REMEDY: &str = "is not set; run: deploy/make-env > .env";

fn needed(variable: &str) -> String {
    format!("${{{variable}:?{REMEDY}}}")
}

#[test]
fn each_service_has_its_own_nats_user_inbox_and_rights() {
    let (compose, access) = (Compose::read(), text("deploy/access.toml"));
    let access = Access::read("deploy/access.toml", &access).unwrap();
    assert_eq!(access.warnings, Vec::<String>::new());
    let accounts = access.accounts();
    let users = [
        ("dispatcher", "dispatcher", "_INBOX_dispatcher"),
        ("gateway", "gateway", "_INBOX_gateway"),
        ("worker", "worker.tools", "_INBOX_worker.tools"),
        ("models", "worker.models", "_INBOX_worker.models"),
        ("webhooks", "worker.webhooks", "_INBOX_worker.webhooks"),
        ("cli", "default.cli", "_INBOX_client.default.cli"),
    ];
    for (service, user, inbox) in users {
        let environment = &compose.services()[service]["environment"];
        assert_eq!(environment["REDIAL_NATS_INBOX_PREFIX"], inbox, "{service}");
        let account = accounts.iter().find(|account| account.user == user).unwrap();
        assert!(account.subscribe.contains(&format!("{inbox}.>")), "{service}");
        let Password::Variable(password) = &account.password else { panic!("{user}: {:?}", account.password) };
        let url = environment["REDIAL_NATS_URL"].as_str().unwrap();
        assert_eq!(url, format!("nats://{user}:{}@nats:4222", needed(password)));
    }
    for account in accounts {
        let Password::Variable(password) = account.password else { panic!("{}: {:?}", account.user, account.password) };
        let given = compose.services()["nats"]["environment"][&password].as_str().unwrap();
        assert_eq!(given, format!("\"{}\"", needed(&password)), "nats-server wants quotes around it");
    }
    for (service, worker) in [("worker", "tools"), ("models", "models"), ("webhooks", "webhooks")] {
        let environment = &compose.services()[service]["environment"];
        assert_eq!(environment["REDIAL_WORKER_NAME"], worker);
        let pools: Vec<&str> =
            access.workers[&WorkerIdentity::of_name(worker)].pools.iter().map(String::as_str).collect();
        assert_eq!(environment["REDIAL_WORKER_POOLS"], pools.join(","));
    }
    // Where tools are that name no pool, and `echo`.
    for pool in ["default", "commands", "echo"] {
        assert!(access.workers[&WorkerIdentity::of_name("tools")].pools.contains(pool), "{pool}");
    }
}

#[test]
fn the_users_of_nats_are_what_the_access_file_says() {
    let access = Access::read("deploy/access.toml", &text("deploy/access.toml")).unwrap();
    let written = server_configuration(&access, "access.toml");
    assert!(
        text("deploy/users.conf") == written,
        "run redial nats-config --access deploy/access.toml --output deploy/users.conf"
    );
    assert!(text("deploy/nats.conf").contains("\ninclude \"users.conf\"\n"));
}

#[test]
fn nothing_has_a_default_password() {
    let compose = text("docker-compose.yml");
    let used = compose.split("${").skip(1).map(|rest| rest.split('}').next().unwrap());
    let passwords: Vec<&str> = used.filter(|variable| variable.contains("_PASSWORD")).collect();
    assert!(passwords.len() > 15, "{passwords:?}");
    for password in passwords {
        assert!(password.ends_with(&format!("_PASSWORD:?{REMEDY}")), "{password}");
    }
}

#[test]
fn each_service_has_the_database_role_that_it_needs() {
    let compose = Compose::read();
    for (service, role) in
        [("migrate", "owner"), ("dispatcher", "dispatcher"), ("cli", "reader"), ("gateway", "gateway")]
    {
        let url = compose.services()[service]["environment"]["REDIAL_DATABASE_URL"].as_str().unwrap();
        let password = needed(&format!("REDIAL_POSTGRES_{}_PASSWORD", role.to_uppercase()));
        assert_eq!(url, format!("postgres://redial_{role}:{password}@postgres:5432/redial"));
        assert!(text("deploy/roles.sql").contains(&format!("'redial_{role}'")), "{role}");
        assert!(text("deploy/roles.sh").contains(&format!("ALTER ROLE redial_{role} PASSWORD")), "{role}");
    }
}

#[test]
fn every_service_is_bounded_and_gains_no_rights() {
    for (name, service) in Compose::read().services() {
        assert_eq!(strings(&service["security_opt"]), ["no-new-privileges:true"], "{name}");
        assert!(service["pids_limit"].as_u64().is_some_and(|most| most <= 512), "{name}");
        assert!(service["mem_limit"].is_string(), "{name}");
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(strings(&service["cap_drop"]), ["ALL"], "{name}");
    }
}

/// Every image of somebody else's, wherever it is named: a tag alone is other bytes tomorrow.
#[test]
fn images_are_named_by_digest() {
    let files = ["docker-compose.yml", "deploy/Dockerfile", "deploy/kubernetes/collector.yaml"].map(text).concat();
    let named = |line: &str| {
        let line = line.trim();
        ["image: ", "ARG RUST=", "ARG BASE="].iter().find_map(|before| line.strip_prefix(before)).map(str::to_owned)
    };
    let others: Vec<String> = files.lines().filter_map(named).filter(|image| image != "redial:0.1.0").collect();
    assert_eq!(others.len(), 6, "{others:?}");
    for image in others {
        let digest = image.split_once("@sha256:").map(|(_, digest)| digest).unwrap_or_default();
        assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{image}");
    }
}

#[test]
fn a_new_environment_has_a_password_for_everything_and_keeps_what_is_there() {
    let make = |old: &[&str]| {
        let output = Command::new(Path::new(ROOT).join("deploy/make-env")).args(old).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let passwords = |text: &str| -> Vec<(String, String)> {
        let lines = text
            .lines()
            .filter_map(|line| line.split_once('='))
            .filter(|(name, _)| name.ends_with("_PASSWORD") || *name == "REDIAL_WEBHOOK_KEY");
        lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let first = make(&[]);
    let created = passwords(&first);
    let values: BTreeSet<&String> = created.iter().map(|(_, value)| value).collect();
    assert!(created.len() == 13 && values.len() == created.len(), "{created:?}");
    assert!(
        values.iter().all(|value| value.len() == 48 && value.chars().all(|c| c.is_ascii_alphanumeric())),
        "{values:?}"
    );
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join(".env");
    let (kept, _) = first.split_once("REDIAL_NATS_CLI_PASSWORD=").unwrap();
    fs::write(&old, format!("{kept}\nREDIAL_SLOTS=3\n")).unwrap();
    let second = make(&[old.to_str().unwrap()]);
    let again = passwords(&second);
    assert_eq!(again[..8], created[..8]);
    assert!(
        again[8..].iter().zip(&created[8..]).all(|(new, old)| new.0 == old.0 && new.1 != old.1 && new.1.len() == 48)
    );
    assert!(second.contains("\nREDIAL_SLOTS=3\n"), "{second}");
}

#[test]
fn a_worker_cannot_reach_the_database_or_a_dispatcher() {
    let compose = Compose::read();
    for name in ["worker", "models", "webhooks"] {
        let worker = &compose.services()[name];
        assert!(worker["environment"]["REDIAL_DATABASE_URL"].is_null(), "{name}");
        for other in ["postgres", "migrate", "dispatcher", "gateway", "cli"] {
            let others = strings(&compose.services()[other]["networks"]);
            let shared = strings(&worker["networks"]).into_iter().filter(|net| others.contains(net));
            assert_eq!(shared.collect::<Vec<_>>(), Vec::<&str>::new(), "{name} {other}");
        }
    }
    // Only workers have a network to the outside, each service one of its own.
    let outside = |net: &&str| compose.0["networks"][net]["internal"] != true && !["host", "http"].contains(net);
    for (name, service) in compose.services() {
        let found: Vec<&str> = strings(&service["networks"]).into_iter().filter(outside).collect();
        let expected: &[&str] = match name.as_str() {
            "worker" => &["tools"],
            "models" => &["providers"],
            "webhooks" => &["receivers"],
            _ => &[],
        };
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn only_those_who_use_a_key_have_it_and_model_workers_have_no_tools() {
    let compose = Compose::read();
    for (name, service) in compose.services() {
        let environment = service["environment"].as_object().into_iter().flatten();
        let keys = environment.filter(|(variable, _)| variable.ends_with("_API_KEY")).count();
        assert_eq!(keys > 0, name == "models", "{name} has {keys} keys");
        assert_eq!(!service["environment"]["REDIAL_MODELS"].is_null(), name == "models", "{name}");
        let of_webhooks = &service["environment"]["REDIAL_WEBHOOK_KEY"];
        if ["dispatcher", "webhooks"].contains(&name.as_str()) {
            assert_eq!(*of_webhooks, needed("REDIAL_WEBHOOK_KEY"), "{name}");
        } else {
            assert!(of_webhooks.is_null(), "{name}");
        }
    }
    for name in ["models", "webhooks"] {
        assert!(compose.services()[name]["environment"]["REDIAL_TOOLS"].is_null(), "{name}");
    }
}

#[test]
fn the_example_declares_exactly_the_variables() {
    let own = |name: &String| name.starts_with("REDIAL_");
    let used: BTreeSet<_> = variables(&text("docker-compose.yml")).into_iter().filter(own).collect();
    let example = text("deploy/env.example");
    let lines = example.lines().map(|line| line.trim_start_matches('#'));
    let listed: BTreeSet<_> =
        lines.filter_map(|line| line.split_once('=')).map(|(name, _)| name.to_owned()).filter(own).collect();
    assert_eq!(used, listed);
}
