//! Tables of documents that are printed from the code.

use std::{fs, path::Path};

/// Compares what stands between `<!-- generated: NAME -->` and `<!-- end -->` in a document with what the code says. With
/// `UPDATE_DOCS=1` it is written there.
pub(crate) fn check(path: &str, name: &str, wanted: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let text = fs::read_to_string(&file).unwrap();
    let start = format!("<!-- generated: {name} -->\n");
    let (before, rest) = text.split_once(&start).unwrap_or_else(|| panic!("{path} has no block {name}"));
    let (found, after) = rest.split_once("<!-- end -->").unwrap_or_else(|| panic!("{path}: {name} has no end"));
    let wanted = format!("\n{wanted}\n");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, format!("{before}{start}{wanted}<!-- end -->{after}")).unwrap();
    } else {
        assert_eq!(found, wanted, "{path}: the block {name} is old; run this test with UPDATE_DOCS=1");
    }
}

/// A table of Markdown.
pub(crate) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let owned = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
    let rows = rows.into_iter().map(|cells| line(cells.iter().map(|cell| cell.replace('|', "\\|")).collect()));
    let rule = line(head.iter().map(|_| "---".to_owned()).collect());
    line(owned(head)) + &rule + &rows.collect::<String>()
}
