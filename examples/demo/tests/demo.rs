//! The demo itself, as `./dev demo` runs it. It needs `redial` beside it, as `cargo test --workspace` builds it.

use std::process::Command;

#[test]
fn every_scenario_holds() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let demo = Command::new(env!("CARGO_BIN_EXE_redial-demo")).current_dir(root).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&demo.stdout), String::from_utf8_lossy(&demo.stderr));
    assert!(demo.status.success(), "{out}{err}");
    assert!(out.contains("7 of 7 hold"), "{out}");
}
