//! A run with few calls and faults, to its end. `./dev chaos` is the real one.
//!
//! Needs the program `redial` beside it: `cargo build -p redial`, if this test runs alone.

use std::process::Command;

#[test]
fn a_short_run_keeps_every_promise() {
    let output = Command::new(env!("CARGO_BIN_EXE_redial-chaos"))
        .args(["--calls", "300", "--tasks", "5", "--faults", "4", "--minutes", "3"])
        .output()
        .unwrap();
    let (report, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // 3: nothing was broken, and the machine stood still for so long that the run proves nothing.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{errors}\n{report}");
    assert!(report.contains("\n4 faults in ") && report.contains("hostile clients"), "{report}");
    // Whoever receives nothing proves nothing.
    let (_, own) = report.split_once(", of which ").and_then(|(_, rest)| rest.split_once(", of which ")).unwrap();
    assert!(own.split(' ').next().and_then(|n| n.parse().ok()).is_some_and(|n: u64| n >= 20), "{report}");
}
