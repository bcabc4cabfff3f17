use serde::Deserialize;
use serde_json::json;

use super::*;

/// A change of a schema, and words of a reason that is found; none: it lets no more through.
#[derive(Deserialize)]
struct Row {
    old: Value,
    new: Value,
    found: Option<String>,
}

fn reasons(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Loosened::default();
    found.compare_all(old, new);
    found.into_reasons()
}

#[test]
fn only_what_lets_more_through_is_found() {
    for row in include_str!("tests.jsonl").lines() {
        let Row { old, new, found: wanted } = serde_json::from_str(row).unwrap();
        let found = reasons(&old, &new);
        match wanted {
            Some(wanted) => assert!(found.iter().any(|reason| reason.contains(&wanted)), "{row}: {found:?}"),
            None => assert_eq!(found, Vec::<String>::new(), "{row}"),
        }
    }
}

#[test]
fn reasons_and_work_are_bounded() {
    let many = |value: Value| {
        let properties: Map<String, Value> = (0..1000).map(|n| (format!("p{n}"), value.clone())).collect();
        json!({"properties": properties})
    };
    let found = reasons(&many(json!({"type": "string"})), &many(json!({})));
    assert_eq!((found.len(), found[20].as_str()), (21, "and 980 more"));
    let long = json!({"properties": {"x".repeat(10_000): {"type": "string"}}});
    assert!(reasons(&long, &json!({}))[0].len() < 200);
    let values = |from: u32| json!({"enum": (from..from + 100_000).collect::<Vec<_>>()});
    assert_eq!(reasons(&values(0), &values(0)), Vec::<String>::new());
    assert_eq!(reasons(&values(0), &values(1)), ["the arguments: enum has other values"]);
}
