//! How much memory compiled schemas take.

use std::{env, process::Command};

use redial_arguments::Schema;
use serde_json::{Value, json};

/// Reads the bytes of this process in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn properties(count: usize, one: impl Fn(usize) -> Value) -> Value {
    let properties: serde_json::Map<_, _> = (0..count).map(|n| (format!("p{n}"), one(n))).collect();
    json!({"type": "object", "properties": properties})
}

/// In a process of its own, where no other test takes memory meanwhile.
#[test]
fn a_schema_takes_no_more_memory_than_it_says() {
    let arguments = ["schema_memory::measure", "--exact", "--ignored", "--nocapture"];
    let measured = Command::new(env::current_exe().unwrap()).args(arguments).output().unwrap();
    let told = String::from_utf8_lossy(&measured.stdout) + String::from_utf8_lossy(&measured.stderr);
    assert!(measured.status.success() && told.contains("1 passed"), "{told}");
}

/// Measures all schemas of one kind, which are kept, so that nothing freed is used again.
#[test]
#[ignore = "measures its process, so the test above runs it in one of its own"]
fn measure() {
    let rows = [
        ("true", 1, properties(9_000, |_| json!(true))),
        ("types", 1, properties(8_000, |_| json!({"type": "string"}))),
        ("nested", 1, properties(300, |_| (0..20).fold(json!({}), |inner, _| json!({"properties": {"a": inner}})))),
        ("enum", 1, json!({"enum": (0..20_000).map(|n| json!({"a": n})).collect::<Vec<_>>()})),
        ("small patterns", 1, properties(3_000, |n| json!({"pattern": format!("[a-c]{n}.")}))),
        ("letters", 3, json!({"properties": {"a": {"pattern": "^\\p{L}{1,130}$"}}})),
        ("ordinary", 300, properties(20, |n| json!({"type": "string", "description": "what it is", "maxLength": n}))),
    ];
    let mut kept = Vec::new();
    for (name, count, schema) in rows {
        let before = resident();
        kept.extend((0..count).map(|_| Schema::compile(&schema).unwrap()));
        let (taken, said) = (resident().saturating_sub(before), kept.last().unwrap().memory() * count);
        println!("{name:16} {taken:10} of {said:10}");
        // What the process has includes what compiling has freed and the allocator keeps.
        assert!(taken <= said + said / 2 + (8 << 20), "{name}: {taken} of {said}");
    }
}
