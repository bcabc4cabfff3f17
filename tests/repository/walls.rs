//! The walls between crates and modules, checked over what cargo says and over the source. Those between crates are read from
//! docs/ARCHITECTURE.md, which states each of them.
//!
//! A wall between crates is about what is shipped: normal and build dependencies. Dev-dependencies may cross it, because a
//! test of the store needs a server; but tests of crates that decide need no servers, and only those from end to end need a stack.

mod modules;
mod workspace;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::{Value, json};

use self::{
    modules::Modules,
    workspace::{Workspace, list, metadata},
};

/// What must not be in the tree of a crate that only decides.
const OUTSIDE_WORLD: [&str; 7] = ["tokio", "async-nats", "sqlx", "sqlx-core", "reqwest", "hyper", "redial-testkit"];

/// The one feature of a crate of this workspace: wrong decisions for the simulation to catch.
const MUTATIONS: (&str, &str) = ("redial-engine", "mutations");
/// The one crate that may switch it on.
const MUTATED: &str = "redial-simulation";

/// Every service in one process. A test executable that links it is as large as the program.
const STACK: &str = "redial-test-stack";

/// What the page says.
#[derive(Default)]
struct Walls {
    /// Every crate of the workspace, with the crates of the workspace that it may be built with.
    may_use: BTreeMap<String, Vec<String>>,
    /// Crates that only decide: nothing async, no server and no network may be in their trees.
    decide: Vec<String>,
    /// Crates that must not reach Postgres at all, directly or not.
    no_database: Vec<String>,
    /// Who may import what reaches the outside. The bench's baseline and the checker of the tests do not go through the
    /// crates that they measure and check; `redial health` asks a gateway as its users do.
    only: Vec<(String, Vec<String>)>,
    /// Crates for those who develop Redial; of all others none may reach them.
    for_developers: Vec<String>,
}

impl Walls {
    /// Panics at a line that states no wall, because a misspelt one would fall in silence.
    fn read() -> Self {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ARCHITECTURE.md");
        let page = fs::read_to_string(page).unwrap();
        let (_, stated) = page.split_once("<!-- walls -->").unwrap();
        let (stated, _) = stated.split_once("<!-- end -->").unwrap();
        let mut walls = Self::default();
        // Without the head of the table.
        for line in stated.lines().filter(|line| !line.is_empty()).skip(2) {
            let row = line.strip_prefix("| ").and_then(|row| row.strip_suffix(" |")?.split_once(" | "));
            if let Some((names, allowed)) = row {
                walls.may_use.extend(crates(names).into_iter().map(|name| (name, crates(allowed))));
                continue;
            }
            let (wall, names) = line.split_once(": ").unwrap_or_else(|| panic!("no wall: {line}"));
            let names = crates(names);
            match wall {
                "- nothing async, no server and no network in the tree of" => walls.decide = names,
                "- no Postgres in the tree of" => walls.no_database = names,
                "- for developers, and in no tree of a user's program" => walls.for_developers = names,
                wall => {
                    let library = wall.strip_prefix("- only these import `").and_then(|rest| rest.strip_suffix('`'));
                    walls.only.push((library.unwrap_or_else(|| panic!("no wall: {line}")).to_owned(), names));
                }
            }
        }
        walls
    }

    /// Every wall that is broken, by name.
    fn broken(&self, workspace: &Workspace) -> Vec<String> {
        [self.unlisted(workspace), self.imports(workspace), self.trees(workspace), features(workspace)].concat()
    }

    fn unlisted(&self, workspace: &Workspace) -> Vec<String> {
        let listed: BTreeSet<&String> = self.may_use.keys().collect();
        let found: BTreeSet<&String> = workspace.crates.keys().collect();
        let new = found.difference(&listed).map(|name| format!("{name} is not in the table of the page"));
        let gone = listed.difference(&found);
        new.chain(gone.map(|name| format!("{name} is in the table of the page and not in the workspace"))).collect()
    }

    fn imports(&self, workspace: &Workspace) -> Vec<String> {
        let mut broken = Vec::new();
        for (name, found) in &workspace.crates {
            let allowed = self.may_use.get(name).into_iter().flatten().collect::<Vec<_>>();
            let own = found.normal.iter().filter(|other| workspace.crates.contains_key(*other));
            for other in own.filter(|other| !allowed.contains(other)) {
                broken.push(format!("{name} must not use {other}; allowed: {allowed:?}"));
            }
            let wrong =
                self.only.iter().filter(|(library, users)| found.normal.contains(library) && !users.contains(name));
            broken.extend(wrong.map(|(library, users)| format!("only {users:?} may import {library}; {name} does")));
        }
        broken
    }

