//! The walls between crates and modules (docs/ARCHITECTURE.md), checked over what cargo says and over the source.
//!
//! A wall between crates is about what is shipped: normal and build dependencies. Dev-dependencies may cross it, because a
//! test of the store needs a server; but tests of crates that decide need no servers, and only those from end to end need a stack.

mod cycles;
mod modules;
mod workspace;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use self::{
    modules::Modules,
    workspace::{Workspace, list, metadata},
};

/// A crate that only decides: nothing async, no server and no network may be in its tree.
const DECIDES: [&str; 7] = [
    "redial-proto",
    "redial-access",
    "redial-records",
    "redial-redaction",
    "redial-arguments",
    "redial-engine",
    "redial-webhooks",
];
const OUTSIDE_WORLD: [&str; 7] = ["tokio", "async-nats", "sqlx", "sqlx-core", "reqwest", "hyper", "redial-testkit"];

/// The one feature of a crate of this workspace: wrong decisions for the simulation to catch.
const MUTATIONS: (&str, &str) = ("redial-engine", "mutations");
/// The one crate that may switch it on.
const MUTATED: &str = "redial-simulation";

/// Every crate of the workspace, with the crates of the workspace that it may be built with.
const MAY_USE: [(&str, &[&str]); 29] = [
    ("redial-proto", &[]),
    ("redial-backoff", &[]),
    ("redial-loops", &[]),
    ("redial-files", &[]),
    ("redial-access", &["redial-proto", "redial-files"]),
    ("redial-reread", &["redial-proto"]),
    ("redial-records", &["redial-proto"]),
    ("redial-arguments", &["redial-proto"]),
    ("redial-engine", &["redial-proto", "redial-records", "redial-arguments"]),
    ("redial-redaction", &["redial-proto"]),
    ("redial-llm", &["redial-proto", "redial-redaction", "redial-files"]),
    ("redial-webhooks", &[]),
    ("redial-tools", &["redial-proto", "redial-redaction", "redial-files", "redial-webhooks"]),
    ("redial-store", &["redial-proto", "redial-records", "redial-backoff"]),
    ("redial-queue", &["redial-proto", "redial-records", "redial-backoff"]),
    ("redial-telemetry", &["redial-proto"]),
    ("redial-servers", &["redial-backoff"]),
    ("redial-views", &["redial-proto", "redial-arguments", "redial-engine", "redial-store"]),
    ("redial-console", &["redial-proto"]),
    (
        "redial-gateway",
        &[
            "redial-console",
            "redial-proto",
            "redial-access",
            "redial-reread",
            "redial-store",
            "redial-queue",
            "redial-views",
            "redial-telemetry",
            "redial-loops",
        ],
    ),
    (
        "redial-dispatcher",
        &[
            "redial-views",
            "redial-proto",
            "redial-access",
            "redial-reread",
            "redial-backoff",
            "redial-records",
            "redial-arguments",
            "redial-engine",
            "redial-files",
            "redial-store",
            "redial-queue",
            "redial-telemetry",
            "redial-loops",
            "redial-webhooks",
        ],
    ),
    (
        "redial-worker",
        &[
            "redial-proto",
            "redial-backoff",
            "redial-loops",
            "redial-queue",
            "redial-tools",
            "redial-llm",
            "redial-telemetry",
        ],
    ),
    (
        "redial",
        &[
            "redial-proto",
            "redial-access",
            "redial-backoff",
            "redial-arguments",
            "redial-tools",
            "redial-records",
            "redial-engine",
            "redial-files",
            "redial-store",
            "redial-queue",
            "redial-telemetry",
            "redial-servers",
            "redial-dispatcher",
            "redial-gateway",
            "redial-views",
            "redial-worker",
        ],
    ),
    ("redial-testkit", &["redial-proto", "redial-tools", "redial-servers"]),
    (
        "redial-test-stack",
        &[
            "redial-testkit",
            "redial-proto",
            "redial-tools",
            "redial-store",
            "redial-queue",
            "redial-telemetry",
            "redial-dispatcher",
            "redial-gateway",
            "redial-worker",
        ],
    ),
    ("redial-simulation", &["redial-proto", "redial-records", "redial-arguments", "redial-engine"]),
    (
        "redial-chaos",
        &[
            "redial-proto",
            "redial-access",
            "redial-store",
            "redial-queue",
            "redial-servers",
            "redial-testkit",
            "redial-worker",
        ],
    ),
    ("redial-bench", &["redial-proto", "redial-store", "redial-queue", "redial-servers", "redial-worker"]),
    ("redial-demo", &["redial-proto", "redial-servers", "redial-worker"]),
];

