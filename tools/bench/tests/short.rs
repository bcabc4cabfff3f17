//! The bench runs: throughput, latency and costs, with the smallest numbers. Its figures are not compared with anything; but the
//! plans of the audit's questions are, and what the write-ahead log of a call holds.
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
    the_log_is_told_by_its_relations();
    no_question_scans_a_table();
}

fn the_log_is_told_by_its_relations() {
    let output = Command::new(BENCH).args(["wal", "--calls", "300", "--shared-buffers", "32MB"]).output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{errors}");
    let line = |start: &str| {
        let found = out.lines().find(|line| line.trim_start().starts_with(start));
        let bytes = found.unwrap_or_else(|| panic!("no {start:?} in\n{out}")).split_whitespace().rev();
        bytes.take(2).map(|bytes| bytes.parse::<f64>().unwrap()).collect::<Vec<_>>()
    };
    // Of Redial and of the baseline; each call has 200 bytes of arguments.
    for (start, least) in [("Heap INSERT ", 200.0), ("calls ", 400.0), ("all ", 800.0)] {
        assert!(line(start).iter().all(|bytes| *bytes > least), "{out}");
    }
}

fn no_question_scans_a_table() {
    let plans = ["plans", "--calls", "40000"];
    let output = Command::new(BENCH).args(plans).output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{errors}");
    for name in
        ["history --key ", "call_keys_pkey", "tasks --state running", "rolled up 39000 calls", "stats --by worker"]
    {
        assert!(out.contains(name), "no {name:?} in\n{out}");
    }
}