    fn trees(&self, workspace: &Workspace) -> Vec<String> {
        let mut broken = Vec::new();
        for name in &self.decide {
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
        for name in self.no_database.iter().filter(|name| workspace.below(name).contains("sqlx")) {
            broken.push(format!("{name} must not reach Postgres: sqlx is in its tree"));
        }
        for name in workspace.crates.keys().filter(|name| !self.for_developers.contains(name)) {
            let tree = workspace.below(name);
            for tool in self.for_developers.iter().filter(|tool| tree.contains(tool.as_str())) {
                broken.push(format!("{name} is for users: {tool} must not be in its tree"));
            }
        }
        broken
    }
}

/// The packages of a list of the page.
fn crates(names: &str) -> Vec<String> {
    let package = |name: &str| if name == "redial" { name.to_owned() } else { format!("redial-{name}") };
    names.split(", ").filter(|name| *name != "nothing").map(package).collect()
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
    let broken = Walls::read().broken(&Workspace::read(&metadata()));
    assert!(broken.is_empty(), "{} walls are broken:\n{}", broken.len(), broken.join("\n"));
}

/// One state machine, whose moves are in several files: each needs the whole state, and the state needs their types.
const ONE_MACHINE: &str = "tools/simulation/src/world";

#[test]
fn the_modules_of_a_crate_do_not_import_each_other_in_cycles() {
    let metadata = metadata();
    let folder = format!("{}/", metadata["workspace_root"].as_str().unwrap());
    let roots = workspace::roots(&metadata);
    let found = roots.iter().flat_map(|root| Modules::read(root).cycles(ONE_MACHINE));
    let found: Vec<String> = found.map(|import| import.replace(&folder, "")).collect();
    assert!(found.is_empty(), "{} imports in cycles:\n{}", found.len(), found.join("\n"));
}

/// Adds a dependency to what cargo said, as a careless line in a Cargo.toml would.
fn with_dependency(metadata: &Value, name: &str, dependency: &str, kind: &Value) -> Value {
    let packages = list(&metadata["packages"]);
    let at = |name: &str| packages.iter().position(|package| package["name"] == name).unwrap();
    let (id, new) = (packages[at(name)]["id"].clone(), packages[at(dependency)]["id"].clone());
    let mut changed = metadata.clone();
    let entry = json!({"name": dependency, "kind": kind, "features": []});
    changed["packages"][at(name)]["dependencies"].as_array_mut().unwrap().push(entry);
    let nodes = changed["resolve"]["nodes"].as_array_mut().unwrap();
    let node = nodes.iter_mut().find(|node| node["id"] == id).unwrap();
    let entry = json!({"name": dependency, "pkg": new, "dep_kinds": [{"kind": kind, "target": null}]});
    node["deps"].as_array_mut().unwrap().push(entry);
    changed
}

/// A case for each kind of wall between crates.
#[test]
fn every_wall_that_is_broken_is_named() {
    let (walls, metadata) = (Walls::read(), metadata());
    let broken = |metadata: &Value| walls.broken(&Workspace::read(metadata));
    for (name, dependency, wall) in [
        ("redial-engine", "redial-store", "redial-engine must not use redial-store"),
        ("redial", "redial-bench", "redial must not use redial-bench"),
        ("redial-engine", "tokio", "redial-engine only decides: tokio must not be in its tree"),
        ("redial-proto", "sqlx", "redial-proto only decides: sqlx must not be in its tree"),
        ("redial-worker", "redial-dispatcher", "redial-worker must not reach Postgres"),
        ("redial-dispatcher", "sqlx", "may import sqlx; redial-dispatcher does"),
        ("redial-dispatcher", "async-nats", "may import async-nats; redial-dispatcher does"),
        ("redial-worker", "reqwest", "may import reqwest; redial-worker does"),
        ("redial-dispatcher", "redial-bench", "redial is for users: redial-bench must not be in its tree"),
    ] {
        let found = broken(&with_dependency(&metadata, name, dependency, &Value::Null));
        assert!(found.iter().any(|line| line.contains(wall)), "{name} with {dependency}: {found:?}");
        let build = broken(&with_dependency(&metadata, name, dependency, &json!("build")));
        assert_eq!(build, found, "a build dependency breaks the same walls");
    }

    let dev = |name, dependency| broken(&with_dependency(&metadata, name, dependency, &json!("dev")));
    assert_eq!(dev("redial-worker", "redial-store"), Vec::<String>::new(), "tests may cross a wall");
    assert_eq!(dev("redial-engine", "redial-testkit"), ["redial-engine only decides: its tests need no servers"]);
    let wanted = "only the tests from end to end need a stack: redial-store must not use redial-test-stack";
    assert_eq!(dev("redial-store", STACK), [wanted]);
}
