//! `{{arguments.city}}` in URLs, headers, bodies, command lines and environments.
//!
//! Strict: whatever is not certain to work for every call that passes the schema is an error when the manifest is
//! loaded. A value is put in as text of its place ([`url`], [`json`], one element of a command line) and can never
//! become anything else.

pub(crate) mod json;
pub(crate) mod scope;
pub(crate) mod url;
pub(crate) mod values;

#[cfg(test)]
mod tests;

use secrecy::{ExposeSecret, SecretString};

pub(crate) use scope::Scope;
pub(crate) use values::{Refused, Values};

/// Text with variables.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
    Text(String),
    Variable(Variable),
}

#[derive(Clone, Debug)]
pub(crate) enum Variable {
    Argument(Argument),
    Call,
    Attempt,
    IdempotencyKey,
    Secret(SecretString),
}

/// `{{arguments.name}}`.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) name: String,
    /// The schema's default, as JSON text.
    pub(crate) default: Option<String>,
    /// True if the schema lets a call leave it out, and has no default for it.
    pub(crate) optional: bool,
}

impl Template {
    /// Reads a template; the error says which variable is wrong and which are allowed.
    pub(crate) fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, tail)) = rest.split_once("{{") {
            let (name, after) =
                tail.split_once("}}").ok_or_else(|| format!("\"{{{{{tail}\" has no closing \"}}}}\""))?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Variable(scope.variable(name.trim())?));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// Reads a template whose variables all have a value in every call.
    pub(crate) fn parse_certain(text: &str, scope: &Scope<'_>) -> Result<Self, String> {
        let template = Self::parse(text, scope)?;
        template.certain()?;
        Ok(template)
    }

    /// Says which argument may be missing in a call.
    pub(crate) fn certain(&self) -> Result<(), String> {
        match self.arguments().find(|argument| argument.optional) {
            None => Ok(()),
            Some(Argument { name, .. }) => Err(format!(
                "{{{{arguments.{name}}}}} may be missing in a call: list {name:?} in `required` or give it a `default` \
                 (only the whole value of a query parameter or of a body's key may be missing; it is then left out)"
            )),
        }
    }

    /// The text for one attempt; `encode` makes a value fit for its place. None if an optional argument is missing.
    pub(crate) fn fill(&self, values: &Values<'_>, encode: fn(&str) -> String) -> Result<Option<String>, Refused> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Variable(variable) => match values.text(variable)? {
                    Some(value) => out.push_str(&encode(&value)),
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(out))
    }

    /// The text for one attempt, every value as it is; for templates from [`Template::parse_certain`].
    pub(crate) fn fill_certain(&self, values: &Values<'_>) -> Result<String, Refused> {
        match self.fill(values, str::to_owned)? {
            Some(text) => Ok(text),
            None => Err(self.refuse("null", "a value other than null")),
        }
    }

    /// Blames the value of the first argument.
    pub(crate) fn refuse(&self, rule: &'static str, allowed: &'static str) -> Refused {
        let argument = self.arguments().next().map(|argument| argument.name.clone()).unwrap_or_default();
        Refused { argument, rule, allowed }
    }

    /// The argument, if the template is nothing but one.
    pub(crate) fn whole_argument(&self) -> Option<&Argument> {
        match self.parts.as_slice() {
            [Part::Variable(Variable::Argument(argument))] => Some(argument),
            _ => None,
        }
    }

    pub(crate) fn has_variables(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Variable(_)))
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(Variable::Secret(secret)) => Some(secret),
            _ => None,
        })
    }

    fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(Variable::Argument(argument)) => Some(argument),
            _ => None,
        })
    }
}

impl Variable {
    /// Only for secrets: the value that goes into a header or an environment.
    fn exposed(secret: &SecretString) -> String {
        secret.expose_secret().to_owned()
    }
}
