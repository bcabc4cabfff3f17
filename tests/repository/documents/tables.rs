//! Tables of what the code declares: settings, error codes, metrics.

use std::process::Command;

use redial_proto::Code;
use regex::Regex;
use serde_json::Value;

use crate::generated::table;

/// Settings, by their environment variables: those that every command has, then those of the roles.
pub(crate) fn settings() -> String {
    let common = printed(&["settings", "--json"]);
    let common = common.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let common =
        common.filter_map(|setting| Some(row(setting["environment"].as_str()?, "all", setting["help"].as_str()?)));
    let flag = Regex::new(r"(?m)^ {6}--([a-z-]+).*\n((?: {10}.*\n)+)").unwrap();
    let mut of_roles: Vec<(String, String, Vec<&str>)> = Vec::new();
    for role in ["dispatcher", "worker", "gateway"] {
        for found in flag.captures_iter(&printed(&[role, "--help"])) {
            let variable = format!("REDIAL_{}", found[1].replace('-', "_").to_uppercase());
            if let Some((_, _, roles)) = of_roles.iter_mut().find(|(known, ..)| *known == variable) {
                roles.push(role);
            } else {
                let help = found[2].split_whitespace().collect::<Vec<_>>().join(" ");
                of_roles.push((variable, help, vec![role]));
            }
        }
    }
    let of_roles = of_roles.iter().map(|(variable, help, roles)| row(variable, &roles.join(", "), help));
    table(&["variable", "of", "meaning", "default"], common.chain(of_roles))
}

/// The help of a flag ends with its default, in brackets.
fn row(variable: &str, of: &str, help: &str) -> Vec<String> {
    let (meaning, rest) = help.split_once(" [default: ").unwrap_or((help, ""));
    let (default, rest) = rest.split_once(']').unwrap_or((rest, ""));
    vec![format!("`{variable}`"), of.to_owned(), format!("{meaning}{rest}"), default.to_owned()]
}

fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_redial")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Error codes, as their doc comments explain them.
pub(crate) fn codes() -> String {
    let schema = schemars::schema_for!(Code).to_value();
    let rows = schema["oneOf"].as_array().unwrap().iter().map(|code| {
        let name = code["const"].as_str().unwrap();
        let known: Code = name.parse().unwrap();
        // Gateways do not answer with what only commands report.
        let local = matches!(known, Code::MissingProgram | Code::OutputIncomplete);
        let status = if local { String::new() } else { redial_gateway::status(known).as_u16().to_string() };
        let meaning = code["description"].as_str().unwrap();
        vec![format!("[`{name}`]({name}.md)"), meaning.to_owned(), status]
    });
    let retryable = Code::ALL.iter().filter(|code| code.is_retryable()).map(|code| format!("`{code}`"));
    let retryable = retryable.collect::<Vec<_>>().join(", ");
    let table = table(&["code", "meaning", "HTTP status"], rows);
    format!("{table}\nThe same request may succeed later only after one of these: {retryable}.\n")
}

/// Instruments of OpenTelemetry.
pub(crate) fn metrics() -> String {
    let rows = redial_telemetry::INSTRUMENTS.iter().map(|one| {
        let attributes: Vec<String> = one.attributes.iter().map(|name| format!("`{name}`")).collect();
        let kind = if one.unit == "s" { format!("{}, s", one.kind) } else { one.kind.to_owned() };
        vec![format!("`{}`", one.name), kind, attributes.join(", "), one.about.to_owned()]
    });
    table(&["metric", "kind", "attributes", "meaning"], rows)
}
