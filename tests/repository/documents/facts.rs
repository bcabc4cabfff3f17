//! What exists: read from the files, from the program's own help, and from `./dev`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use regex::Regex;

/// Folders at the root that documents may name files of.
pub(crate) const FOLDERS: [&str; 10] =
    ["clients", "crates", "deploy", "docs", "examples", "migrations", "proto", "services", "tests", "tools"];

/// Everything that a document may name.
pub(crate) struct Facts {
    /// Every file and folder, from the root.
    pub(crate) files: BTreeSet<String>,
    /// Commands of `redial` with their flags.
    pub(crate) redial: BTreeMap<String, BTreeSet<String>>,
    /// Commands of `./dev`.
    pub(crate) dev: BTreeSet<String>,
    /// Environment variables.
    pub(crate) variables: BTreeSet<String>,
}

impl Facts {
    pub(crate) fn read(root: &Path) -> Self {
        let mut files = BTreeSet::new();
        for folder in FOLDERS {
            walk(root, folder, &mut files);
        }
        let (redial, dev) = (redial_commands(), dev_commands(root));
        let mut facts = Self { dev, files, redial, variables: BTreeSet::new() };
        facts.variables = facts.settings().collect();
        let sources = facts.files.iter().filter(|file| !file.starts_with("docs/") && !file.starts_with("tests/"));
        for source in sources.map(String::as_str).chain(["dev", "docker-compose.yml"]) {
            // A folder, or a file that is not text, names no variable.
            let text = fs::read_to_string(root.join(source)).unwrap_or_default();
            facts.variables.extend(variables(&text));
        }
        facts
    }

    /// The environment variables of settings: each flag of a role has one.
    pub(crate) fn settings(&self) -> impl Iterator<Item = String> {
        let roles: BTreeSet<&String> =
            ["dispatcher", "gateway", "worker"].iter().flat_map(|role| &self.redial[*role]).collect();
        let settings = roles.into_iter().filter(|flag| !["--help", "--json"].contains(&flag.as_str()));
        settings.map(|flag| format!("REDIAL_{}", flag.trim_start_matches('-').replace('-', "_").to_uppercase()))
    }
}

/// Names of environment variables in a text.
pub(crate) fn variables(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names = words.filter(|word| word.starts_with("REDIAL_") && !word.contains(|c: char| c.is_ascii_lowercase()));
    names.filter(|name| !name.ends_with('_')).map(str::to_owned).collect()
}

fn walk(root: &Path, folder: &str, files: &mut BTreeSet<String>) {
    files.insert(folder.to_owned());
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            walk(root, &path, files);
        } else {
            files.insert(path);
        }
    }
}

fn redial_commands() -> BTreeMap<String, BTreeSet<String>> {
    let help = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_redial")).args(arguments).arg("--help").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let overview = help(&[]);
    let name = Regex::new(r"(?m)^  ([a-z][a-z-]+)(?:  |$)").unwrap();
    let names = name.captures_iter(&overview).map(|found| found[1].to_owned());
    // Every command has them, and the help of one explains them.
    let common = flags(&help(&["settings"]));
    assert!(common.contains("--nats-url"), "{common:?}");
    // A command whose help lists commands has their flags, too.
    let own = |of: &String| {
        let text = help(&[of]);
        let inner = name.captures_iter(text.split_once("Commands:\n").map_or("", |(_, list)| list));
        let inner = inner.map(|found| found[1].to_owned()).filter(|inner| inner != "help");
        let of_inner: BTreeSet<String> = inner.flat_map(|inner| flags(&help(&[of, &inner]))).collect();
        flags(&text).into_iter().chain(of_inner).chain(common.clone()).collect()
    };
    let commands: BTreeMap<_, _> = names.map(|name| (name.clone(), own(&name))).collect();
    assert!(commands.len() > 15, "{overview}");
    commands
}

/// Flags at the beginnings of lines of a help text.
fn flags(help: &str) -> BTreeSet<String> {
    let flag = Regex::new(r"(?m)^\s+(?:-\w, )?(--[a-z][a-z-]*)").unwrap();
    flag.captures_iter(help).map(|found| found[1].to_owned()).collect()
}

/// The commands that its script carries out, and those whose functions have other names.
fn dev_commands(root: &Path) -> BTreeSet<String> {
    let script = fs::read_to_string(root.join("dev")).unwrap();
    let listed = Regex::new(r#"(?m)^    ([a-z |]+)\) "\$command""#).unwrap().captures(&script).unwrap()[1].to_owned();
    let others = ["compose", "api-fuzz", "ci", "nightly", "release", "test"];
    listed.split('|').map(str::trim).chain(others).map(str::to_owned).collect()
}
