//! `models.toml`: which files load, and the error messages of those that do not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use redial_llm::{Model, load_with};

const GOOD: &str = r#"
[models.small]
provider = "openai"
model = "qwen3-8b"
base_url = "http://127.0.0.1:8000/v1/"
profile = "qwen"
overrides = { calls = "one", stream_usage = false }
timeout = "90s"
retry = { initial = "1s", factor = 3, cap = "30s", max_attempts = 4, deadline = "10m" }
concurrency = 4
max_tokens = 2000
temperature = 0.2
input_price = 0.4
output_price = 1.6
extra = { top_p = 0.9, chat_template_kwargs = { enable_thinking = false } }

[models."claude"]
provider = "anthropic"
model = "claude-sonnet-4-5"
description = "The careful one."
key_env = "ANTHROPIC_API_KEY"
headers = { X-Team = "${TEAM}-a" }
stream = false

[models.plain]
provider = "react"
api = "anthropic"
model = "m"
base_url = "https://example.com"

[models.played]
provider = "script"
script = "rules.toml"
"#;

fn load(text: &str) -> Result<Vec<Model>, String> {
    load_script(text, "[[rule]]\ntext = \"hello\"\n")
}

fn load_script(text: &str, script: &str) -> Result<Vec<Model>, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("models.toml"), text).unwrap();
    fs::write(folder.path().join("rules.toml"), script).unwrap();
    let variable = |name: &str| match name {
        "ANTHROPIC_API_KEY" | "TEAM" => Some("canary-5f1c".to_owned()),
        "TWO_LINES" => Some("a\nb".to_owned()),
        _ => None,
    };
    load_with(&folder.path().join("models.toml"), &variable)
        .map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

#[test]
fn a_file_becomes_models() {
    let models = load(GOOD).unwrap();
    let specs: Vec<_> = models.iter().map(|model| (model.name(), model.spec(), model.concurrency())).collect();
    insta::assert_json_snapshot!(specs);
    assert!(!format!("{models:?}").contains("canary"));
    assert_eq!(load("").unwrap().len(), 0);
}

/// A model with more lines in its table.
fn openai(lines: &str) -> String {
    format!("# Models.\n[models.a]\nprovider = \"openai\"\nmodel = \"m\"\n{lines}\n")
}

