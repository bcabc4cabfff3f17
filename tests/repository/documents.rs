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
