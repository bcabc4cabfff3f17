//! What a manifest says about a program's exit codes.

use redial_files::{FileError, Location};
use redial_proto::ErrorClass;
use serde_json::Value;
use toml::Spanned;

use super::file::Command;
use crate::{
    command::{ExitRule, FailureRules},
    structured::CLAIMABLE,
};

/// Reads the rules for a program's failures.
pub(super) fn failure_rules(command: &Command, location: &Location<'_>) -> Result<FailureRules, FileError> {
    let rules = command.exit_codes.iter().map(|(code, value)| {
        let field = format!("command.exit_codes.{}", code.get_ref());
        let number = number(code).map_err(|message| location.field_error(code, &field, message))?;
        let rule = rule(value.get_ref()).map_err(|message| location.field_error(value, &field, message))?;
        Ok((number, rule))
    });
    Ok(FailureRules { exit_codes: rules.collect::<Result<_, _>>()?, stderr_to_model: command.stderr_to_model })
}

fn number(code: &Spanned<String>) -> Result<i32, String> {
    let text = code.get_ref();
    let number = text.parse::<u8>().ok().filter(|number| *number > 0 && number.to_string() == *text);
    number.map(i32::from).ok_or_else(|| format!("{text:?} is not an exit code of a failure; allowed: 1 to 255"))
}

/// Reads a class by its name; or a table that also says whether the program may have done its work.
fn rule(value: &Value) -> Result<ExitRule, String> {
    let allowed = "a class, or a table { class = \"…\", effect_possible = false }";
    match value {
        Value::String(name) => Ok(ExitRule { class: class(name)?, effect_possible: true }),
        Value::Object(fields) => {
            if let Some(unknown) = fields.keys().find(|key| !["class", "effect_possible"].contains(&key.as_str())) {
                return Err(format!("{unknown:?} is not a field; allowed: class, effect_possible"));
            }
            let Some(Value::String(name)) = fields.get("class") else {
                return Err(format!("class is needed; allowed: {}", classes()));
            };
            let effect_possible = match fields.get("effect_possible") {
                None => true,
                Some(Value::Bool(possible)) => *possible,
                Some(other) => return Err(format!("effect_possible is {other}; allowed: true, false")),
            };
            Ok(ExitRule { class: class(name)?, effect_possible })
        }
        other => Err(format!("{other} is not allowed; allowed: {allowed}")),
    }
}

fn class(name: &str) -> Result<ErrorClass, String> {
    let found = CLAIMABLE.into_iter().find(|class| class.as_str() == name);
    found.ok_or_else(|| format!("{name:?} is not a class of a tool's failure; allowed: {}", classes()))
}

fn classes() -> String {
    CLAIMABLE.map(ErrorClass::as_str).join(", ")
}
