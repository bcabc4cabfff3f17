//! The crates of the workspace, as `cargo metadata` describes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::Command,
};

use serde_json::Value;

/// A crate with the names of what it depends on, and of its features.
#[derive(Default)]
pub(crate) struct Crate {
    pub(crate) features: BTreeSet<String>,
    pub(crate) normal: BTreeSet<String>,
    pub(crate) dev: BTreeSet<String>,
    /// Features of other crates that it switches on, tests included: the crate and the feature.
    pub(crate) switches_on: BTreeSet<(String, String)>,
}

/// The workspace's crates, and the normal dependencies of every crate that is built.
pub(crate) struct Workspace {
    pub(crate) crates: BTreeMap<String, Crate>,
    tree: BTreeMap<String, BTreeSet<String>>,
}

/// `cargo metadata`'s answer, with every crate that is built.
pub(crate) fn metadata() -> Value {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path", manifest])
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}"))
}

/// The root files of all libraries and programs of the workspace; tests and examples left out.
pub(crate) fn roots(metadata: &Value) -> Vec<PathBuf> {
    let members: BTreeSet<&str> = list(&metadata["workspace_members"]).iter().map(text).collect();
    let packages = list(&metadata["packages"]).iter().filter(|package| members.contains(text(&package["id"])));
    let targets = packages.flat_map(|package| list(&package["targets"]));
    let is_shipped = |target: &&Value| list(&target["kind"]).iter().any(|kind| ["lib", "bin"].contains(&text(kind)));
    targets.filter(is_shipped).map(|target| PathBuf::from(text(&target["src_path"]))).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

impl Workspace {
    pub(crate) fn read(metadata: &Value) -> Self {
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
    pub(crate) fn below<'a>(&'a self, name: &str) -> BTreeSet<&'a str> {
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
            let name = text(&dependency["name"]);
            names.insert(name.to_owned());
            let features = list(&dependency["features"]).iter().map(|one| (name.to_owned(), text(one).to_owned()));
            found.switches_on.extend(features);
        }
        found
    }
}

/// The dependencies of a built crate that are not for its tests only.
fn built_with(node: &Value, names: &BTreeMap<&str, &str>) -> BTreeSet<String> {
    let is_built = |dependency: &&Value| list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
    list(&node["deps"]).iter().filter(is_built).map(|dep| names[text(&dep["pkg"])].to_owned()).collect()
}
