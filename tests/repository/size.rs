//! The size of each crate against its budget in `tools/size.budget`, as `./dev size` counts it.

use std::{collections::BTreeMap, fs, process::Command};

use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A budget is lowered with its crate: it leaves room for a small change, not for what was just deleted.
const ROOM: u64 = 200;
/// Tools and demo, of all source, in per cent.
const TOOLS: u64 = 15;

#[test]
fn each_crate_keeps_its_budget_of_lines() {
    let sizes = sizes();
    let budgets = fs::read_to_string(format!("{ROOT}/tools/size.budget")).unwrap();
    let lines = budgets.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut budgets: BTreeMap<&str, u64> = lines
        .filter_map(|line| line.split_once(char::is_whitespace))
        .map(|(folder, lines)| (folder, lines.trim().parse().unwrap()))
        .collect();
    let mut wrong = Vec::new();
    for (folder, lines) in &sizes {
        match budgets.remove(folder.as_str()) {
            None if *lines == 0 => {}
            None => wrong.push(format!("{folder} has {lines} lines of source and no budget")),
            Some(budget) if *lines > budget => {
                wrong.push(format!("{folder} has {lines} lines of source; its budget is {budget}"));
            }
            Some(budget) if budget - lines > ROOM => {
                wrong.push(format!("{folder} has {lines} lines of source: lower its budget of {budget}"));
            }
            Some(_) => {}
        }
    }
    wrong.extend(budgets.keys().map(|folder| format!("{folder} has a budget and no source")));
    let all: u64 = sizes.values().sum();
    let is_tool = |folder: &str| folder.starts_with("tools/") || folder.starts_with("examples/");
    let tools: u64 = sizes.iter().filter(|(folder, _)| is_tool(folder)).map(|(_, lines)| lines).sum();
    if tools * 100 > all * TOOLS {
        wrong.push(format!("tools and demo have {tools} of {all} lines of source; allowed: {TOOLS} %"));
    }
    assert!(wrong.is_empty(), "{}\ntools/size.budget says when a budget may be raised", wrong.join("\n"));
}

fn sizes() -> BTreeMap<String, u64> {
    let done = Command::new("./dev").args(["size", "--json"]).current_dir(ROOT).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let counted: Value = serde_json::from_slice(&done.stdout).unwrap();
    let folders = counted["folders"].as_array().unwrap();
    folders.iter().map(|row| (row["folder"].as_str().unwrap().to_owned(), row["source"].as_u64().unwrap())).collect()
}
