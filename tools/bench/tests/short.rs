//! The bench runs with the smallest numbers: its figures are not compared with anything, but the plans of the audit's
//! questions are.
//!
//! Needs the program `redial` beside it: `cargo build -p redial`, if this test runs alone.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

use std::{path::Path, process::Command};

const BENCH: &str = env!("CARGO_BIN_EXE_redial-bench");

#[test]
fn a_short_run_measures_and_reports() {
    let output = Command::new(BENCH)
        .args(["--quick", "--cases", "a,c,h,m", "--rounds", "1", "--calls", "1000", "--sequential", "10", "--json"])
        .args(["--shared-buffers", "32MB"])
        .arg("--against")
        .arg(Path::new(BENCH).with_file_name("redial"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let older = rows.iter().filter(|row| row["against"]["what"] == "older program").count();
    assert!((rows.len(), older) == (14, 5), "{report}");
    let postgres = &report["samples"]["processor"]["redial"]["postgres"];
    assert!(postgres[0].as_f64().is_some_and(|seconds| seconds > 0.0), "{report}");
    assert!(rows.iter().all(|row| row["value"].as_f64().is_some_and(|value| value > 0.0)), "{report}");
    // Both have their servers in the same folder, so one runs after the other.
    no_question_scans_a_table();
}

fn no_question_scans_a_table() {
    let plans = ["plans", "--calls", "40000"];
    let output = Command::new(BENCH).args(plans).output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{errors}");
    for name in ["history --key ", "call_keys_pkey", "tasks --state running", "stats --by worker"] {
        assert!(out.contains(name), "no {name:?} in\n{out}");
    }
}