#[test]
fn every_mistake_is_reported_with_its_line() {
    let bad = [
        "[models.a\n".to_owned(),
        "[model.a]\nprovider = \"openai\"\n".to_owned(),
        "[models.a]\nmodel = \"m\"\n".to_owned(),
        "[models.a]\nprovider = \"opanai\"\n".to_owned(),
        "[models.a]\nprovider = \"openai\"\n".to_owned(),
        "[models.\"gpt-4.1\"]\nprovider = \"openai\"\nmodel = \"gpt-4.1\"\n".to_owned(),
        "[models.a]\nprovider = \"react\"\nmodel = \"m\"\n".to_owned(),
        "[models.a]\nprovider = \"script\"\n".to_owned(),
        "[models.a]\nprovider = \"script\"\nscript = \"none.toml\"\n".to_owned(),
        "[models.a]\nprovider = \"script\"\nscript = \"rules.toml\"\nmodel = \"m\"\n".to_owned(),
        "[models.a]\nprovider = \"anthropic\"\nmodel = \"m\"\nprofile = \"qwen\"\n".to_owned(),
        "[models.a]\nprovider = \"react\"\napi = \"anthropic\"\nmodel = \"m\"\nbase_url = \"http://b\"\noverrides = {}\n"
            .to_owned(),
        openai("temprature = 1"),
        openai("temperature = 3"),
        openai("temperature = \"hot\""),
        openai("max_tokens = 0"),
        openai("input_price = -1"),
        openai("concurrency = 0"),
        openai("timeout = \"25h\""),
        openai("timeout = \"soon\""),
        openai("retry = { attempts = 3 }"),
        openai("retry = { factor = 0.5 }"),
        openai("retry = { cap = \"1\" }"),
        openai("profile = \"gpt\""),
        openai("overrides = { arguments = \"dict\" }"),
        openai("overrides = { argument = \"text\" }"),
        openai("base_url = \"api.example.com\""),
        openai("base_url = \"ftp://example.com\""),
        openai("base_url = \"https://me:canary-5f1c@example.com\""),
        openai("base_url = \"https://example.com/?key=1\""),
        openai("key_env = \"sk-canary 5f1c\""),
        openai("base_url = \"http://vllm:8000/v1\"\nkey_env = \"NOT_SET\""),
        openai("base_url = \"http://10.0.0.7/v1\"\nheaders = { A = \"x\" }"),
        openai("headers = { Host = \"x\" }"),
        openai("headers = { \"a b\" = \"x\" }"),
        openai("headers = { A = \"${TEAM\" }"),
        openai("headers = { A = \"好\\n\" }"),
        openai("api = \"openai\""),
        openai("script = \"rules.toml\""),
    ];
    let lines: Vec<_> = bad.iter().map(|text| load(text).unwrap_err()).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_model_has_the_retry_budget_of_its_entry() {
    let models = load(&openai("retry_budget = { burst = 5, per_second = 0.5 }")).unwrap();
    let budget = models[0].spec().retry_budget;
    assert_eq!((budget.burst, budget.per_success, budget.per_second), (5.0, 0.1, 0.5));
    let error = load(&openai("retry_budget = { per_second = 0 }")).unwrap_err();
    assert!(error.starts_with("models.toml:"), "{error}");
    assert!(error.contains("retry_budget.per_second is 0; allowed: 0.001 to 100000"), "{error}");
}

#[test]
fn every_mistake_in_a_script_is_reported_with_its_line() {
    let bad = [
        "[[rules]]\ntext = \"a\"\n",
        "style = \"json\"\n",
        "[[rule]]\n",
        "\n[[rule]]\nname = \"x\"\ntext = \"a\"\nerror = { status = 500 }\n",
        "[[rule]]\ntext = \"a\"\n[[rule]]\ntext = \"{{tomorrow}}\"\n",
        "[[rule]]\ntext = \"{{date\"\n",
        "[[rule]]\ntext = \"a\"\nwhen = { contain = \"a\" }\n",
        "[[rule]]\ntext = \"a\"\nwhen = { matches = \"(\" }\n",
        "[[rule]]\ntext = \"a\"\nwhen = { last = \"robot\" }\n",
        "[[rule]]\ntext = \"a\"\ntimes = 0\n",
        "[[rule]]\ntext = \"a\"\ndelay = \"1\"\n",
        "[[rule]]\ntext = \"a\"\nchunks = 20000\n",
        "[[rule]]\ntext = \"a\"\napi = \"openai\"\n",
        "[[rule]]\nbody = \"a\"\n",
        "[[rule]]\nbody = \"a\"\napi = \"react\"\nthought = \"b\"\n",
        "[[rule]]\ncalls = [{ name = \"a\", arguments = 3 }]\n",
        "[[rule]]\ncalls = [{ name = \"a\", arguments = { b = [\"{{x}}\"] } }]\n",
        "[[rule]]\ncalls = [{ name = \"a\", arguments = { b = 2026-01-01 } }]\n",
        "[[rule]]\nerror = {}\n",
        "[[rule]]\nerror = { class = \"slow\" }\n",
        "[[rule]]\nerror = { status = 200 }\n",
        "[[rule]]\nerror = { status = 429, retry_after = \"2\" }\n",
    ];
    let model = "[models.a]\nprovider = \"script\"\nscript = \"rules.toml\"\n";
    let lines: Vec<_> = bad.iter().map(|script| load_script(model, script).unwrap_err()).collect();
    insta::assert_snapshot!(lines.join("\n---\n"));
}

#[test]
fn all_mistakes_of_all_models_and_scripts_are_told_at_once() {
    let models = r#"
[models."a.b"]
provider = "openai"
model = 3
base_url = "example.com"
input_price = -1
output_price = "free"
retry = { factor = 0.5, max_attempts = 0, cap = "soon" }
timeout = "25h"

[models.b]
provider = "react"
temperature = 3

[models.c]
provider = "script"
script = "none.toml"
model = "m"
temperature = 1

[models.d]
provider = "openai"
modle = "m"

[models.e]
provider = "script"
retry_budget = { burst = 0 }

[models.f]
model = 3
"#;
    insta::assert_snapshot!(load(models).unwrap_err());
}

#[test]
fn all_mistakes_of_a_script_are_told_once_however_many_models_have_it() {
    let models = r#"
[models.c]
provider = "script"
script = "rules.toml"

[models.d]
provider = "script"
script = "rules.toml"
temperature = 1
"#;
    let script = r#"
style = "json"
other = 1

[[rule]]
times = 0
text = "{{tomorrow}}"
thought = "{{date"
when = { matches = "[", last = "robot" }
delay = "1"

[[rule]]
error = { status = 200 }
chunks = 20000
txt = "a"
"#;
    insta::assert_snapshot!(load_script(models, script).unwrap_err());
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
