//! Which variables a template may use.

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::variable::{Argument, Variable};

/// Gives the value of an environment variable.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The variables that one template may use.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) parameters: &'a Value,
    /// The source of secrets; `None` where secrets are not allowed.
    pub(crate) secrets: Option<Lookup<'a>>,
}

impl Scope<'_> {
    /// Finds the variable with this name; the error lists the allowed ones.
    pub(crate) fn variable(&self, name: &str) -> Result<Variable, String> {
        match (name, name.split_once('.')) {
            ("call", _) => Ok(Variable::Call),
            ("attempt", _) => Ok(Variable::Attempt),
            ("idempotency_key", _) => Ok(Variable::IdempotencyKey),
            ("tenant", _) => Ok(Variable::Tenant),
            (_, Some(("arguments", argument))) => self.argument(argument).map(Variable::Argument),
            (_, Some(("secret", secret))) => self.secret(secret).map(Variable::Secret),
            _ => {
                let secret = if self.secrets.is_some() { ", secret.<NAME>" } else { "" };
                Err(format!(
                    "unknown variable {{{{{name}}}}}; allowed: arguments.<name>, call, attempt, idempotency_key, tenant{secret}"
                ))
            }
        }
    }

    fn argument(&self, name: &str) -> Result<Argument, String> {
        let none = Map::new();
        let properties = self.parameters.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let Some(property) = properties.get(name) else {
            let known: Vec<_> = properties.keys().map(|name| format!("{name:?}")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!("{{{{arguments.{name}}}}}: `parameters` has no property {name:?}; it has: {known}"));
        };
        let required = self.parameters.get("required").and_then(Value::as_array);
        let required = required.is_some_and(|names| names.iter().any(|one| one == name));
        let default = property.get("default").filter(|value| !value.is_null()).map(ToString::to_string);
        Ok(Argument { name: name.to_owned(), optional: !required && default.is_none(), default })
    }

    fn secret(&self, name: &str) -> Result<SecretString, String> {
        let Some(lookup) = self.secrets else {
            return Err(format!(
                "{{{{secret.{name}}}}} is not allowed here; allowed: in values of `http.headers` and `command.env`"
            ));
        };
        match lookup(name) {
            Some(value) if !value.is_empty() => Ok(value.into()),
            Some(_) => {
                Err(format!("{{{{secret.{name}}}}}: the environment variable {name} is empty; it needs a value"))
            }
            None => Err(format!("{{{{secret.{name}}}}}: the environment variable {name} is not set; it needs a value")),
        }
    }
}
