//! Variables in a rule's answer, `{{…}}`: dates and parts of the conversation.

use chrono::{Days, NaiveDate};
use redial_proto::Message;
use regex::Captures;
use serde_json::Value;

use super::context::Context;

const ALLOWED: &str = "{{date}}, {{date+30}}, {{date-1}}, {{user}}, {{last}}, {{last.path.to.it}}, {{result.1}}, \
                       {{result.1.path.to.it}}, {{match.1}}, {{match.name}}";

#[derive(Debug)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug)]
enum Part {
    Text(String),
    Variable { written: String, variable: Variable },
}

#[derive(Debug)]
enum Variable {
    /// Days from today.
    Date(i64),
    User,
    Last(Vec<String>),
    /// From 1.
    Result(usize, Vec<String>),
    Match(String),
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let (written, after) =
                after.split_once("}}").ok_or_else(|| format!("\"{{{{\" without \"}}}}\" in {text:?}"))?;
            let variable = variable(written.trim())
                .ok_or_else(|| format!("{{{{{written}}}}} is not a known variable; allowed: {ALLOWED}"))?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Variable { written: written.trim().to_owned(), variable });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self(parts))
    }

    /// Fills the variables in; the error names a variable without a value.
    pub(super) fn fill(&self, context: &Context<'_>, captures: Option<&Captures<'_>>) -> Result<String, String> {
        let filled = self.0.iter().map(|part| match part {
            Part::Text(text) => Ok(text.clone()),
            Part::Variable { written, variable } => value(written, variable, context, captures).map(to_text),
        });
        filled.collect()
    }

    /// Fills a value in: of any type if the template consists of one variable, else a string.
    pub(super) fn fill_value(&self, context: &Context<'_>, captures: Option<&Captures<'_>>) -> Result<Value, String> {
        match self.0.as_slice() {
            [Part::Variable { written, variable }] => value(written, variable, context, captures),
            _ => self.fill(context, captures).map(Value::String),
        }
    }
}

fn variable(written: &str) -> Option<Variable> {
    if let Some(days) = written.strip_prefix("date") {
        return if days.is_empty() { Some(Variable::Date(0)) } else { days.parse().ok().map(Variable::Date) };
    }
    let (head, path) = written.split_once('.').unwrap_or((written, ""));
    let steps = |path: &str| path.split('.').filter(|step| !step.is_empty()).map(str::to_owned).collect();
    match head {
        "user" if path.is_empty() => Some(Variable::User),
        "last" => Some(Variable::Last(steps(path))),
        "result" => {
            let (number, path) = path.split_once('.').unwrap_or((path, ""));
            number.parse().ok().filter(|number| *number > 0).map(|number| Variable::Result(number, steps(path)))
        }
        "match" if !path.is_empty() => Some(Variable::Match(path.to_owned())),
        _ => None,
    }
}

fn value(
    written: &str,
    variable: &Variable,
    context: &Context<'_>,
    captures: Option<&Captures<'_>>,
) -> Result<Value, String> {
    let value = match variable {
        Variable::Date(days) => day(context.today, *days).map(|day| day.format("%Y-%m-%d").to_string().into()),
        Variable::User => context.user.map(|user| user.content.as_str().into()),
        Variable::Last(path) => context.last.and_then(|last| at(last, path)),
        Variable::Result(number, path) => context.results.get(number - 1).and_then(|result| at(result, path)),
        Variable::Match(group) => captures.and_then(|captures| {
            let by_number = group.parse().ok().and_then(|number| captures.get(number));
            by_number.or_else(|| captures.name(group)).map(|group| group.as_str().into())
        }),
    };
    value.ok_or_else(|| format!("{{{{{written}}}}} has no value"))
}

fn day(today: NaiveDate, days: i64) -> Option<NaiveDate> {
    let distance = Days::new(days.unsigned_abs());
    if days < 0 { today.checked_sub_days(distance) } else { today.checked_add_days(distance) }
}

/// Returns the value at a path in a message's JSON; text that is not JSON has only the empty path.
fn at(message: &Message, path: &[String]) -> Option<Value> {
    let content: Value = serde_json::from_str(&message.content).unwrap_or_else(|_| message.content.as_str().into());
    path.iter()
        .try_fold(&content, |value, step| match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        })
        .cloned()
}

fn to_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
