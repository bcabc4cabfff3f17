//! Compares what a document names with what exists.

use std::{fs, path::Path, sync::LazyLock};

use redial_proto::{Code, ErrorClass};
use regex::Regex;

use super::{
    facts::{FOLDERS, Facts, variables},
    markdown::Document,
};

/// Every name of the document that names nothing, with the document's path.
pub(crate) fn findings(document: &Document, facts: &Facts) -> Vec<String> {
    let spans = document.spans();
    let lines: Vec<String> = document.shell.iter().map(|line| plain(line)).collect();
    let words = lines.iter().flat_map(|line| line.split_whitespace()).filter(|word| stands_in_a_folder(word));
    let commands = spans.iter().map(|span| plain(span)).chain(lines.iter().cloned());
    let mut found = links(document);
    found.extend(spans.iter().filter_map(|span| file(span, facts)));
    found.extend(commands.flat_map(|line| commands_of(&line, facts)));
    found.extend(words.filter_map(|word| file(word, facts)));
    found.extend(unknown_variables(document, facts));
    found.extend(unknown_codes(document));
    found.into_iter().map(|finding| format!("{}: {finding}", document.path)).collect()
}

fn links(document: &Document) -> Vec<String> {
    let local = document.links().into_iter().filter(|link| !link.contains("://"));
    local.filter_map(|link| broken_link(document, link)).collect()
}

fn broken_link(document: &Document, link: &str) -> Option<String> {
    let (path, part) = link.split_once('#').map_or((link, None), |(path, part)| (path, Some(part)));
    let own = Path::new(super::ROOT).join(&document.path);
    let target = if path.is_empty() { own } else { own.with_file_name("").join(path) };
    if !path.is_empty() && !target.exists() {
        return Some(format!("link {link}: no such file"));
    }
    let anchors = match path {
        "" => document.anchors(),
        path => Document::parse(path, &fs::read_to_string(target).unwrap_or_default()).anchors(),
    };
    let missing = part.is_some_and(|part| !anchors.iter().any(|anchor| anchor == part));
    missing.then(|| format!("link {link}: no such heading"))
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
        | ["docker", "compose", "run", "--rm", "cli", rest @ ..] => of_redial(rest, facts),
        ["./dev", name, ..] if is_name(name) && !facts.dev.contains(*name) => {
            vec![format!("`./dev {name}`: no such command")]
        }
        _ => Vec::new(),
    }
}

/// `redial <role>` and `redial …` name no command.
fn is_name(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-')
}

fn of_redial(words: &[&str], facts: &Facts) -> Vec<String> {
    let Some(name) = words.first().filter(|name| is_name(name)) else { return Vec::new() };
    let Some(known) = facts.redial.get(*name) else { return vec![format!("`redial {name}`: no such command")] };
    let flags = words.iter().filter_map(|word| word.trim_end_matches([',', ']']).split('=').next());
    let flags = flags.map(|word| word.trim_start_matches('[')).filter(|word| word.starts_with("--") && word.len() > 2);
    let unknown = flags.filter(|flag| !known.contains(*flag));
    unknown.map(|flag| format!("`redial {name}`: no flag {flag}")).collect()
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
