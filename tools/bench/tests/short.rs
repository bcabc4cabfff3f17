//! The bench runs: throughput, latency and costs, with the smallest numbers. Its figures are not compared with anything; but the
//! plans of the audit's questions are.
//!
//! Needs the program `redial` beside it: `cargo build -p redial`, if this test runs alone.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

use std::process::Command;

#[test]
fn a_short_run_measures_and_reports() {
    let output = Command::new(env!("CARGO_BIN_EXE_redial-bench"))
        .args(["--cases", "a,c,h", "--rounds", "1", "--calls", "1000", "--sequential", "10", "--json"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.len() >= 5, "{report}");
    assert!(rows.iter().all(|row| row["value"].as_f64().is_some_and(|value| value > 0.0)), "{report}");
    // Both have their servers in the same folder, so one runs after the other.
    no_question_scans_a_table();
}

fn no_question_scans_a_table() {
    let plans = ["plans", "--calls", "40000"];
    let output = Command::new(env!("CARGO_BIN_EXE_redial-bench")).args(plans).output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{errors}");
    for name in ["history --key ", "calls_key", "tasks --state running", "rolled up 39000 calls", "stats --by worker"] {
        assert!(out.contains(name), "no {name:?} in\n{out}");
    }
}