/// Every service in one process. A test executable that links it is as large as the program.
const STACK: &str = "redial-test-stack";

/// Crates for those who develop Redial; of all others none may reach them.
const FOR_DEVELOPERS: [&str; 5] =
    ["redial-testkit", "redial-test-stack", "redial-simulation", "redial-chaos", "redial-bench"];

/// Who may import what reaches the outside. The bench's baseline and the checker of the tests do not go through the
/// crates that they measure and check; `redial health` asks a gateway as its users do.
const ONLY: [(&str, &[&str]); 4] = [
    ("backoff", &["redial-backoff"]),
    ("sqlx", &["redial-store", "redial-testkit", "redial-test-stack", "redial-bench"]),
    ("async-nats", &["redial-queue", "redial-bench"]),
    ("reqwest", &["redial", "redial-tools", "redial-llm", "redial-telemetry", "redial-bench"]),
];

/// Crates that must not reach Postgres at all, directly or not.
const NO_DATABASE: [&str; 4] = ["redial-worker", "redial-queue", "redial-tools", "redial-llm"];

/// Every wall that is broken, by name.
fn broken(workspace: &Workspace) -> Vec<String> {
    [unlisted(workspace), imports(workspace), libraries(workspace), trees(workspace), features(workspace)].concat()
}

fn unlisted(workspace: &Workspace) -> Vec<String> {
    let listed: BTreeSet<&str> = MAY_USE.iter().map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = workspace.crates.keys().map(String::as_str).collect();
    let new = found.difference(&listed).map(|name| format!("{name} is not in the list of this test"));
    let gone = listed.difference(&found);
    new.chain(gone.map(|name| format!("{name} is in the list of this test and not in the workspace"))).collect()
}

fn imports(workspace: &Workspace) -> Vec<String> {
    let mut broken = Vec::new();
    for (name, allowed) in MAY_USE {
        let normal = workspace.crates.get(name).into_iter().flat_map(|found| &found.normal);
        let own = normal.filter(|other| workspace.crates.contains_key(*other));
        for other in own.filter(|other| !allowed.contains(&other.as_str())) {
            broken.push(format!("{name} must not use {other}; allowed: {allowed:?}"));
        }
    }
    broken
}

fn libraries(workspace: &Workspace) -> Vec<String> {
    let users =
        |library: &'static str| workspace.crates.iter().filter(move |(_, found)| found.normal.contains(library));
    let wrong = ONLY.iter().flat_map(|(library, allowed)| {
        let wrong = users(library).filter(|(name, _)| !allowed.contains(&name.as_str()));
        wrong.map(move |(name, _)| format!("only {allowed:?} may import {library}; {name} does"))
    });
    wrong.collect()
}

fn trees(workspace: &Workspace) -> Vec<String> {
    let mut broken = Vec::new();
    for name in DECIDES {
        let tree = workspace.below(name);
        for library in OUTSIDE_WORLD.iter().filter(|library| tree.contains(**library)) {
            broken.push(format!("{name} only decides: {library} must not be in its tree"));
        }
        if workspace.crates.get(name).is_some_and(|found| found.dev.contains("redial-testkit")) {
            broken.push(format!("{name} only decides: its tests need no servers"));
        }
    }
    let stack = workspace.crates.iter().filter(|(_, found)| found.dev.contains(STACK));
    for (name, _) in stack.filter(|(name, _)| name.as_str() != "redial") {
        broken.push(format!("only the tests from end to end need a stack: {name} must not use {STACK}"));
    }
    for name in NO_DATABASE.iter().filter(|name| workspace.below(name).contains("sqlx")) {
        broken.push(format!("{name} must not reach Postgres: sqlx is in its tree"));
    }
    for name in workspace.crates.keys().filter(|name| !FOR_DEVELOPERS.contains(&name.as_str())) {
        let tree = workspace.below(name);
        for tool in FOR_DEVELOPERS.iter().filter(|tool| tree.contains(**tool)) {
            broken.push(format!("{name} is for users: {tool} must not be in its tree"));
        }
    }
    broken
}

