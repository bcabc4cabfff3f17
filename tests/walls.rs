//! The walls between crates (docs/ARCHITECTURE.md), checked over what cargo itself says.
//!
//! A wall is about what is shipped: normal and build dependencies. Dev-dependencies may look over a wall, because a
//! test of the queue needs a whole stack; one wall says where even they end.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::{Value, json};

/// A crate with the names of what it depends on, and of its features.
#[derive(Default)]
struct Crate {
    features: BTreeSet<String>,
    normal: BTreeSet<String>,
    dev: BTreeSet<String>,
}

/// The workspace's crates, and the normal dependencies of every crate that is built.
struct Workspace {
    crates: BTreeMap<String, Crate>,
    tree: BTreeMap<String, BTreeSet<String>>,
}

/// `cargo metadata`'s answer, with every crate that is built.
fn metadata() -> Value {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--manifest-path", manifest])
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

impl Workspace {
    fn read(metadata: &Value) -> Self {
        let members: BTreeSet<&str> = list(&metadata["workspace_members"]).iter().map(text).collect();
        let packages = list(&metadata["packages"]);
        let names: BTreeMap<&str, &str> = packages.iter().map(|p| (text(&p["id"]), text(&p["name"]))).collect();
        let own = packages.iter().filter(|package| members.contains(text(&package["id"])));
        let crates = own.map(|package| (text(&package["name"]).to_owned(), Crate::read(package))).collect();
        let tree = list(&metadata["resolve"]["nodes"]).iter();
        let tree = tree.map(|node| (names[text(&node["id"])].to_owned(), built_with(node, &names)));
        let mut merged: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, dependencies) in tree {
            // Two versions of one crate count as one.
            merged.entry(name).or_default().extend(dependencies);
        }
        Self { crates, tree: merged }
    }

    /// Everything that is built for a crate, itself left out.
    fn below<'a>(&'a self, name: &str) -> BTreeSet<&'a str> {
        let (mut found, mut open) = (BTreeSet::new(), vec![name.to_owned()]);
        while let Some(name) = open.pop() {
            let dependencies = self.tree.get(&name).into_iter().flatten();
            open.extend(dependencies.filter(|dependency| found.insert(dependency.as_str())).cloned());
        }
        found
    }
}

impl Crate {
    fn read(package: &Value) -> Self {
        let features = package["features"].as_object().into_iter().flatten();
        let mut found = Self { features: features.map(|(name, _)| name.clone()).collect(), ..Self::default() };
        for dependency in list(&package["dependencies"]) {
            let names = if dependency["kind"] == "dev" { &mut found.dev } else { &mut found.normal };
            names.insert(text(&dependency["name"]).to_owned());
        }
        found
    }
}

/// The dependencies of a built crate that are not for its tests only.
fn built_with(node: &Value, names: &BTreeMap<&str, &str>) -> BTreeSet<String> {
    let is_built = |dependency: &&Value| list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
    list(&node["deps"]).iter().filter(is_built).map(|dep| names[text(&dep["pkg"])].to_owned()).collect()
}

/// What must not be in the tree of a crate that only decides: nothing async, no server, no network.
const OUTSIDE_WORLD: [&str; 6] = ["tokio", "async-nats", "sqlx", "sqlx-core", "reqwest", "hyper"];

/// The crates of the workspace that a crate may be built with; what stands in no line may use what it likes.
const MAY_USE: [(&str, &[&str]); 12] = [
    ("redial-proto", &[]),
    ("redial-engine", &["redial-proto"]),
    ("redial-arguments", &["redial-proto"]),
    ("redial-queue", &["redial-proto"]),
    ("redial-store", &["redial-proto"]),
    ("redial-tools", &["redial-proto"]),
    ("redial-llm", &["redial-proto"]),
    ("redial-telemetry", &[]),
    ("redial-servers", &[]),
    ("redial-simulation", &["redial-proto", "redial-engine"]),
    ("redial-worker", &["redial-proto", "redial-queue", "redial-tools", "redial-llm", "redial-telemetry"]),
    (
        "redial-dispatcher",
        &["redial-proto", "redial-engine", "redial-arguments", "redial-store", "redial-queue", "redial-telemetry"],
    ),
];

