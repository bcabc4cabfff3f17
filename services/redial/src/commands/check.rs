//! `redial check`: resolves arguments offline, for authors of tools.

use std::{
    fs,
    io::{BufRead, Read},
    path::Path,
    process::ExitCode,
};

use redial_arguments::{Refusal, Repairs, Resolved, Schema, tool_name};
use redial_proto::{ApiError, Code, FieldError, Help, Repair, limits::MAX_PAYLOAD};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use crate::{cli::CheckArgs, exit, output, settings::Settings};
use redial_worker::CommandUser;

/// Replaces the secrets of a manifest, which are not needed because no tool runs.
const NO_SECRET: &str = "not-needed-to-check";

pub(crate) fn run(settings: &Settings, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let (schema, allows_repairs) = match (&args.schema, &args.tool) {
        (Some(file), _) => (schema_of_file(file)?, true),
        (None, tool) => schema_of_tool(&args.tools, tool.as_deref().unwrap_or_default())?,
    };
    let repairs = if args.no_repairs || !allows_repairs { Repairs::Off } else { Repairs::On };
    let mut feedback = false;
    let from_input = args.arguments == "-";
    let mut one = |line: u64, raw: &str| -> anyhow::Result<()> {
        let done = if from_input { schema.resolve_json(raw, repairs) } else { schema.resolve(raw, repairs) };
        feedback |= done.is_err();
        if settings.json() {
            return output::json(&Verdict::new(line, &done)?);
        }
        output::line(text(line, &done))?;
        Ok(())
    };
    if from_input {
        each_line(std::io::stdin().lock(), one)?;
    } else {
        one(1, &args.arguments)?;
    }
    Ok(if feedback { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
}

fn schema_of_file(file: &Path) -> Result<Schema, ApiError> {
    let wrong = |what: String| ApiError::new(Code::InvalidValue, format!("{}: {what}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| wrong(format!("the file cannot be read: {error}")))?;
    let schema: Value = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("not JSON: {}", redial_files::json_mistake(&text, &error))))?;
    Schema::compile(&schema).map_err(|error| wrong(error.to_string()))
}

/// Returns the schema, and whether the tool allows repairs.
fn schema_of_tool(manifest: &Path, name: &str) -> Result<(Schema, bool), ApiError> {
    let variable = |name: &str| Some(std::env::var(name).unwrap_or_else(|_| NO_SECRET.to_owned()));
    let invalid = |what: String| ApiError::new(Code::InvalidManifest, what);
    let tools =
        redial_tools::load_with(manifest, &CommandUser::Root, &variable).map_err(|error| invalid(error.to_string()))?;
    let Some(tool) = tools.iter().find(|tool| tool.spec.name == name) else {
        let names: Vec<&str> = tools.iter().map(|tool| tool.spec.name.as_str()).collect();
        let what = match tool_name(name, names) {
            Ok((meant, _)) => format!("no tool {name:?} is declared; did you mean {meant:?}?"),
            Err(refusal) => refusal.message.replace("offered", "declared"),
        };
        return Err(ApiError::new(Code::InvalidValue, format!("{}: {what}", manifest.display())));
    };
    let schema = Schema::compile(&tool.spec.parameters)
        .map_err(|error| invalid(format!("{}: tool {name:?}: parameters: {error}", manifest.display())))?;
    Ok((schema, tool.spec.repairs))
}

/// Passes on each line that is not empty, with its number. A line that is too long is passed on as well, so that it gets a
/// refusal.
fn each_line(mut input: impl BufRead, mut one: impl FnMut(u64, &str) -> anyhow::Result<()>) -> anyhow::Result<()> {
    for number in 1.. {
        let mut line = Vec::new();
        let most = MAX_PAYLOAD as u64 + 2;
        if input.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let too_long = line.len() as u64 == most && !line.ends_with(b"\n");
        if too_long {
            input.skip_until(b'\n')?;
        }
        if let Err(error) = std::str::from_utf8(&line)
            && !too_long
        {
            return Err(ApiError::new(Code::InvalidValue, format!("line {number} is not UTF-8: {error}")).into());
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']);
        if !text.is_empty() {
            one(number, text)?;
        }
    }
    Ok(())
}

/// One line of `--json`.
#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum Verdict<'a> {
    Run {
        line: u64,
        arguments: Box<RawValue>,
        repairs: &'a [Repair],
        undeclared: &'a [String],
    },
    Feedback {
        line: u64,
        class: &'static str,
        message: &'a str,
        details: &'a [FieldError],
        #[serde(flatten)]
        help: &'a Help,
    },
}

impl<'a> Verdict<'a> {
    fn new(line: u64, done: &'a Result<Resolved<'_>, Refusal>) -> anyhow::Result<Self> {
        Ok(match done {
            Ok(done) => Self::Run {
                line,
                arguments: one_line(&done.arguments)?,
                repairs: &done.repairs,
                undeclared: &done.undeclared,
            },
            Err(refusal) => Self::Feedback {
                line,
                class: refusal.class.as_str(),
                message: &refusal.message,
                details: &refusal.details,
                help: &refusal.help,
            },
        })
    }
}

/// Removes line breaks; strings in JSON contain none.
fn one_line(json: &str) -> serde_json::Result<Box<RawValue>> {
    RawValue::from_string(json.replace(['\n', '\r'], " "))
}

fn text(line: u64, done: &Result<Resolved<'_>, Refusal>) -> String {
    let mut lines = Vec::new();
    match done {
        Ok(done) => {
            lines.push(format!("{line}: run {}", done.arguments.replace(['\n', '\r'], " ").trim()));
            lines.extend(changes(&done.repairs, &done.undeclared));
        }
        Err(refusal) => {
            if refusal.details.is_empty() {
                lines.push(format!("{line}: feedback [{}]: {}", refusal.class, refusal.message));
            } else {
                lines.push(format!("{line}: feedback [{}]", refusal.class));
                lines.extend(refusal.details.iter().map(|error| format!("   {error}")));
            }
            let help = &refusal.help;
            lines.extend(help.sent.iter().map(|sent| format!("   sent: {}", sent.replace(['\n', '\r'], " "))));
            lines.extend(changes(&help.repairs, &help.undeclared));
            lines.extend(help.example.iter().map(|example| format!("   a valid call: {example}")));
        }
    }
    output::plain(&lines.join("\n"))
}

/// Says what was repaired, and what the schema does not declare.
fn changes(repairs: &[Repair], undeclared: &[String]) -> Vec<String> {
    let repairs = repairs.iter().map(|repair| format!("   repaired: {repair}"));
    let undeclared = undeclared.iter().map(|path| format!("   not declared by the schema: {path}"));
    repairs.chain(undeclared).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let schema = json!({
            "properties": {"location": {"type": "string"}, "days": {"type": "integer", "maximum": 5}},
            "required": ["location"]
        });
        Schema::compile(&schema).unwrap()
    }

    const INPUT: &str = concat!(
        "{\"location\": \"Paris\"}\n",
        "\n",
        "{'Location': 'Paris', 'days': '2', 'units': 'C'}\r\n",
        "{\"location\": \"Paris\"\n",
        "{\"days\": 9}\n",
        "{'location': 'Paris', 'days': 9, 'units': 'C'}\n",
        "\"```json\\n{\\\"location\\\":\\n\\\"Paris\\\"}\\n```\"",
    );

    #[test]
    fn the_result_of_each_line() {
        let (mut texts, mut json) = (Vec::new(), Vec::new());
        let check = |line, raw: &str| {
            let done = schema().resolve_json(raw, Repairs::On);
            texts.push(text(line, &done));
            json.push(serde_json::to_string(&Verdict::new(line, &done)?)?);
            Ok(())
        };
        each_line(INPUT.as_bytes(), check).unwrap();
        insta::assert_snapshot!(texts.join("\n"));
        insta::assert_snapshot!(json.join("\n"));
    }

    #[test]
    fn a_line_that_is_too_long_or_not_utf8() {
        let long = format!("{{\"location\":\"{}\"}}\n{{\"location\":\"x\"}}\n", "好".repeat(MAX_PAYLOAD / 3));
        let mut ran = Vec::new();
        let count = |line, raw: &str| {
            ran.push((line, schema().resolve(raw, Repairs::On).is_ok()));
            Ok(())
        };
        each_line(long.as_bytes(), count).unwrap();
        assert_eq!(ran, [(1, false), (2, true)]);
        let error = each_line(&b"{}\n\xff\n"[..], |_, _| Ok(())).unwrap_err();
        assert!(error.to_string().starts_with("line 2 is not UTF-8"), "{error}");
    }

    #[test]
    fn missing_tools_and_schemas_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let manifest = file(
            "tools.toml",
            "[[tool]]\nname = \"get_weather\"\n[tool.parameters]\nrequired = [\"city\"]\n[tool.http]\nmethod = \"GET\"\n\
             url = \"https://example.com/\"\nheaders = { Authorization = \"Bearer {{secret.WEATHER_KEY_OF_NOBODY}}\" }\n",
        );
        let schema_of_tool = |file: &Path, name| schema_of_tool(file, name).map(|(schema, _)| schema);
        let schema = schema_of_tool(&manifest, "get_weather").unwrap();
        assert!(schema.resolve("{}", Repairs::On).is_err());
        let message = |done: Result<Schema, ApiError>| {
            let error = done.unwrap_err();
            error.to_string().replace(&folder.path().display().to_string(), "…")
        };
        let errors = [
            message(schema_of_tool(&manifest, "getWeather")),
            message(schema_of_tool(&manifest, "get_wether")),
            message(schema_of_tool(&folder.path().join("none.toml"), "a")),
            message(schema_of_file(&folder.path().join("none.json"))),
            message(schema_of_file(&file("bad.json", "{"))),
            message(schema_of_file(&file("strict.json", r#"{"type": "array"}"#))),
        ];
        insta::assert_snapshot!(errors.join("\n"));
    }
}