fn features(workspace: &Workspace) -> Vec<String> {
    let found = workspace.crates.iter().flat_map(|(name, found)| found.features.iter().map(move |one| (name, one)));
    let extra = found
        .filter(|(name, one)| (name.as_str(), one.as_str()) != MUTATIONS)
        .map(|(name, one)| format!("what is tested is what is shipped: {name} must not have a feature {one:?}"));
    let others = workspace.crates.iter().filter(|(name, _)| name.as_str() != MUTATED);
    let switched_on = others
        .filter(|(_, found)| found.switches_on.iter().any(|(name, one)| (name.as_str(), one.as_str()) == MUTATIONS));
    extra.chain(switched_on.map(|(name, _)| format!("{name} must not switch on {MUTATIONS:?}"))).collect()
}

#[test]
fn every_wall_between_crates_stands() {
    let broken = broken(&Workspace::read(&metadata()));
    assert!(broken.is_empty(), "{} walls are broken:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn the_page_about_the_code_shows_the_walls() {
    let short = |name: &str| name.trim_start_matches("redial-").to_owned();
    let list = |names: &[&str]| names.iter().map(|name| short(name)).collect::<Vec<_>>().join(", ");
    let (alone, others): (Vec<_>, Vec<_>) = MAY_USE.iter().partition(|(_, allowed)| allowed.is_empty());
    let alone = vec![list(&alone.iter().map(|(name, _)| *name).collect::<Vec<_>>()), "nothing".to_owned()];
    let others = others.iter().map(|(name, allowed)| vec![short(name), list(allowed)]);
    let table = crate::generated::table(&["crate", "may be built with"], std::iter::once(alone).chain(others));
    let only = ONLY.iter().map(|(library, allowed)| format!("- only these import `{library}`: {}\n", list(allowed)));
    let text = format!(
        "{table}\n- nothing async, no server and no network in the tree of: {}\n- no Postgres in the tree of: {}\n{}\
         - for developers, and in no tree of a user's program: {}\n",
        list(&DECIDES),
        list(&NO_DATABASE),
        only.collect::<String>(),
        list(&FOR_DEVELOPERS)
    );
    crate::generated::check("docs/ARCHITECTURE.md", "walls", &text);
}

/// One state machine, whose moves are in several files: each needs the whole state, and the state needs their types.
const ONE_MACHINE: &str = "tools/simulation/src/world";

#[test]
fn the_modules_of_a_crate_do_not_import_each_other_in_cycles() {
    let metadata = metadata();
    let folder = format!("{}/", metadata["workspace_root"].as_str().unwrap());
    let roots = workspace::roots(&metadata);
    let found = roots.iter().flat_map(|root| cycles::cycles(&Modules::read(root)));
    let cycles = found.map(|cycle| cycle.replace(&folder, "")).filter(|cycle| !cycle.contains(ONE_MACHINE));
    let cycles: Vec<String> = cycles.collect();
    assert!(cycles.is_empty(), "{} cycles:\n{}", cycles.len(), cycles.join("\n"));
}

/// Adds a dependency to what cargo said, as a careless line in a Cargo.toml would.
fn with_dependency(metadata: &Value, name: &str, dependency: &str, kind: &Value) -> Value {
    let mut changed = metadata.clone();
    let packages = list(&metadata["packages"]);
    let id = |name: &str| packages.iter().find(|package| package["name"] == name).unwrap()["id"].clone();
    let packages = changed["packages"].as_array_mut().unwrap();
    let package = packages.iter_mut().find(|package| package["name"] == name).unwrap();
    package["dependencies"].as_array_mut().unwrap().push(json!({"name": dependency, "kind": kind, "features": []}));
    let nodes = changed["resolve"]["nodes"].as_array_mut().unwrap();
    let node = nodes.iter_mut().find(|node| node["id"] == id(name)).unwrap();
    let entry = json!({"name": dependency, "pkg": id(dependency), "dep_kinds": [{"kind": kind, "target": null}]});
    node["deps"].as_array_mut().unwrap().push(entry);
    changed
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
        ("redial-redaction", "reqwest", "redial-redaction only decides: reqwest must not be in its tree"),
        ("redial-proto", "sqlx", "redial-proto only decides: sqlx must not be in its tree"),
        ("redial-queue", "redial-store", "redial-queue must not use redial-store"),
        ("redial-store", "redial-queue", "redial-store must not use redial-queue"),
        ("redial-store", "redial-engine", "redial-store must not use redial-engine"),
        ("redial-tools", "redial-queue", "redial-tools must not use redial-queue"),
        ("redial-llm", "redial-tools", "redial-llm must not use redial-tools"),
        ("redial-llm", "redial-engine", "redial-llm must not use redial-engine"),
        ("redial-llm", "redial-store", "redial-llm must not reach Postgres"),
        ("redial-tools", "redial-llm", "redial-tools must not use redial-llm"),
        ("redial-queue", "redial-llm", "redial-queue must not use redial-llm"),
        ("redial-engine", "redial-llm", "redial-engine must not use redial-llm"),
        ("redial-dispatcher", "redial-llm", "redial-dispatcher must not use redial-llm"),
        ("redial-dispatcher", "redial-tools", "redial-dispatcher must not use redial-tools"),
        ("redial-worker", "redial-store", "redial-worker must not use redial-store"),
        ("redial-worker", "redial-engine", "redial-worker must not use redial-engine"),
        ("redial-worker", "redial-dispatcher", "redial-worker must not use redial-dispatcher"),
        ("redial-worker", "redial-dispatcher", "redial-worker must not reach Postgres"),
        ("redial-dispatcher", "sqlx", "may import sqlx; redial-dispatcher does"),
        ("redial-dispatcher", "async-nats", "may import async-nats; redial-dispatcher does"),
        ("redial-worker", "reqwest", "may import reqwest; redial-worker does"),
        ("redial-dispatcher", "redial-bench", "redial is for users: redial-bench must not be in its tree"),
        ("redial", "redial-bench", "redial must not use redial-bench"),
        ("redial-demo", "redial-simulation", "redial-demo is for users: redial-simulation must not be in its tree"),
    ];
    for (name, dependency, wall) in cases {
        let found = broken(&Workspace::read(&with_dependency(&metadata, name, dependency, &Value::Null)));
        assert!(found.iter().any(|line| line.contains(wall)), "{name} with {dependency}: {found:?}");
        let build = broken(&Workspace::read(&with_dependency(&metadata, name, dependency, &json!("build"))));
        assert_eq!(build, found, "a build dependency breaks the same walls");
    }
}

