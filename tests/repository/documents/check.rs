//! Compares what a document names with what exists.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::LazyLock,
};

use redial_proto::{Code, ErrorClass};
use regex::Regex;

use super::{
    facts::{FOLDERS, Facts, variables},
    markdown::Document,
};

/// Every name of the document that names nothing, with the document's path.
pub(crate) fn findings(document: &Document, facts: &Facts) -> Vec<String> {
    let spans = document.spans();
    let lines: Vec<String> = document.shell_lines().into_iter().map(plain).collect();
    let words = lines.iter().flat_map(|line| line.split_whitespace()).filter(|word| stands_in_a_folder(word));
    let commands = spans.iter().map(|span| plain(span)).chain(lines.iter().cloned());
    let mut found = links(document, facts);
    found.extend(spans.iter().filter_map(|span| file(span, facts)));
    found.extend(commands.flat_map(|line| commands_of(&line, facts)));
    found.extend(words.filter_map(|word| file(word, facts)));
    found.extend(unknown_variables(document, facts));
    found.extend(unknown_codes(document));
    found.into_iter().map(|finding| format!("{}: {finding}", document.path)).collect()
}

fn links(document: &Document, facts: &Facts) -> Vec<String> {
    let local = document.links().into_iter().filter(|link| !link.contains("://"));
    local.filter_map(|link| broken_link(document, link, facts)).collect()
}

fn broken_link(document: &Document, link: &str, facts: &Facts) -> Option<String> {
    let (path, part) = link.split_once('#').map_or((link, None), |(path, part)| (path, Some(part)));
    let target = if path.is_empty() { document.path.clone() } else { resolve(&document.path, path) };
    let root = Path::new(super::ROOT);
    let exists = path.is_empty() || facts.files.contains(&target) || root.join(&target).is_file();
    if !exists {
        return Some(format!("link {link}: no such file"));
    }
    let anchors = if path.is_empty() {
        document.anchors()
    } else {
        Document::parse(&target, &fs::read_to_string(root.join(&target)).unwrap_or_default()).anchors()
    };
    let missing = part.is_some_and(|part| !anchors.iter().any(|anchor| anchor == part));
    missing.then(|| format!("link {link}: no such heading"))
}

/// A path relative to a document, from the root.
fn resolve(document: &str, path: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// What is wrong with a text that looks like a path of this repository. `*` stands for a part of a name; the end of a
/// path is enough for a source file.
fn file(text: &str, facts: &Facts) -> Option<String> {
    let path = text.trim_end_matches('/');
    let is_path = path.chars().all(|c| c.is_alphanumeric() || "/._-*".contains(c));
    let source = [".rs", ".sql", ".snap"].iter().any(|end| path.ends_with(end));
    if !is_path || !(source || stands_in_a_folder(path)) {
        return None;
    }
    let wanted: Vec<&str> = path.split('/').collect();
    let exists = facts.files.iter().any(|file| {
        let names: Vec<&str> = file.split('/').collect();
        let long_enough = names.len() == wanted.len() || (source && names.len() > wanted.len());
        long_enough && names.iter().rev().zip(wanted.iter().rev()).all(|(name, wanted)| matches(name, wanted))
    });
    (!exists).then(|| format!("{path}: no such file"))
}

fn matches(name: &str, pattern: &str) -> bool {
    let Some((start, end)) = pattern.split_once('*') else { return name == pattern };
    name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
}

fn stands_in_a_folder(path: &str) -> bool {
    path.split_once('/').is_some_and(|(folder, _)| FOLDERS.contains(&folder))
}

/// A line of a shell without quoted texts and without its comment.
fn plain(line: &str) -> String {
    static QUOTED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"'[^']*'|"[^"]*""#).unwrap());
    let line = QUOTED.replace_all(line, "QUOTED");
    line.split(" #").next().unwrap().to_owned()
}

fn commands_of(line: &str, facts: &Facts) -> Vec<String> {
    line.split(['|', ';', '&']).flat_map(|command| wrong_command(command, facts)).collect()
}

fn wrong_command(command: &str, facts: &Facts) -> Vec<String> {
    let words = command.split_whitespace().skip_while(|word| word.contains('=') && !word.starts_with('-'));
    let words: Vec<&str> = words.collect();
    match words.as_slice() {
        ["redial" | "target/debug/redial" | "target/release/redial", rest @ ..]
        | ["docker", "compose", "run", "--rm", "cli", rest @ ..] => check("redial", rest, &facts.redial),
        ["./dev", rest @ ..] => check("./dev", rest, &facts.dev),
        _ => Vec::new(),
    }
}

fn check(program: &str, words: &[&str], commands: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let is_name = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
    // `redial <role>` and `redial …` name no command.
    let Some(name) = words.first().filter(is_name) else { return Vec::new() };
    let Some(known) = commands.get(*name) else { return vec![format!("`{program} {name}`: no such command")] };
    if (program, *name) == ("./dev", "test") {
        // Its arguments go to cargo.
        return Vec::new();
    }
    let flags = words.iter().filter_map(|word| word.trim_end_matches([',', ']']).split('=').next());
    let flags = flags.map(|word| word.trim_start_matches('[')).filter(|word| word.starts_with("--") && word.len() > 2);
    let unknown = flags.filter(|flag| !known.contains(*flag));
    unknown.map(|flag| format!("`{program} {name}`: no flag {flag}")).collect()
}

fn unknown_variables(document: &Document, facts: &Facts) -> Vec<String> {
    let named = variables(&document.text());
    named.difference(&facts.variables).map(|name| format!("{name}: no such variable")).collect()
}

/// Codes stand in brackets behind a message.
fn unknown_codes(document: &Document) -> Vec<String> {
    let code = Regex::new(r"\s\[([a-z]+(?:_[a-z]+)+)\]").unwrap();
    let text = document.text();
    let named = code.captures_iter(&text).map(|found| found[1].to_owned());
    let known = |name: &str| {
        Code::ALL.iter().any(|code| code.as_str() == name) || ErrorClass::ALL.iter().any(|class| class.as_str() == name)
    };
    named.filter(|name| !known(name)).map(|name| format!("[{name}]: no such error code or class")).collect()
}
