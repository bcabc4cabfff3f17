//! The values of one attempt's variables.

use std::collections::HashMap;

use redial_proto::{ErrorClass, Failure, FieldError, limits};
use secrecy::ExposeSecret;
use serde_json::{Value, value::RawValue};

use super::variable::Variable;
use crate::context::Context;

/// Context and arguments of one attempt. Numbers keep the text in which they were sent.
pub(crate) struct Values<'a> {
    context: &'a Context,
    arguments: HashMap<String, &'a RawValue>,
}

/// A value that is not allowed at its position in the template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RefusedValue {
    pub(crate) argument: String,
    pub(crate) rule: &'static str,
    pub(crate) allowed: &'static str,
    pub(crate) hint: Option<&'static str>,
}

impl<'a> Values<'a> {
    pub(crate) fn new(context: &'a Context, arguments: &'a RawValue) -> Result<Self, Failure> {
        let arguments = serde_json::from_str(arguments.get()).map_err(|error| {
            let message = format!("the arguments are not a JSON object: {error}");
            Failure::new(ErrorClass::MalformedArguments, message).without_effect()
        })?;
        Ok(Self { context, arguments })
    }

    /// Returns the variable as plain text: strings without quotes, everything else as JSON. `None` if the argument is
    /// missing or null and has no default.
    pub(crate) fn text(&self, variable: &Variable) -> Result<Option<String>, RefusedValue> {
        let json = match variable {
            Variable::Call => return Ok(Some(self.context.call.to_string())),
            Variable::Attempt => return Ok(Some(self.context.attempt.to_string())),
            Variable::IdempotencyKey => return Ok(Some(self.context.idempotency_key.clone())),
            Variable::Tenant => return Ok(Some(self.context.tenant.clone())),
            Variable::Secret(secret) => return Ok(Some(secret.expose_secret().to_owned())),
            Variable::Argument(argument) => self.json(&argument.name).or(argument.default.as_deref()),
        };
        match json {
            Some(json) if json.starts_with('"') => match serde_json::from_str(json) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(RefusedValue {
                    argument: variable.argument().map(|argument| argument.name.clone()).unwrap_or_default(),
                    rule: "unicode",
                    allowed: "text that is valid Unicode",
                    hint: None,
                }),
            },
            json => Ok(json.map(str::to_owned)),
        }
    }

    /// Returns an argument as the JSON text that was sent; `None` if it is missing or null.
    pub(crate) fn json(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).map(|raw| raw.get()).filter(|json| *json != "null")
    }

    /// Makes the failure of an attempt with a refused value.
    pub(crate) fn failure(&self, refused: RefusedValue) -> Failure {
        let RefusedValue { argument, rule, allowed, hint } = refused;
        let sent = self.arguments.get(&argument).map(|raw| {
            let json = raw.get();
            serde_json::from_str(json).unwrap_or_else(|_| Value::String(limits::shorten(json, 300)))
        });
        let path = match argument.as_str() {
            "" => String::new(),
            name => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
        };
        let error = FieldError { path, rule: rule.to_owned(), sent, allowed: allowed.to_owned(), hint: None };
        let error = FieldError { hint: hint.map(str::to_owned), ..error };
        let message = limits::shorten(&error.without_hint(), 1000);
        Failure::new(ErrorClass::InvalidArguments, message).without_effect().with_details(vec![error])
    }
}