#[test]
fn no_crate_can_be_built_in_two_ways() {
    let mut metadata = metadata();
    let packages = metadata["packages"].as_array_mut().unwrap();
    let store = packages.iter_mut().find(|package| package["name"] == "redial-store").unwrap();
    store["features"]["mutated"] = json!([]);
    let found = broken(&Workspace::read(&metadata));
    let wall = "what is tested is what is shipped: redial-store must not have a feature \"mutated\"";
    assert!(found.iter().any(|line| line == wall), "{found:?}");
}

#[test]
fn only_the_simulation_can_switch_wrong_decisions_on() {
    let mut metadata = metadata();
    let packages = metadata["packages"].as_array_mut().unwrap();
    let dispatcher = packages.iter_mut().find(|package| package["name"] == "redial-dispatcher").unwrap();
    let dependencies = dispatcher["dependencies"].as_array_mut().unwrap();
    let engine = dependencies.iter_mut().find(|dependency| dependency["name"] == "redial-engine").unwrap();
    engine["features"] = json!(["mutations"]);
    let found = broken(&Workspace::read(&metadata));
    assert!(found.iter().any(|line| line.starts_with("redial-dispatcher must not switch on")), "{found:?}");
}

#[test]
fn tests_may_cross_a_wall_unless_their_crate_only_decides() {
    let metadata = metadata();
    let dev = json!("dev");
    let fine = with_dependency(&metadata, "redial-worker", "redial-store", &dev);
    assert_eq!(broken(&Workspace::read(&fine)), Vec::<String>::new());
    let servers = with_dependency(&metadata, "redial-engine", "redial-testkit", &dev);
    assert_eq!(broken(&Workspace::read(&servers)), ["redial-engine only decides: its tests need no servers"]);
    let stack = with_dependency(&metadata, "redial-store", STACK, &dev);
    let wanted = "only the tests from end to end need a stack: redial-store must not use redial-test-stack";
    assert_eq!(broken(&Workspace::read(&stack)), [wanted]);
}

#[test]
fn an_unlisted_or_missing_crate_is_named() {
    let mut metadata = metadata();
    let packages = metadata["packages"].as_array_mut().unwrap();
    let engine = packages.iter_mut().find(|package| package["name"] == "redial-engine").unwrap();
    engine["name"] = json!("redial-decisions");
    let found = broken(&Workspace::read(&metadata));
    for wanted in ["redial-decisions is not in the list", "redial-engine is in the list of this test and not in"] {
        assert!(found.iter().any(|line| line.starts_with(wanted)), "{found:?}");
    }
}
