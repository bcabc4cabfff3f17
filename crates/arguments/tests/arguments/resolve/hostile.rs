//! Texts that are as long or as deep as may be: a refusal is short and says by how much a limit was exceeded, depth uses no
//! stack, and time grows linearly with the length, or these tests would take hours.

use redial_arguments::{Repairs, Schema};
use redial_proto::{Advice, Limited};
use serde_json::json;

use super::anything;

/// Texts of this many bytes, or of a few times as many.
const BYTES: usize = 1 << 18;

fn hostile() -> Vec<String> {
    let fill = |part: &str| part.repeat(BYTES / part.len());
    // Members with different keys.
    let numbered = |key: &str| (0..BYTES / 16).map(|n| format!("\"{key}{n:06}\":1,")).collect::<Vec<_>>().concat();
    let mut texts: Vec<String> = ["[", "{'a':", "\"", "'", "``` ", "word ", "/**/", "\\", "<"].map(fill).into();
    texts.extend([
        format!("{{/*{}", fill("/*")),
        format!("{{{}", fill(" ")),
        format!("{{{}}}", fill("\u{a0}")),
        format!("{{\"a\":\"{}\"}}", fill("\\d")),
        format!("{{'a':'{}'}}", fill("\\'")),
        format!("{{\"a\":\"{}\"}}", fill("\n")),
        format!("{{\"a\":\"{}", fill("\u{1}")),
        format!("{{\"a\":[{}1],}}", fill("1,")),
        format!("{{\"a\":{},}}", fill("1")),
        format!("{{\"a\":[{}]}}", fill("1,/* */")),
        format!("{{{}\"z\":1,}}", numbered("k")),
        format!("{{{}}}", fill("\"abc\":[1,2,3],")),
        format!("{{{}\"z\":1}}", numbered("DAYS")),
        format!("{{\"list\":[{}\"x\"]}}", fill("\"x\",")),
        format!("{{\"{}\":[{}1]}}", "k".repeat(BYTES / 2), "1,".repeat(BYTES / 4)),
        format!("{}{{\"list\": 1}}{}", fill("word "), fill(" word")),
        format!("{}{{}}{}", fill("<a>"), fill("</a>")),
        format!("{}{{}}{}", fill("<a"), fill("<a")),
        format!("{}({{}})", fill("name")),
        format!("{{{}}}", fill("\\\"")),
        format!("{{{}\\\"z\\\":1}}", fill("\\\"list\\\":1,")),
        format!("{{\"list\":1 {}}}", fill("// ")),
        format!("{{\"a\":[{}NULL]}}", fill("NULL,")),
        (0..3).fold(fill("{"), |text, _| json!(text).to_string()),
        "[".repeat(16 << 20),
    ]);
    texts
}

#[test]
fn a_refusal_of_a_hostile_text_is_short_and_has_an_example() {
    let mut properties: serde_json::Map<_, _> =
        (0..2000).map(|n| (format!("days_{n:06}"), json!({"type": "integer"}))).collect();
    properties.insert("list".to_owned(), json!({"items": {"type": "integer"}}));
    properties.insert("z".to_owned(), json!({"type": "string", "minLength": 3}));
    let schema =
        json!({"properties": properties, "required": ["z"], "additionalProperties": {"items": {"type": "string"}}});
    let schema = Schema::compile(&schema).unwrap();
    for (raw, repairs) in hostile().iter().flat_map(|raw| [(raw, Repairs::On), (raw, Repairs::Off)]) {
        let refusal = schema.resolve(raw, repairs).unwrap_err();
        let help = serde_json::to_string(&refusal.help).unwrap();
        assert!(help.len() < 5_000 && refusal.message.len() < 20_000, "{help}");
        assert!(refusal.help.example.is_some_and(|example| example["z"] == "text"), "{raw:.20}");
    }
}

#[test]
fn depth_uses_no_stack() {
    let small_stack = std::thread::Builder::new().stack_size(256 * 1024);
    let run = || {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{'a':[", "]}")] {
            for depth in [31, 60, 65, 1000, 20_000] {
                let text = format!("{{'a':{}1{}}}", open.repeat(depth), close.repeat(depth));
                let ran = anything().resolve(&text, Repairs::On).is_ok();
                let levels = depth * open.matches(['[', '{']).count() + 1;
                assert_eq!(ran, levels <= 64, "{open} {depth}");
            }
        }
    };
    small_stack.spawn(run).unwrap().join().unwrap();
}

#[test]
fn whoever_exceeds_a_limit_is_told_by_how_much() {
    let of = |raw: &str| match anything().resolve(raw, Repairs::On).unwrap_err().help.advice {
        Advice::OverLimit(limit) => (limit.of, limit.allowed, limit.over),
        advice => panic!("{advice:?}"),
    };
    assert_eq!(of(&format!("{{\"a\":\"{}\"}}", "x".repeat(16 << 20))), (Limited::Bytes, 16 << 20, 8));
    assert_eq!(of(&format!("{{\"a\":{}1{}}}", "[".repeat(70), "]".repeat(70))), (Limited::Levels, 64, 7));
    // The key is one of them.
    let quotes = |values: usize| format!("{{'a':[{}'x']}}", "'x',".repeat(values - 1));
    assert_eq!(anything().resolve(&quotes(999), Repairs::On).unwrap().repairs.len(), 1_000);
    assert_eq!(of(&quotes(1_000)), (Limited::Repairs, 1_000, 1));
    let many = format!("{{\"a\":[{}0]}}", "[1],".repeat(300_000));
    assert_eq!(of(&many), (Limited::Values, 500_000, 100_003));
    assert_eq!(of(&serde_json::to_string(&many).unwrap()), (Limited::Values, 500_000, 100_003), "in a string");
    let refused =
        anything().resolve(&format!("{{\"a\":{}1{}}}", "[".repeat(70), "]".repeat(70)), Repairs::Off).unwrap_err();
    assert!(matches!(refused.help.advice, Advice::OverLimit(limit) if limit.over == 7), "{:?}", refused.help);
}
