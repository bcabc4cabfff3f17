//! `{{…}}` in what a rule answers: dates, and what stands in the conversation.

use chrono::{Days, NaiveDate};
use redial_proto::Message;
use regex::Captures;
use serde_json::Value;

use super::moment::Moment;

const ALLOWED: &str = "{{date}}, {{date+30}}, {{date-1}}, {{user}}, {{last}}, {{last.path.to.it}}, {{result.1}}, \
                       {{result.1.path.to.it}}, {{match.1}}, {{match.name}}";

/// A text with places to fill in.
#[derive(Debug)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug)]
enum Part {
    Text(String),
    Place { written: String, place: Place },
}

#[derive(Debug)]
enum Place {
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
            let place = place(written.trim())
                .ok_or_else(|| format!("{{{{{written}}}}} is nothing that can be filled in; allowed: {ALLOWED}"))?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Place { written: written.trim().to_owned(), place });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self(parts))
    }

    /// The text; the error says what is not there.
    pub(super) fn fill(&self, moment: &Moment<'_>, captures: Option<&Captures<'_>>) -> Result<String, String> {
        let filled = self.0.iter().map(|part| match part {
            Part::Text(text) => Ok(text.clone()),
            Part::Place { written, place } => found(written, place, moment, captures).map(in_text),
        });
        filled.collect()
    }

    /// The value: of any type if the template is one place and nothing else, else a text.
    pub(super) fn fill_value(&self, moment: &Moment<'_>, captures: Option<&Captures<'_>>) -> Result<Value, String> {
        match self.0.as_slice() {
            [Part::Place { written, place }] => found(written, place, moment, captures),
            _ => self.fill(moment, captures).map(Value::String),
        }
    }
}

fn place(written: &str) -> Option<Place> {
    if let Some(days) = written.strip_prefix("date") {
        return if days.is_empty() { Some(Place::Date(0)) } else { days.parse().ok().map(Place::Date) };
    }
    let (head, path) = written.split_once('.').unwrap_or((written, ""));
    let steps = |path: &str| path.split('.').filter(|step| !step.is_empty()).map(str::to_owned).collect();
    match head {
        "user" if path.is_empty() => Some(Place::User),
        "last" => Some(Place::Last(steps(path))),
        "result" => {
            let (number, path) = path.split_once('.').unwrap_or((path, ""));
            number.parse().ok().filter(|number| *number > 0).map(|number| Place::Result(number, steps(path)))
        }
        "match" if !path.is_empty() => Some(Place::Match(path.to_owned())),
        _ => None,
    }
}

fn found(written: &str, place: &Place, moment: &Moment<'_>, captures: Option<&Captures<'_>>) -> Result<Value, String> {
    let found = match place {
        Place::Date(days) => day(moment.today, *days).map(|day| day.format("%Y-%m-%d").to_string().into()),
        Place::User => moment.user.map(|user| user.content.as_str().into()),
        Place::Last(path) => moment.last.and_then(|last| at(last, path)),
        Place::Result(number, path) => moment.results.get(number - 1).and_then(|result| at(result, path)),
        Place::Match(group) => captures.and_then(|captures| {
            let by_number = group.parse().ok().and_then(|number| captures.get(number));
            by_number.or_else(|| captures.name(group)).map(|group| group.as_str().into())
        }),
    };
    found.ok_or_else(|| format!("{{{{{written}}}}} is not there"))
}

fn day(today: NaiveDate, days: i64) -> Option<NaiveDate> {
    let distance = Days::new(days.unsigned_abs());
    if days < 0 { today.checked_sub_days(distance) } else { today.checked_add_days(distance) }
}

/// What stands in a message at a path; a text that is no JSON has only itself.
fn at(message: &Message, path: &[String]) -> Option<Value> {
    let content: Value = serde_json::from_str(&message.content).unwrap_or_else(|_| message.content.as_str().into());
    path.iter()
        .try_fold(&content, |value, step| match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        })
        .cloned()
}

fn in_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
