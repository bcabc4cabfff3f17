//! The document in the repository is that of the code.

use std::{fs, path::Path};

/// If it is set, the file is written instead of compared.
const UPDATE: &str = "UPDATE_OPENAPI";

#[test]
fn the_committed_document_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let document = crate::openapi();
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &document).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let differs = committed.lines().zip(document.lines()).position(|(one, other)| one != other);
    assert!(committed == document, "{} differs at line {differs:?}; {UPDATE}=1 writes it", path.display());
}

#[test]
fn no_two_types_share_a_name() {
    // A second one of a name would get a number.
    let document: serde_json::Value = serde_json::from_str(&crate::openapi()).unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let numbered: Vec<&String> =
        schemas.keys().filter(|name| name.ends_with(|end: char| end.is_ascii_digit())).collect();
    assert!(numbered.is_empty(), "{numbered:?}");
}
