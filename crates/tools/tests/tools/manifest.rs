//! `tools.toml`: which manifests load, and the error messages of those that do not.

use std::fs;

use redial_tools::{CommandUser, Tool, load_with};

const GOOD: &str = r#"
[[tool]]
name = "get_weather"
description = "The weather of a city."
effect = "read"
timeout = "5s"
retry = { initial = "100ms", factor = 3, cap = "10s", max_attempts = 4, deadline = "5m" }
concurrency = 8
parameters_file = "weather.json"
[tool.http]
method = "GET"
url = "https://weather.example.com/v1/{{arguments.city}}?days={{arguments.days}}"
headers = { Authorization = "Bearer {{secret.WEATHER_KEY}}", X-Call = "{{call}}.{{attempt}}" }
connect_timeout = "2s"

[[tool]]
name = "订票"
effect = "keyed"
pool = "bookings"
concurrency = 2
[tool.parameters]
type = "object"
required = ["seat"]
additionalProperties = false
[tool.parameters.properties]
seat = { type = "integer", minimum = 1 }
[tool.http]
method = "POST"
url = "https://booking.example.com/bookings"
body = { seat = "{{arguments.seat}}", note = "for {{call}}" }

[[tool]]
name = "resize"
pool = "bookings"
concurrency = 2
retry_budget = { burst = 5, per_second = 0.5 }
polling = true
sequential = true
repairs = false
parameters = { type = "object", properties = { file = { type = "string" } }, required = ["file"] }
[tool.command]
argv = ["convert", "--size", "10", "--", "{{arguments.file}}"]
inherit = ["MAGICK_HOME"]
env = { TOKEN = "{{secret.WEATHER_KEY}}" }
exit_codes = { 2 = "invalid_arguments", 75 = { class = "unavailable", effect_possible = false } }
stderr_to_model = true
"#;

fn load(text: &str) -> Result<Vec<Tool>, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tools.toml"), text).unwrap();
    let weather =
        r#"{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}"#;
    fs::write(folder.path().join("weather.json"), weather).unwrap();
    fs::write(folder.path().join("broken.json"), "{").unwrap();
    let variable = |name: &str| (name == "WEATHER_KEY").then(|| "canary-5f1c".to_owned());
    load_with(&folder.path().join("tools.toml"), &CommandUser::own_or_unprivileged().unwrap(), &variable)
        .map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

#[test]
fn a_manifest_becomes_tools() {
    let tools = load(GOOD).unwrap();
    let specs: Vec<_> = tools.iter().map(|tool| (&tool.spec, tool.concurrency)).collect();
    insta::assert_json_snapshot!(specs);
    assert!(!format!("{tools:?}").contains("canary"));
    assert_eq!(load("").unwrap().len(), 0);
}

/// Writes a command tool with one more line in its entry, and one in its command.
fn entry(field: &str, command: &str) -> String {
    format!("[[tool]]\nname = \"a\"\n{field}\n[tool.command]\nargv = [\"true\"]\n{command}\n")
}

/// Writes an HTTP tool.
fn http(fields: &str) -> String {
    format!(
        "[[tool]]\nname = \"a\"\nparameters = {{ properties = {{ city = {{}} }} }}\n[tool.http]\n\
         url = \"https://example.com/\"\n{fields}\n"
    )
}

fn bad_exit_codes() -> [String; 12] {
    [
        entry("", "exit_codes = \"none\""),
        entry("", "exit_codes = { 0 = \"unavailable\" }"),
        entry("", "exit_codes = { 256 = \"unavailable\" }"),
        entry("", "exit_codes = { 075 = \"unavailable\" }"),
        entry("", "exit_codes = { EX_USAGE = \"unavailable\" }"),
        entry("", "exit_codes = { 75 = \"unavailabel\" }"),
        entry("", "exit_codes = { 75 = \"lost\" }"),
        entry("", "exit_codes = { 75 = 3 }"),
        entry("", "exit_codes = { 75 = { effect_possible = false } }"),
        entry("", "exit_codes = { 75 = { class = \"unavailable\", effect_possible = 0 } }"),
        entry("", "exit_codes = { 75 = { class = \"unavailable\", effect = true } }"),
        entry("", "[tool.command.exit_codes]\n2 = \"invalid_arguments\"\n75 = \"cancelled\""),
    ]
}

