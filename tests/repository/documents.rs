//! What the documents name exists: files, headings, commands and their flags, settings, error codes.

mod check;
mod facts;
mod markdown;
mod tables;

use std::{fs, path::Path};

use redial_proto::Code;

use self::{check::findings, facts::Facts, markdown::Document};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Documents outside of `docs/`.
const AT_THE_ROOT: [&str; 4] = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];

#[test]
fn what_the_documents_name_exists() {
    let facts = Facts::read(Path::new(ROOT));
    let pages = facts.files.iter().filter(|file| file.starts_with("docs/") && file.strip_suffix(".md").is_some());
    let paths: Vec<&str> = AT_THE_ROOT.into_iter().chain(pages.map(String::as_str)).collect();
    assert!(paths.len() > 25, "only {} documents were found", paths.len());
    let wrong: Vec<String> = paths.iter().flat_map(|path| findings(&document(path), &facts)).collect();
    assert!(wrong.is_empty(), "{} wrong names:\n{}", wrong.len(), wrong.join("\n"));
}

/// The table of what tenants share names the test of each row.
#[test]
fn each_thing_that_tenants_share_has_its_test() {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/SECURITY.md")).unwrap();
    let (_, table) = page.split_once("\n## What tenants share\n").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
    assert!(rows.len() > 15, "{rows:?}");
    let facts = Facts::read(Path::new(ROOT));
    let sources = facts.files.iter().filter(|file| Path::new(file).extension().is_some_and(|end| end == "rs"));
    let sources: String = sources.map(|file| fs::read_to_string(Path::new(ROOT).join(file)).unwrap()).collect();
    for row in rows {
        let (_, tests) = row.trim_end_matches(" |").rsplit_once(" | ").unwrap();
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(tests == "the same" || !names.is_empty(), "{row}");
        for name in names {
            assert!(sources.contains(&format!("fn {name}()")), "no test {name}: {row}");
        }
    }
}

#[test]
fn an_unknown_name_is_found() {
    let facts = Facts::read(Path::new(ROOT));
    let bad = Document::parse("docs/BAD.md", include_str!("documents/bad_example.md"));
    let found = findings(&bad, &facts);
    let expected = [
        "docs/BAD.md: link nowhere.md: no such file",
        "docs/BAD.md: link #no-such-part: no such heading",
        "docs/BAD.md: link TASKS.md#no-such-part: no such heading",
        "docs/BAD.md: crates/engine/src/gone.rs: no such file",
        "docs/BAD.md: gone/resolve.rs: no such file",
        "docs/BAD.md: `redial frobnicate`: no such command",
        "docs/BAD.md: `redial call`: no flag --frobnicate",
        "docs/BAD.md: `./dev frobnicate`: no such command",
        "docs/BAD.md: `redial task`: no flag --lease",
        "docs/BAD.md: `redial misspelt`: no such command",
        "docs/BAD.md: deploy/gone.conf: no such file",
        "docs/BAD.md: REDIAL_FROBNICATE: no such variable",
        "docs/BAD.md: [no_such_code]: no such error code or class",
    ];
    assert_eq!(found, expected);
}

#[test]
fn tables_are_those_of_the_code() {
    crate::generated::check("docs/OPERATIONS.md", "settings", &tables::settings());
    crate::generated::check("docs/OPERATIONS.md", "metrics", &tables::metrics());
    crate::generated::check("docs/errors/README.md", "codes", &tables::codes());
}

#[test]
fn every_error_code_has_a_page_with_a_remedy() {
    for code in Code::ALL {
        let page = fs::read_to_string(Path::new(ROOT).join(format!("docs/errors/{code}.md"))).unwrap();
        assert!(page.starts_with(&format!("# {code}\n")) && page.contains("**Remedy**"), "{code}");
    }
}

fn document(path: &str) -> Document {
    let text = fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    Document::parse(path, &text)
}
