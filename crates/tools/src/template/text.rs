//! Text with variables.

use secrecy::SecretString;

use super::{
    scope::Scope,
    values::{RefusedValue, Values},
    variable::{Argument, Variable},
};

/// Text with variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Template {
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
    Text(String),
    Variable(Variable),
}

impl Template {
    /// Parses a template; the error says which variable is wrong and which are allowed.
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

    /// Parses a template whose variables must have a value in every call.
    pub(crate) fn parse_required(text: &str, scope: &Scope<'_>) -> Result<Self, String> {
        let template = Self::parse(text, scope)?;
        template.require_values()?;
        Ok(template)
    }

    /// Fails, and names an argument, if one may be missing in a call.
    pub(crate) fn require_values(&self) -> Result<(), String> {
        match self.arguments().find(|argument| argument.optional) {
            None => Ok(()),
            Some(Argument { name, .. }) => Err(format!(
                "{{{{arguments.{name}}}}} may be missing in a call: list {name:?} in `required` or give it a `default` \
                 (only the whole value of a query parameter or of a body's key may be missing; it is then left out)"
            )),
        }
    }

    /// Fills in the text for one attempt; `encode` encodes a value for its position. `None` if an optional argument is
    /// missing.
    pub(crate) fn fill(&self, values: &Values<'_>, encode: fn(&str) -> String) -> Result<Option<String>, RefusedValue> {
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

    /// Fills in the text for one attempt, with unencoded values; for templates from [`Template::parse_required`].
    pub(crate) fn fill_required(&self, values: &Values<'_>) -> Result<String, RefusedValue> {
        match self.fill(values, str::to_owned)? {
            Some(text) => Ok(text),
            None => Err(self.refuse("null", "a value other than null")),
        }
    }

    /// Refuses the value of the first argument.
    pub(crate) fn refuse(&self, rule: &'static str, allowed: &'static str) -> RefusedValue {
        let argument = self.arguments().next().map(|argument| argument.name.clone()).unwrap_or_default();
        RefusedValue { argument, rule, allowed, hint: None }
    }

    /// Returns the argument, if the template consists of just one.
    pub(crate) fn whole_argument(&self) -> Option<&Argument> {
        match self.parts.as_slice() {
            [Part::Variable(Variable::Argument(argument))] => Some(argument),
            _ => None,
        }
    }

    /// Returns the argument at its very start, if there is one.
    pub(crate) fn first_argument(&self) -> Option<&str> {
        match self.parts.first()? {
            Part::Variable(variable) => variable.argument().map(|argument| argument.name.as_str()),
            Part::Text(_) => None,
        }
    }

    pub(crate) fn begins_with_variable(&self) -> bool {
        matches!(self.parts.first(), Some(Part::Variable(_)))
    }

    /// True if it is this text, without variables.
    pub(crate) fn is_text(&self, text: &str) -> bool {
        matches!(self.parts.as_slice(), [Part::Text(own)] if own == text)
    }

    pub(crate) fn names_one_of(&self, names: &[String]) -> bool {
        self.arguments().any(|argument| names.contains(&argument.name))
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
            Part::Variable(variable) => variable.argument(),
            Part::Text(_) => None,
        })
    }
}