/// Who may import what speaks to the outside. The testkit is never shipped; its checker reads the tables by itself.
const ONLY: [(&str, &[&str]); 3] = [
    ("sqlx", &["redial-store", "redial-testkit", "redial-bench"]),
    ("async-nats", &["redial-queue", "redial-bench"]),
    ("reqwest", &["redial-tools", "redial-llm", "redial-telemetry"]),
];

/// Crates that must not know Postgres at all, by whatever way.
const NO_DATABASE: [&str; 4] = ["redial-worker", "redial-queue", "redial-tools", "redial-llm"];

/// The one program that is made of the testkit. Nothing is made of it.
const TESTER: &str = "redial-chaos";

/// Every wall that is broken, by name.
fn broken(workspace: &Workspace) -> Vec<String> {
    let mut broken = Vec::new();
    let own = |name: &&String| workspace.crates.contains_key(*name);
    for (name, allowed) in MAY_USE {
        let Some(found) = workspace.crates.get(name) else {
            broken.push(format!("{name} is behind a wall and is not in the workspace: did it change its name?"));
            continue;
        };
        for other in found.normal.iter().filter(own).filter(|other| !allowed.contains(&other.as_str())) {
            broken.push(format!("{name} must not use {other}; allowed of our own: {allowed:?}"));
        }
    }
    for (library, allowed) in ONLY {
        let users = workspace.crates.iter().filter(|(_, found)| found.normal.contains(library));
        for (name, _) in users.filter(|(name, _)| !allowed.contains(&name.as_str())) {
            broken.push(format!("only {allowed:?} may import {library}; {name} does"));
        }
    }
    for name in ["redial-proto", "redial-engine", "redial-arguments"] {
        for library in OUTSIDE_WORLD.iter().filter(|library| workspace.below(name).contains(**library)) {
            broken.push(format!("{name} only decides: {library} must not be in its tree"));
        }
    }
    for name in NO_DATABASE.iter().filter(|name| workspace.below(name).contains("sqlx")) {
        broken.push(format!("{name} must not know Postgres: sqlx is in its tree"));
    }
    for (name, found) in &workspace.crates {
        if let Some(feature) = found.features.first() {
            broken.push(format!("what is tested is what is shipped: {name} must not have a feature {feature:?}"));
        }
        if found.normal.contains("redial-testkit") && name != TESTER {
            broken.push(format!("redial-testkit is for tests: {name} ships it"));
        }
        if found.normal.contains(TESTER) {
            broken.push(format!("{TESTER} is a program that tests: {name} ships it"));
        }
        if ["redial-proto", "redial-engine", "redial-arguments"].contains(&name.as_str())
            && found.dev.contains("redial-testkit")
        {
            broken.push(format!("{name} only decides: its tests need no servers"));
        }
    }
    broken
}

#[test]
fn every_wall_stands() {
    let broken = broken(&Workspace::read(&metadata()));
    assert!(broken.is_empty(), "{} walls are broken:\n{}", broken.len(), broken.join("\n"));
}

/// Adds a dependency to what cargo said, as a careless line in a Cargo.toml would.
fn with_dependency(metadata: &Value, name: &str, dependency: &str, kind: &Value) -> Value {
    let mut doctored = metadata.clone();
    let packages = list(&metadata["packages"]);
    let id = |name: &str| packages.iter().find(|package| package["name"] == name).unwrap()["id"].clone();
    let packages = doctored["packages"].as_array_mut().unwrap();
    let package = packages.iter_mut().find(|package| package["name"] == name).unwrap();
    package["dependencies"].as_array_mut().unwrap().push(json!({"name": dependency, "kind": kind}));
    let nodes = doctored["resolve"]["nodes"].as_array_mut().unwrap();
    let node = nodes.iter_mut().find(|node| node["id"] == id(name)).unwrap();
    let entry = json!({"name": dependency, "pkg": id(dependency), "dep_kinds": [{"kind": kind, "target": null}]});
    node["deps"].as_array_mut().unwrap().push(entry);
    doctored
}

