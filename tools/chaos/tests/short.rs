//! A run with few calls and faults, to its end. `./dev chaos` is the real one.
//!
//! Needs the program `redial` beside it: `cargo build -p redial`, if this test runs alone.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

use std::process::Command;

use serde_json::Value;

/// Runs to the end, and checks what every report must say.
fn run(faults: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_redial-chaos"))
        // It takes half of that; on a slow machine all faults need it.
        .args(["--calls", "300", "--tasks", "5", "--minutes", "3", "--json"])
        .args(faults)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    // 3: nothing was broken, and the machine stood still for so long that the run proves nothing.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{errors}\n{}", String::from_utf8_lossy(&output.stdout));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let invariants = report["invariants"].as_array().unwrap();
    assert!(invariants.len() > 10 && invariants.iter().all(|invariant| invariant["violations"] == 0), "{report}");
    assert!(report["numbers"]["calls_on_record"].as_u64().is_some_and(|calls| calls >= 300), "{report}");
    report
}

fn kinds(report: &Value) -> Vec<&str> {
    report["faults"].as_array().unwrap().iter().filter_map(|fault| fault["kind"].as_str()).collect()
}

#[test]
fn a_short_run_keeps_every_promise() {
    let report = run(&["--faults", "4"]);
    assert_eq!(report["faults_injected"], 4, "{report}");
    assert!(kinds(&report).contains(&"hostile clients"), "{report}");
    // Whoever receives nothing proves nothing.
    assert!(report["numbers"]["messages_with_their_own"].as_u64().is_some_and(|messages| messages >= 20), "{report}");
}

#[test]
fn so_does_one_on_a_cluster_with_a_standby() {
    let report = run(&["--cluster", "--standby", "--only", "leaders,failover", "--faults", "2"]);
    assert_eq!(kinds(&report), ["Postgres failover", "kill -9 leaders of streams"], "{report}");
}
