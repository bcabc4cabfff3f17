//! A thing that people see has one type: no struct of the program has eight or more fields by the names of one in `crates/api`, or
//! of a view in `proto`.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Names of fields that make two structs the same thing.
const SHARED: usize = 8;

/// Structs that are like one, and why. Rows of queries, whose names begin with `Row` or `Raw`, hold texts that become enums.
const OTHERWISE: [(&str, &str); 3] = [
    ("AttemptRecord", "in the saved record, with what only the record has"),
    ("CallAudit", "the saved record, which `redial replay --file` reads"),
    ("RedriveWork", "what a dispatcher has to do for a redrive; nobody is shown it"),
];

/// A struct: its file, its name and the names of its fields.
struct Struct {
    file: PathBuf,
    name: String,
    fields: BTreeSet<String>,
}

/// Every struct with named fields in a file, as rustfmt writes them.
fn structs(file: &Path, source: &str) -> Vec<Struct> {
    let mut found: Vec<Struct> = Vec::new();
    let mut end = None;
    for line in source.lines() {
        let text = line.trim_start();
        let (indent, text) = (&line[..line.len() - text.len()], without_visibility(text));
        match &end {
            Some(last) if line == last => end = None,
            Some(_) => {
                let name = text.split_once(": ").map(|(name, _)| name.trim_start_matches("r#"));
                let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if let (Some(name), Some(of)) = (name.filter(is_name), found.last_mut()) {
                    of.fields.insert(name.to_owned());
                }
            }
            None => {
                let Some(head) = text.strip_prefix("struct ").filter(|head| head.ends_with('{')) else { continue };
                let name: String = head.chars().take_while(char::is_ascii_alphanumeric).collect();
                found.push(Struct { file: file.to_owned(), name, fields: BTreeSet::new() });
                end = Some(format!("{indent}}}"));
            }
        }
    }
    found
}

fn without_visibility(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("pub") else { return text };
    let rest = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest);
    rest.strip_prefix(' ').unwrap_or(text)
}

/// Every struct of the program, tests in files of their own left out.
fn all() -> Vec<Struct> {
    let (mut folders, mut found) =
        (["crates", "services", "proto"].map(|name| Path::new(ROOT).join(name)).to_vec(), Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("tests") {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
                found.extend(structs(&path, &fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

/// What each struct is too much like.
fn copies(structs: Vec<Struct>) -> Vec<String> {
    let is_seen = |one: &Struct| {
        let file = one.file.strip_prefix(ROOT).unwrap();
        file.starts_with("crates/api") || (file.starts_with("proto") && one.name.ends_with("View"))
    };
    let (seen, others): (Vec<_>, Vec<_>) = structs.into_iter().partition(is_seen);
    let is_row = |one: &&Struct| one.name.starts_with("Row") || one.name.starts_with("Raw");
    let has_reason = |one: &&Struct| OTHERWISE.iter().any(|(name, _)| *name == one.name);
    let others = others.iter().filter(|one| !is_row(one) && !has_reason(one));
    let pairs = others.flat_map(|one| seen.iter().map(move |like| (one, like)));
    let shared = |(one, like): &(&Struct, &Struct)| one.fields.intersection(&like.fields).count();
    let copies = pairs.filter(|pair| shared(pair) >= SHARED);
    let told = |pair: (&Struct, &Struct)| {
        format!("{} of {} has {} fields of {}", pair.0.name, pair.0.file.display(), shared(&pair), pair.1.name)
    };
    copies.map(told).collect()
}

#[test]
fn what_people_see_has_one_type() {
    let found = copies(all());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_copy_is_found() {
    let copy = "    /// A worker.\n    pub(crate) struct Line {\n        pub(crate) host: Option<String>,\n        version: String,\n        \
                tools: Vec<String>,\n        started_at: Time,\n        slots: i64,\n        running: i64,\n        draining: bool,\n        \
                alive: bool,\n    }\n";
    let file = Path::new(ROOT).join("services/console/src/line.rs");
    let found = copies([structs(&file, copy), all()].into_iter().flatten().collect());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("has 8 fields of WorkerItem"), "{found:?}");
}
