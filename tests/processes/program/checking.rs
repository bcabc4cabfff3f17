//! `redial check` without a server: its exit codes and its output.

use std::fs;

use serde_json::Value;

use super::redial;

#[tokio::test]
async fn arguments_are_checked_offline() {
    let folder = tempfile::tempdir().unwrap();
    let schema = r#"{"properties": {"days": {"type": "integer"}}, "required": ["days"]}"#;
    fs::write(folder.path().join("schema.json"), schema).unwrap();
    let check = async |arguments: &str, more: &[&str]| {
        redial(folder.path(), &[], &[&["check", arguments, "--schema", "schema.json"], more].concat()).await
    };
    let runs = check("{'Days': '2'}", &["--json"]).await;
    assert_eq!((runs.code, runs.err.as_str()), (0, ""));
    let line: Value = serde_json::from_str(&runs.out).unwrap();
    assert_eq!((line["outcome"].as_str(), line["arguments"].to_string()), (Some("run"), r#"{"days":2}"#.to_owned()));
    assert_eq!(line["repairs"].as_array().unwrap().len(), 4);

    let feedback = check("{'Days': '2'}", &["--no-repairs"]).await;
    assert!(feedback.code == 1 && feedback.out.starts_with("1: feedback [malformed_arguments]"), "{}", feedback.out);
    let feedback = check(r#"{"days": "two"}"#, &[]).await;
    assert_eq!((feedback.code, feedback.err.as_str()), (1, ""));
    let told = "1: feedback [invalid_arguments]\n   /days: \"two\" was sent; allowed: integer\n   a valid call: {\"days\":1}\n";
    assert_eq!(feedback.out, told);
    let feedback = check(r#"{"days": 2"#, &["--json"]).await;
    let line: Value = serde_json::from_str(&feedback.out).unwrap();
    assert_eq!((line["sent"].as_str(), line["advice"].as_str()), (Some(r#"{"days": 2<<<HERE>>>"#), Some("cut_off")));

    let nothing = check("-", &[]).await;
    assert_eq!((nothing.code, nothing.out.as_str()), (0, ""));
}
