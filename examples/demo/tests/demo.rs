//! The demo itself, as `./dev demo` runs it. It needs `redial` beside it, as `cargo test --workspace` builds it.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn every_scenario_holds() {
    let demo = Command::new(env!("CARGO_BIN_EXE_redial-demo")).current_dir(ROOT).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&demo.stdout), String::from_utf8_lossy(&demo.stderr));
    assert!(demo.status.success(), "{out}{err}");
    assert!(out.contains("7 of 7 hold"), "{out}");
}

#[test]
fn the_demo_that_stays_shows_the_console_and_ends_when_it_is_told_to() {
    // A new folder, from which the servers' programs are found.
    let above = Path::new(ROOT).join(".redial");
    std::fs::create_dir_all(&above).unwrap();
    let folder = tempfile::Builder::new().prefix("demo-test").tempdir_in(above).unwrap();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_redial-demo"))
        .current_dir(folder.path())
        .arg("--stay")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.find(|line| line.starts_with("Look at what happened: http://")).unwrap();
    assert!(address.contains("/console"), "{address}");
    let pid = Pid::from_child(&demo);
    kill_process(pid, Signal::INT).unwrap();
    let rest: Vec<String> = lines.collect();
    let (status, mut told) = (demo.wait().unwrap(), String::new());
    demo.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(status.success() && rest.iter().any(|line| line.contains("7 of 7 hold")), "{rest:?} {told}");
    assert!(!told.contains("demo:"), "{told}");
}