#[test]
fn every_mistake_is_reported_with_its_line() {
    let bad = [
        "[[tool]\n".to_owned(),
        "[[tools]]\nname = \"a\"\n".to_owned(),
        "[[tool]]\ndescription = \"a\"\n".to_owned(),
        "[[tool]]\nname = \"a\"\n".to_owned(),
        entry("descripton = \"x\"", ""),
        entry("effect = \"reed\"", ""),
        entry("timeout = \"30\"", ""),
        entry("timeout = \"25h\"", ""),
        entry("timeout = 30", ""),
        entry("retry = { initial = \"soon\" }", ""),
        entry("retry = { factor = 0.5 }", ""),
        entry("retry = { attempts = 3 }", ""),
        entry("retry_budget = { per_success = 2 }", ""),
        entry("concurrency = 0", ""),
        entry("pool = \"a.b\"", ""),
        entry("pool = \"models\"", ""),
        entry("", "").replace("name = \"a\"", "name = \"model-a\""),
        entry("polling = \"yes\"", ""),
        entry("repairs = 1", ""),
        entry("parameters = 3", ""),
        entry("parameters = {}\nparameters_file = \"weather.json\"", ""),
        entry("parameters_file = \"none.json\"", ""),
        entry("parameters_file = \"broken.json\"", ""),
        entry("", "folder = \"nowhere\""),
        entry("", "env = { REDIAL_CALL = \"x\" }"),
        entry("", "inherit = [\"A B\"]"),
        entry("", "env = { TOKEN = \"{{secret.NOT_SET}}\" }"),
        entry("", "shell = true"),
        entry("", "stderr_to_model = \"yes\""),
        entry("", "[tool.http]\nmethod = \"GET\"\nurl = \"http://example.com\""),
        entry("", "").replace("[\"true\"]", "[]"),
        entry("", "").replace("true", "{{arguments.city}}"),
        entry("", "").replace("\"true\"", "\"true\", \"{{secret.WEATHER_KEY}}\""),
        http("method = \"get\""),
        http("method = \"GET\"\nbody = \"arguments\""),
        http("method = \"POST\"\nbody = \"argument\""),
        http("method = \"POST\"\nbody = { city = \"{{arguments.citty}}\" }"),
        http("method = \"POST\"\nheaders = { Host = \"x\" }"),
        http("method = \"POST\"\nheaders = { \"a b\" = \"x\" }"),
        http("method = \"POST\"\nheaders = { A = \"{{arguments.city}}\" }"),
        http("method = \"POST\"\nerror_text_to_model = 1"),
        http("method = \"POST\"\nheaders = { A = \"{{secret.WEATHER_KEY}}\" }").replace("https:", "http:"),
        http("method = \"POST\"\nheaders = { Cookie = \"a=b\" }").replace("https:", "HTTP:"),
        http("method = \"POST\"\nconnect_timeout = \"0s\""),
        http("method = \"POST\"").replace("example.com/", "example.com/?k={{secret.WEATHER_KEY}}"),
        entry("", "") + &entry("", ""),
        entry("pool = \"p\"\nconcurrency = 1", "")
            + &entry("pool = \"p\"\nconcurrency = 2", "").replace("name = \"a\"", "name = \"b\""),
    ];
    let lines: Vec<_> = bad.iter().chain(&bad_exit_codes()).map(|text| load(text).unwrap_err()).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn all_mistakes_of_all_tools_are_told_at_once() {
    let text = r#"
[[tool]]
name = "a b"
timeout = 5
pool = "models"
retry = { factor = 0.5, cap = "367d", max_attempts = 0 }
[tool.http]
method = "get"
url = "example.com"
connect_timeout = 3
headers = { A = "{{secret.FIRST}}", B = "{{secret.SECOND}}" }

[[tool]]
name = "twice"
timeout = "25h"
[tool.command]
argv = 3
env = { C = "{{secret.THIRD}}" }

[[tool]]
name = "twice"
concurrency = 0
[tool.command]
folder = "nowhere"

[[tool]]
effect = "red"

[[tool]]
name = "good"
[tool.command]
argv = ["true"]
"#;
    insta::assert_snapshot!(load(text).unwrap_err());
}

#[test]
fn a_program_that_is_not_there_is_a_warning() {
    let warning = |argv: &str, more: &str| load(&entry("", more).replace("\"true\"", argv)).unwrap().remove(0).warning;
    let missing = warning("\"no-such-program\"", "").unwrap();
    let text = "tools.toml:5:9: tool \"a\": command.argv[0]: the program \"no-such-program\" does not exist in \
                /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin or is not executable; until it is \
                there, calls of this tool fail";
    assert!(missing.ends_with(text), "{missing}");
    assert!(warning("\"./no/such\"", "").is_some());
    assert_eq!(warning("\"/bin/sh\"", ""), None);
    assert_eq!(warning("\"no-such-program\"", "env = { PATH = \"/elsewhere\" }"), None, "its PATH is another one");
}

#[test]
fn command_tools_have_a_pool_of_their_own_unless_they_name_one() {
    let pool = |fields: &str| load(&entry(fields, "")).unwrap().remove(0).spec.pool;
    assert_eq!(pool(""), "commands");
    assert_eq!(pool("pool = \"default\""), "default");
    assert_eq!(pool("concurrency = 2"), "a");
    assert_eq!(pool("pool = \"commands\"\nconcurrency = 2"), "commands");
    let tools = load(&(entry("", "") + &http("method = \"GET\"").replace("name = \"a\"", "name = \"b\""))).unwrap();
    let starts_programs: Vec<_> = tools.iter().map(|tool| tool.starts_programs).collect();
    assert_eq!((starts_programs, tools[1].spec.pool.as_str()), (vec![true, false], "default"));
}

#[test]
fn a_column_counts_characters() {
    let error = load("[[tool]]\nname = \"北京\"\n[tool.command]\nargv = [\"true\"]\nfolder = \"上海\"\n").unwrap_err();
    assert!(error.starts_with("tools.toml:5:10: tool \"北京\": command.folder: "), "{error}");
}

#[test]
fn a_missing_file_is_reported() {
    let error = load_with(std::path::Path::new("/no/such/tools.toml"), &CommandUser::Own, &|_| None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/no/such/tools.toml: the file cannot be read: No such file or directory (os error 2)"
    );
}

#[test]
fn the_examples_of_the_guide_load() {
    let guide = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/TOOLS.md")).unwrap();
    let blocks = guide.split("```toml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tools.toml");
    fs::write(&path, blocks.collect::<String>()).unwrap();
    assert_eq!(
        load_with(&path, &CommandUser::own_or_unprivileged().unwrap(), &|_| Some("value".to_owned())).unwrap().len(),
        4
    );
}
