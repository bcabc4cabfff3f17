//! `models.toml`: which files load, and the error messages of those that do not.

use std::fs;

use redial_llm::{Model, load_with};

use crate::request;

fn load(text: &str) -> Result<Vec<Model>, String> {
    load_script(text, "[[rule]]\ntext = \"hello\"\n")
}

fn load_script(text: &str, script: &str) -> Result<Vec<Model>, String> {
    request::load(text, script, &|name| match name {
        "ANTHROPIC_API_KEY" | "TEAM" => Some("canary-5f1c".to_owned()),
        "TWO_LINES" => Some("a\nb".to_owned()),
        _ => None,
    })
}

#[test]
fn a_file_becomes_models() {
    let models = load(include_str!("models/good.toml")).unwrap();
    let specs: Vec<_> = models.iter().map(|model| (model.name(), model.spec(), model.concurrency())).collect();
    insta::assert_json_snapshot!(specs);
    assert!(!format!("{models:?}").contains("canary"));
    assert_eq!(load("").unwrap().len(), 0);
}

#[test]
fn every_mistake_is_reported_with_its_line() {
    let lines: Vec<_> =
        include_str!("models/mistakes.txt").split("---\n").map(|text| load(text).unwrap_err()).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn every_mistake_in_a_script_is_reported_with_its_line() {
    let model = "[models.a]\nprovider = \"script\"\nscript = \"rules.toml\"\n";
    let bad = include_str!("models/script_mistakes.txt").split("---\n");
    let lines: Vec<_> = bad.map(|script| load_script(model, script).unwrap_err()).collect();
    insta::assert_snapshot!(lines.join("\n---\n"));
}

#[test]
fn all_mistakes_of_all_models_and_scripts_are_told_at_once() {
    insta::assert_snapshot!(load(include_str!("models/many_mistakes.toml")).unwrap_err());
}

#[test]
fn all_mistakes_of_a_script_are_told_once_however_many_models_have_it() {
    let model = |name| format!("\n[models.{name}]\nprovider = \"script\"\nscript = \"rules.toml\"\n");
    let models = format!("{}{}temperature = 1\n", model("c"), model("d"));
    let script = include_str!("models/many_script_mistakes.toml");
    insta::assert_snapshot!(load_script(&models, script).unwrap_err());
}

#[test]
fn a_missing_file_is_reported() {
    let error = load_with(std::path::Path::new("/no/such/models.toml"), &|_| None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/no/such/models.toml: the file cannot be read: No such file or directory (os error 2)"
    );
}

#[test]
fn the_examples_of_the_guide_load() {
    let guide = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/MODELS.md")).unwrap();
    let blocks = guide.split("```toml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    let (models, scripts): (Vec<_>, Vec<_>) = blocks.partition(|block| block.contains("[models."));
    assert_eq!((models.len(), scripts.len()), (4, 2), "examples of models and of scripts");
    for script in scripts {
        assert_eq!(load_script(&models.concat().replace("demo.toml", "rules.toml"), script).unwrap().len(), 6);
    }
}
