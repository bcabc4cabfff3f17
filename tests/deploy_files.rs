//! `docker-compose.yml` and the files that it uses, as far as they can be checked without a Docker engine.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

use std::{collections::BTreeSet, fs, path::Path, process::Command};

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

fn is_one_shot(service: &Value) -> bool {
    service["restart"] == "no"
}

/// `${NAME:-default}` as Compose reads it when nothing is set.
fn with_defaults(text: &str) -> String {
    let Some((before, rest)) = text.split_once("${") else { return text.to_owned() };
    let (variable, after) = rest.split_once('}').unwrap();
    let default = variable.split_once(":-").map_or("", |(_, default)| default);
    format!("{before}{default}{}", with_defaults(after))
}

/// Names in `${NAME…}`.
fn variables(text: &str) -> BTreeSet<String> {
    let name = |rest: &str| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap().to_owned();
    text.split("${").skip(1).map(name).collect()
}

#[test]
fn every_file_exists() {
    let compose = Compose::read();
    let mut seen = 0;
    for (name, service) in compose.services() {
        let mounts =
            strings(&service["volumes"]).into_iter().map(with_defaults).filter(|mount| mount.starts_with("./"));
        let mounted = mounts.map(|mount| mount.split(':').next().unwrap().to_owned());
        let dockerfile = service["build"]["dockerfile"].as_str().map(str::to_owned);
        for file in mounted.chain(dockerfile) {
            assert!(Path::new(ROOT).join(&file).is_file(), "{name}: {file}");
            seen += 1;
        }
    }
    assert!(seen > 5, "only {seen} files were looked at");
}

#[test]
fn every_service_has_a_health_check_or_ends_by_itself() {
    for (name, service) in Compose::read().services() {
        let watched = !strings(&service["healthcheck"]["test"]).is_empty();
        let cannot = service["healthcheck"]["disable"] == true && !strings(&service["profiles"]).is_empty();
        assert!(watched || is_one_shot(service) || cannot, "{name} has no health check");
        assert!(service["image"].is_string(), "{name} has no image");
    }
}

#[test]
fn every_condition_of_a_service_can_become_true() {
    let compose = Compose::read();
    for (name, service) in compose.services() {
        for (other, wait) in service["depends_on"].as_object().into_iter().flatten() {
            let other = compose.services().get(other).unwrap_or_else(|| panic!("{name} waits for {other}"));
            match wait["condition"].as_str().unwrap() {
                "service_healthy" => assert!(other["healthcheck"]["test"].is_array(), "{name}"),
                "service_completed_successfully" => assert!(is_one_shot(other), "{name}"),
                condition => panic!("{name}: {condition}"),
            }
        }
    }
}

#[test]
fn networks_and_volumes_are_declared() {
    let compose = Compose::read();
    for (name, service) in compose.services() {
        let networks = strings(&service["networks"]);
        assert!(!networks.is_empty() && networks.iter().all(|net| compose.0["networks"][net].is_object()), "{name}");
        let named = strings(&service["volumes"]).into_iter().map(with_defaults).filter(|mount| !mount.starts_with('.'));
        for volume in named {
            let volume = volume.split(':').next().unwrap();
            assert!(compose.0["volumes"][volume].is_object(), "{name}: {volume}");
        }
    }
}

#[test]
fn only_the_documented_port_is_published_and_only_on_this_machine() {
    let compose = Compose::read();
    let ports = compose.services().values().flat_map(|service| strings(&service["ports"]));
    let ports: Vec<_> = ports.map(with_defaults).collect();
    assert_eq!(ports, ["127.0.0.1:14222:4222"]);
    assert!(text("docs/OPERATIONS.md").contains("127.0.0.1:14222"));
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
        assert!(is_one_shot(service) || check == ["CMD", "redial", "health"], "{name}: {check:?}");
    }
    assert_eq!(commands, BTreeSet::from(["dispatcher", "health", "migrate", "worker"]));
    for command in commands {
        let help = Command::new(env!("CARGO_BIN_EXE_redial")).args([command, "--help"]).output().unwrap();
        assert!(help.status.success(), "redial {command}: {}", String::from_utf8_lossy(&help.stderr));
    }
    let dockerfile = text("deploy/Dockerfile");
    assert!(dockerfile.contains(r#"ENTRYPOINT ["redial"]"#) && dockerfile.contains("\nUSER 10001"), "{dockerfile}");
}

#[test]
fn each_role_has_its_own_nats_user_and_inbox() {
    let (compose, nats) = (Compose::read(), text("deploy/nats.conf"));
    let roles = [("dispatcher", "dispatcher"), ("worker", "worker"), ("models", "worker"), ("cli", "client")];
    for (service, role) in roles {
        let environment = &compose.services()[service]["environment"];
        let inbox = format!("_INBOX_{role}");
        assert_eq!(environment["REDIAL_NATS_INBOX_PREFIX"], inbox, "{service}");
        let password = format!("REDIAL_NATS_{}_PASSWORD", role.to_uppercase());
        let url = environment["REDIAL_NATS_URL"].as_str().unwrap();
        assert_eq!(url, format!("nats://{role}:${{{password}:-change-me}}@nats:4222"));
        assert!(nats.contains(&format!("user: {role}\n")) && nats.contains(&format!("\"{inbox}.>\"")), "{role}");
        assert!(nats.contains(&format!("password: ${password}\n")), "{password}");
        let given = compose.services()["nats"]["environment"][&password].as_str().unwrap();
        assert_eq!(given, format!("\"${{{password}:-change-me}}\""), "nats-server wants quotes around it");
    }
}

#[test]
fn a_worker_cannot_reach_the_database() {
    let compose = Compose::read();
    let postgres = &compose.services()["postgres"];
    for name in ["worker", "models"] {
        let worker = &compose.services()[name];
        assert!(worker["environment"]["REDIAL_DATABASE_URL"].is_null(), "{name}");
        let shared =
            strings(&worker["networks"]).into_iter().filter(|net| strings(&postgres["networks"]).contains(net));
        assert_eq!(shared.collect::<Vec<_>>(), Vec::<&str>::new(), "{name}");
    }
}

#[test]
fn only_model_workers_have_keys_of_providers_and_they_have_no_tools() {
    let compose = Compose::read();
    for (name, service) in compose.services() {
        let environment = service["environment"].as_object().into_iter().flatten();
        let keys = environment.filter(|(variable, _)| variable.ends_with("_API_KEY")).count();
        assert_eq!(keys > 0, name == "models", "{name} has {keys} keys");
        assert_eq!(!service["environment"]["REDIAL_MODELS"].is_null(), name == "models", "{name}");
    }
    assert!(compose.services()["models"]["environment"]["REDIAL_TOOLS"].is_null());
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

#[test]
fn the_collector_uses_what_it_declares() {
    let collector = yaml("deploy/collector.yaml");
    let pipelines = collector["service"]["pipelines"].as_object().unwrap();
    assert_eq!(pipelines.keys().collect::<Vec<_>>(), ["traces", "metrics"]);
    for pipeline in pipelines.values() {
        for part in ["receivers", "processors", "exporters"] {
            for name in strings(&pipeline[part]) {
                assert!(collector[part][name].is_object(), "{part}: {name}");
            }
        }
    }
    assert_eq!(collector["receivers"]["otlp"]["protocols"]["http"]["endpoint"], "0.0.0.0:4318");
}