#[test]
fn every_wall_that_is_broken_is_named() {
    let metadata = metadata();
    let cases = [
        ("redial-proto", "redial-engine", "redial-proto must not use redial-engine"),
        ("redial-engine", "redial-store", "redial-engine must not use redial-store"),
        ("redial-arguments", "redial-engine", "redial-arguments must not use redial-engine"),
        ("redial-engine", "tokio", "redial-engine only decides: tokio must not be in its tree"),
        ("redial-arguments", "reqwest", "redial-arguments only decides: reqwest must not be in its tree"),
        ("redial-proto", "sqlx", "redial-proto only decides: sqlx must not be in its tree"),
        ("redial-queue", "redial-store", "redial-queue must not use redial-store"),
        ("redial-store", "redial-queue", "redial-store must not use redial-queue"),
        ("redial-tools", "redial-queue", "redial-tools must not use redial-queue"),
        ("redial-llm", "redial-tools", "redial-llm must not use redial-tools"),
        ("redial-llm", "redial-engine", "redial-llm must not use redial-engine"),
        ("redial-llm", "redial-store", "redial-llm must not know Postgres"),
        ("redial-tools", "redial-llm", "redial-tools must not use redial-llm"),
        ("redial-queue", "redial-llm", "redial-queue must not use redial-llm"),
        ("redial-engine", "redial-llm", "redial-engine must not use redial-llm"),
        ("redial-dispatcher", "redial-llm", "redial-dispatcher must not use redial-llm"),
        ("redial-dispatcher", "redial-tools", "redial-dispatcher must not use redial-tools"),
        ("redial-worker", "redial-store", "redial-worker must not use redial-store"),
        ("redial-worker", "redial-engine", "redial-worker must not use redial-engine"),
        ("redial-worker", "redial-dispatcher", "redial-worker must not use redial-dispatcher"),
        ("redial-worker", "redial-dispatcher", "redial-worker must not know Postgres"),
        ("redial-dispatcher", "sqlx", "may import sqlx; redial-dispatcher does"),
        ("redial-dispatcher", "async-nats", "may import async-nats; redial-dispatcher does"),
        ("redial-worker", "reqwest", "may import reqwest; redial-worker does"),
        ("redial-dispatcher", "redial-testkit", "redial-testkit is for tests: redial-dispatcher ships it"),
        ("redial", "redial-testkit", "redial-testkit is for tests: redial ships it"),
        ("redial", "redial-chaos", "redial-chaos is a program that tests: redial ships it"),
    ];
    for (name, dependency, wall) in cases {
        let found = broken(&Workspace::read(&with_dependency(&metadata, name, dependency, &Value::Null)));
        assert!(found.iter().any(|line| line.contains(wall)), "{name} with {dependency}: {found:?}");
        let build = broken(&Workspace::read(&with_dependency(&metadata, name, dependency, &json!("build"))));
        assert_eq!(build, found, "a build dependency is no way around");
    }
}

#[test]
fn no_crate_can_be_built_in_two_ways() {
    let mut metadata = metadata();
    let packages = metadata["packages"].as_array_mut().unwrap();
    let store = packages.iter_mut().find(|package| package["name"] == "redial-store").unwrap();
    store["features"]["seeded-bugs"] = json!([]);
    let found = broken(&Workspace::read(&metadata));
    let wall = "what is tested is what is shipped: redial-store must not have a feature \"seeded-bugs\"";
    assert!(found.iter().any(|line| line == wall), "{found:?}");
}

#[test]
fn tests_may_look_over_a_wall_but_not_everywhere() {
    let metadata = metadata();
    let dev = json!("dev");
    let fine = with_dependency(&metadata, "redial-worker", "redial-store", &dev);
    assert_eq!(broken(&Workspace::read(&fine)), Vec::<String>::new());
    let servers = with_dependency(&metadata, "redial-engine", "redial-testkit", &dev);
    assert_eq!(broken(&Workspace::read(&servers)), ["redial-engine only decides: its tests need no servers"]);
}

#[test]
fn a_crate_behind_a_wall_cannot_vanish_unseen() {
    let mut metadata = metadata();
    let packages = metadata["packages"].as_array_mut().unwrap();
    let engine = packages.iter_mut().find(|package| package["name"] == "redial-engine").unwrap();
    engine["name"] = json!("redial-decisions");
    let found = broken(&Workspace::read(&metadata));
    assert!(found.iter().any(|line| line.starts_with("redial-engine is behind a wall")), "{found:?}");
}
