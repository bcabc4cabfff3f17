//! Time grows linearly with the length of the text, whatever it contains, and depth uses no stack.

use std::time::Duration;

use redial_arguments::{Repairs, Schema};
use serde_json::json;

/// Adversarial texts of about this many bytes.
fn hostile(bytes: usize) -> Vec<(&'static str, String)> {
    let fill = |part: &str| part.repeat(bytes / part.len());
    vec![
        ("open arrays", fill("[")),
        ("open objects", fill("{'a':")),
        ("quotes", fill("\"")),
        ("single quotes", fill("'")),
        ("fences", fill("``` ")),
        ("words", fill("word ")),
        ("comments", fill("/**/")),
        ("a comment without end", format!("{{/*{}", fill("/*"))),
        ("blanks", format!("{{{}", fill(" "))),
        ("foreign blanks", format!("{{{}}}", fill("\u{a0}"))),
        ("backslashes", format!("{{\"a\":\"{}\"}}", fill("\\d"))),
        ("apostrophes", format!("{{'a':'{}'}}", fill("\\'"))),
        ("control characters", format!("{{\"a\":\"{}\"}}", fill("\n"))),
        ("numbers", format!("{{\"a\":[{}1],}}", fill("1,"))),
        ("a long number", format!("{{\"a\":{},}}", fill("1"))),
        ("commas with comments", format!("{{\"a\":[{}]}}", fill("1,/* */"))),
        ("members", format!("{{{}\"z\":1,}}", numbered("k", bytes / 12))),
        ("the same member", format!("{{{}}}", fill("\"abc\":[1,2,3],"))),
        ("keys to fold", format!("{{{}\"z\":1}}", numbered("DAYS", bytes / 14))),
        ("broken values", format!("{{\"list\":[{}\"x\"]}}", fill("\"x\","))),
        ("values to coerce", format!("{{\"list\":[{}\"1\"]}}", "\"1\",".repeat(900))),
        ("one key over many values", format!("{{\"{}\":[{}1]}}", "k".repeat(bytes / 2), "1,".repeat(bytes / 4))),
        ("words with one object", format!("{}{{\"list\": 1}}{}", fill("word "), fill(" word"))),
        ("tags", format!("{}{{}}{}", fill("<a>"), fill("</a>"))),
        ("tags without an end", format!("{}{{}}{}", fill("<a"), fill("<a"))),
        ("a long name of a call", format!("{}({{}})", fill("name"))),
        ("escaped quotes", format!("{{{}}}", fill("\\\""))),
        ("escaped members", format!("{{{}\\\"z\\\":1}}", fill("\\\"list\\\":1,"))),
        ("backslashes alone", fill("\\")),
        ("comments that hide", format!("{{\"list\":1 {}}}", fill("// "))),
        ("angle brackets", fill("<")),
        ("literals in capitals", format!("{{\"a\":[{}NULL]}}", fill("NULL,"))),
        ("strings in strings", (0..3).fold(fill("{"), |text, _| json!(text).to_string())),
    ]
}

/// This many members with different keys.
fn numbered(key: &str, members: usize) -> String {
    (0..members).map(|n| json!({format!("{key}{n:06}"): 1}).to_string().replace(['{', '}'], "") + ",").collect()
}

fn schema() -> Schema {
    let declared: serde_json::Map<String, serde_json::Value> =
        (0..2000).map(|n| (format!("days_{n:06}"), json!({"type": "integer"}))).collect();
    let mut properties = declared;
    properties.insert("list".to_owned(), json!({"items": {"type": "integer"}}));
    let others = json!({"items": {"type": "string"}});
    Schema::compile(&json!({"properties": properties, "additionalProperties": others})).unwrap()
}

/// Processor time of this thread, so that other processes do not affect the measurement.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

fn fastest(schema: &Schema, text: &str) -> Duration {
    let run = |_| {
        let began = cpu();
        let _ = schema.resolve(text, Repairs::On);
        let _ = schema.resolve(text, Repairs::Off);
        cpu().saturating_sub(began)
    };
    (0..3).map(run).min().unwrap()
}

#[test]
fn time_grows_linearly() {
    let schema = schema();
    let (small, large) = (hostile(25_000), hostile(200_000));
    let mut slowest = (Duration::ZERO, "");
    for ((name, small), (_, large)) in small.iter().zip(&large) {
        let (short, long) = (fastest(&schema, small), fastest(&schema, large));
        slowest = slowest.max((long, name));
        // The text is 8 times as long; quadratic time would be 64 times as much. 32 leaves room for cache effects.
        let allowed = short * 32 + Duration::from_millis(50);
        assert!(long < allowed, "{name}: {short:?} for 25 kB, {long:?} for 200 kB");
    }
    println!("slowest of 200 kB: {} in {:?}", slowest.1, slowest.0);
}

#[test]
fn depth_uses_no_stack() {
    let small_stack = std::thread::Builder::new().stack_size(256 * 1024);
    let run = || {
        let schema = Schema::compile(&json!({})).unwrap();
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{'a':[", "]}")] {
            for depth in [31, 60, 65, 1000, 20_000] {
                let text = format!("{{'a':{}1{}}}", open.repeat(depth), close.repeat(depth));
                let ran = schema.resolve(&text, Repairs::On).is_ok();
                let levels = depth * open.matches(['[', '{']).count() + 1;
                assert_eq!(ran, levels <= 64, "{open} {depth}");
            }
        }
    };
    small_stack.spawn(run).unwrap().join().unwrap();
}
