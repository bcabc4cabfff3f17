//! `deploy/kubernetes`: against the schemas of the API, and against what the compose file and Redial itself say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use redial_access::{Access, server_configuration};
use serde_json::Value;

use super::{Compose, ROOT, strings, text, yaml};
use crate::python;

const FOLDER: &str = "deploy/kubernetes";
/// The oldest and the newest version of the API that the manifests are checked against.
const VERSIONS: [&str; 2] = ["1.27", "1.37"];
/// Of a worker, unless it is set.
const DRAIN_GRACE_SECONDS: u64 = 30;

/// The files that the kustomization names.
fn files() -> Vec<String> {
    let kustomization = yaml(&format!("{FOLDER}/kustomization.yaml"));
    strings(&kustomization["resources"]).into_iter().map(|file| format!("{FOLDER}/{file}")).collect()
}

/// Every object, by kind and name.
fn objects() -> BTreeMap<(String, String), Value> {
    let all = files().into_iter().flat_map(|file| {
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(&text(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        objects
    });
    let name = |object: &Value| (string(&object["kind"]), string(&object["metadata"]["name"]));
    all.map(|object| (name(&object), object)).collect()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no string")).to_owned()
}

fn object(kind: &str, name: &str) -> Value {
    objects().remove(&(kind.to_owned(), name.to_owned())).unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// Deployments and Jobs of Redial itself, by the service of the compose file that is the same.
fn ours() -> BTreeMap<String, Value> {
    let run = objects().into_iter().filter(|((kind, _), _)| ["Deployment", "Job"].contains(&kind.as_str()));
    let by_service =
        run.map(|(_, object)| (string(&object["metadata"]["labels"]["app.kubernetes.io/component"]), object));
    by_service.filter(|(service, _)| service != "collector").collect()
}

fn pod(object: &Value) -> &Value {
    &object["spec"]["template"]["spec"]
}

fn container(object: &Value) -> &Value {
    let containers = pod(object)["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1);
    &containers[0]
}

/// The variables of a container: a value, or the Secret and its key.
fn variables(object: &Value) -> BTreeMap<String, &Value> {
    container(object)["env"].as_array().unwrap().iter().map(|one| (string(&one["name"]), one)).collect()
}

#[test]
fn the_schemas_of_the_api_allow_every_object_and_no_misspelt_field() {
    let Some(python) = python::find() else { return };
    let mut command = Command::new(python);
    command.args(["-m", "kubernetes_validate", "--strict"]).args(VERSIONS.iter().flat_map(|version| ["-k", version]));
    let output = command.args(files().iter().map(|file| Path::new(ROOT).join(file))).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // It names each object that it passes, in each version. A kind without a schema is only warned of.
    let count = said.lines().filter(|line| line.starts_with("INFO") && line.contains(" passed for resource ")).count();
    assert!(output.status.success() && count == objects().len() * VERSIONS.len() && count > 40, "{said}");
}

#[test]
fn the_kustomization_names_every_manifest_and_the_images_are_those_of_compose() {
    let found = fs::read_dir(Path::new(ROOT).join(FOLDER)).unwrap();
    let found = found.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let found: BTreeSet<String> = found.map(|name| format!("{FOLDER}/{name}")).collect();
    let others = ["kustomization.yaml", "prometheus-adapter.yaml"].map(|name| format!("{FOLDER}/{name}"));
    assert_eq!(found, files().into_iter().chain(others).collect());

    let compose = Compose::read();
    let image = |service: &str| string(&compose.services()[service]["image"]);
    for (service, object) in ours() {
        assert_eq!(container(&object)["image"], image("dispatcher"), "{service}");
    }
    assert_eq!(container(&object("Deployment", "redial-collector"))["image"], image("collector"));
    let named = yaml(&format!("{FOLDER}/kustomization.yaml"))["images"][0].clone();
    assert_eq!(format!("{}:{}", string(&named["name"]), string(&named["newTag"])), image("dispatcher"));
    let job = format!("redial-migrate-{}", string(&named["newTag"]).replace('.', "-"));
    assert!(objects().contains_key(&("Job".to_owned(), job)), "each version has a Job of its own");
}

#[test]
fn every_service_of_redial_runs_as_in_compose() {
    let (compose, ours) = (Compose::read(), ours());
    let services: BTreeSet<&String> =
        compose.ours().map(|(name, _)| name).filter(|name| name.as_str() != "cli").collect();
    assert_eq!(ours.keys().collect::<BTreeSet<_>>(), services);
    let settings = object("ConfigMap", "redial-settings");
    for (name, object) in &ours {
        let service = &compose.services()[name];
        assert_eq!(container(object)["args"], service["command"], "{name}");
        // What is the same for all, and what the compose file only passes through, is in the settings.
        let shared = |name: &String| name.starts_with("OTEL_") || !settings["data"][name].is_null();
        let own = service["environment"].as_object().unwrap();
        let optional = ["REDIAL_GATEWAY_HOSTS", "REDIAL_COMMAND_SLOTS", "REDIAL_WEBHOOK_ALLOW", "REDIAL_SLOTS"];
        let needed = own.keys().filter(|name| !shared(name) && !optional.contains(&name.as_str()));
        let has = variables(object);
        for variable in needed {
            let value = has.get(variable).unwrap_or_else(|| panic!("{name} lacks {variable}"));
            let secret = ["_URL", "_KEY"].iter().any(|end| variable.ends_with(end));
            assert_eq!(secret, value["value"].is_null(), "{name}: {variable}");
            if ["INBOX_PREFIX", "WORKER_NAME", "WORKER_POOLS"].iter().any(|end| variable.ends_with(end)) {
                assert_eq!(value["value"], own[variable], "{name}: {variable}");
            }
        }
        let grace = pod(object)["terminationGracePeriodSeconds"].as_u64().unwrap_or(30);
        let of_compose = service["stop_grace_period"].as_str().map_or(0, seconds);
        assert!(grace >= of_compose, "{name}: {grace} s, in compose {of_compose} s");
        if has.contains_key("REDIAL_WORKER_NAME") {
            let drain =
                has.get("REDIAL_DRAIN_GRACE").map_or(DRAIN_GRACE_SECONDS, |one| seconds(&string(&one["value"])));
            assert!(grace > drain, "{name}: it drains for {drain} s, and is killed after {grace} s");
        }
    }
}

fn seconds(text: &str) -> u64 {
    text.strip_suffix('s').unwrap().parse().unwrap()
}

#[test]
fn every_file_that_a_process_reads_is_in_the_map_that_it_mounts() {
    let mut read = 0;
    for (name, object) in ours() {
        let mounts = container(&object)["volumeMounts"].as_array().unwrap();
        for (variable, value) in variables(&object) {
            let Some(path) = value["value"].as_str().filter(|path| path.starts_with("/etc/")) else { continue };
            let (folder, file) = path.rsplit_once('/').unwrap();
            let mount = mounts.iter().find(|mount| mount["mountPath"] == folder);
            let volume = &mount.unwrap_or_else(|| panic!("{name}: {variable}"))["name"];
            let volumes = pod(&object)["volumes"].as_array().unwrap();
            let map = volumes.iter().find(|one| one["name"] == *volume).unwrap()["configMap"]["name"].clone();
            assert!(self::object("ConfigMap", &string(&map))["data"][file].is_string(), "{name}: {variable}");
            read += 1;
        }
    }
    assert_eq!(read, 5);
    // The same rights as in compose, so nats.conf and users.conf can be used as they are.
    let access = string(&object("ConfigMap", "redial-access")["data"]["access.toml"]);
    let access = Access::read("access.toml", &access).unwrap();
    assert!(server_configuration(&access, "access.toml") == text("deploy/users.conf"));
}

#[test]
fn probes_ask_what_is_there() {
    let api: Value = serde_json::from_str(&text("services/gateway/openapi.json")).unwrap();
    for (name, object) in ours().into_iter().filter(|(name, _)| name != "migrate") {
        let container = container(&object);
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
            let probed = &container[probe];
            if name == "gateway" {
                assert!(api["paths"][string(&probed["httpGet"]["path"])]["get"].is_object(), "{name}: {probed}");
                assert_eq!(probed["httpGet"]["port"], container["ports"][0]["name"], "{name}");
            } else if probe == "livenessProbe" {
                // `redial health` asks servers and not the process: their outage would restart all.
                assert!(probed.is_null(), "{name}");
            } else {
                let command = &probed["exec"]["command"];
                assert_eq!(*command, serde_json::json!(["redial", "health"]), "{name}");
                // The command itself gives up on each server after 5 s.
                assert!(probed["timeoutSeconds"].as_u64().unwrap() >= 10, "{name}");
            }
        }
    }
    let gateway = object("Deployment", "redial-gateway");
    let port = container(&gateway)["ports"][0]["containerPort"].clone();
    let listen = strings(&container(&gateway)["args"]).pop().unwrap().to_owned();
    assert_eq!(listen, format!("0.0.0.0:{port}"));
}

#[test]
fn pods_have_no_rights_and_are_found_by_what_selects_them() {
    let all = objects();
    let pods = all.values().filter(|object| !object["spec"]["template"].is_null());
    let mut labels = Vec::new();
    for object in pods {
        let (pod, container) = (pod(object), container(object));
        let name = string(&object["metadata"]["name"]);
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{name}");
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", "{name}");
        assert_eq!(pod["automountServiceAccountToken"], false, "{name}");
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true, "{name}");
        assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false, "{name}");
        assert_eq!(strings(&container["securityContext"]["capabilities"]["drop"]), ["ALL"], "{name}");
        assert!(container["resources"]["limits"]["memory"].is_string(), "{name}");
        labels.push((name, object["spec"]["template"]["metadata"]["labels"].clone()));
    }
    let selected = |selector: &Value| -> Vec<&str> {
        let wanted = selector.as_object().unwrap();
        let fits = |labels: &Value| wanted.iter().all(|(key, value)| labels[key] == *value);
        labels.iter().filter(|(_, labels)| fits(labels)).map(|(name, _)| name.as_str()).collect()
    };
    for ((kind, name), object) in &all {
        let selector = match kind.as_str() {
            "Deployment" | "PodDisruptionBudget" => &object["spec"]["selector"]["matchLabels"],
            "Service" => &object["spec"]["selector"],
            _ => continue,
        };
        assert_eq!(selected(selector), [name], "{kind} {name}");
    }
    for name in ["dispatcher", "gateway", "worker", "models", "webhooks"] {
        assert!(all.contains_key(&("PodDisruptionBudget".to_owned(), format!("redial-{name}"))), "{name}");
    }
}

#[test]
fn workers_are_scaled_on_a_metric_that_redial_exports() {
    let scaler = object("HorizontalPodAutoscaler", "redial-worker");
    let target = object("Deployment", &string(&scaler["spec"]["scaleTargetRef"]["name"]));
    assert!(target["spec"]["replicas"].is_null(), "each `kubectl apply` would undo what the autoscaler did");
    let pools = string(&variables(&target)["REDIAL_WORKER_POOLS"]["value"]);
    // As a collector writes names for Prometheus: dots become underscores, and a unit in braces is left out.
    let (name, label) = ("redial.queue.waiting", "redial.pool");
    let waiting = redial_telemetry::INSTRUMENTS.iter().find(|one| one.name == name).unwrap();
    assert_eq!((waiting.kind, waiting.unit, waiting.attributes), ("gauge", "{call}", &[label][..]));
    let mut pools_of_metrics = BTreeSet::new();
    for metric in scaler["spec"]["metrics"].as_array().unwrap() {
        assert_eq!(metric["external"]["metric"]["name"], name.replace('.', "_"));
        let selector = metric["external"]["metric"]["selector"]["matchLabels"].as_object().unwrap();
        assert_eq!(selector.len(), 1);
        pools_of_metrics.insert(string(&selector[&label.replace('.', "_")]));
    }
    // Nobody's load is calls of `echo`.
    assert_eq!(pools_of_metrics, pools.split(',').filter(|pool| *pool != "echo").map(str::to_owned).collect());
}
