//! A JSON body with variables in its strings.
//!
//! A string that consists only of `{{arguments.x}}` becomes the argument itself, of any type; in longer strings the
//! argument becomes text. Either way it cannot change the structure of the body.

use serde_json::Value;

use super::{
    scope::Scope,
    text::Template,
    values::{RefusedValue, Values},
};

#[derive(Clone, Debug)]
pub(crate) enum JsonTemplate {
    /// JSON text without variables.
    Fixed(String),
    Text(Template),
    List(Vec<JsonTemplate>),
    /// Keys are JSON text, with quotes.
    Object(Vec<(String, JsonTemplate)>),
}

impl JsonTemplate {
    pub(crate) fn parse(value: &Value, scope: &Scope<'_>) -> Result<Self, String> {
        match value {
            Value::String(text) => {
                let template = Template::parse(text, scope)?;
                if template.whole_argument().is_none() {
                    template.require_values()?;
                }
                Ok(Self::Text(template))
            }
            Value::Array(items) => {
                items.iter().map(|item| Self::parse(item, scope)).collect::<Result<_, _>>().map(Self::List)
            }
            Value::Object(object) => object
                .iter()
                .map(|(key, value)| Ok((Value::from(key.as_str()).to_string(), Self::parse(value, scope)?)))
                .collect::<Result<_, String>>()
                .map(Self::Object),
            other => Ok(Self::Fixed(other.to_string())),
        }
    }

    /// Fills in the body of one attempt.
    pub(crate) fn fill(&self, values: &Values<'_>) -> Result<String, RefusedValue> {
        Ok(self.write(values)?.unwrap_or_else(|| "null".to_owned()))
    }

    /// Writes it; `None` for an argument that is missing.
    fn write(&self, values: &Values<'_>) -> Result<Option<String>, RefusedValue> {
        Ok(Some(match self {
            Self::Fixed(text) => text.clone(),
            Self::Text(template) => match template.whole_argument() {
                Some(argument) => {
                    return Ok(values.json(&argument.name).or(argument.default.as_deref()).map(str::to_owned));
                }
                None => Value::from(template.fill_required(values)?).to_string(),
            },
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(|item| item.fill(values)).collect::<Result<_, _>>()?;
                format!("[{}]", items.join(","))
            }
            Self::Object(members) => {
                let mut written = Vec::with_capacity(members.len());
                for (key, value) in members {
                    if let Some(value) = value.write(values)? {
                        written.push(format!("{key}:{value}"));
                    }
                }
                format!("{{{}}}", written.join(","))
            }
        }))
    }
}
