//! A URL whose scheme, host and path structure no argument can change.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use reqwest::Url;

use super::{Part, Refused, Scope, Template, Values};

/// Everything but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `scheme://host`, path segments, query parameters.
#[derive(Clone, Debug)]
pub(crate) struct UrlTemplate {
    origin: String,
    host: String,
    segments: Vec<Template>,
    query: Vec<(String, Option<Template>)>,
}

/// Where in the URL the text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Path,
    QueryName,
    QueryValue,
}

impl UrlTemplate {
    /// Reads a URL template; variables may stand in path segments and in values of query parameters.
    pub(crate) fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, String> {
        let (origin, rest) = split_origin(text)?;
        let host = check_origin(&origin)?;
        let mut url = Self { origin, host, segments: Vec::new(), query: Vec::new() };
        url.read(Template::parse(rest, scope)?)?;
        for segment in &url.segments {
            segment.certain()?;
        }
        for value in url.query.iter().filter_map(|(_, value)| value.as_ref()) {
            if value.whole_argument().is_none() {
                value.certain()?;
            }
        }
        Ok(url)
    }

    /// The host, for taking it out of messages.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The URL of one attempt.
    pub(crate) fn fill(&self, values: &Values<'_>) -> Result<String, Refused> {
        let mut url = self.origin.clone();
        for segment in &self.segments {
            url.push('/');
            url.push_str(&fill_segment(segment, values)?);
        }
        let mut mark = '?';
        for (name, value) in &self.query {
            let value = match value {
                None => None,
                Some(template) => match template.fill(values, encode)? {
                    Some(value) => Some(value),
                    None if template.whole_argument().is_some_and(|argument| argument.optional) => continue,
                    None => return Err(template.refuse("null", "a value other than null")),
                },
            };
            url.push(mark);
            url.push_str(name);
            if let Some(value) = value {
                url.push('=');
                url.push_str(&value);
            }
            mark = '&';
        }
        Ok(url)
    }

    /// Sorts the template's parts into segments and parameters.
    fn read(&mut self, template: Template) -> Result<(), String> {
        let mut place = Place::Path;
        for part in template.parts {
            match part {
                Part::Text(text) => self.read_text(&text, &mut place)?,
                Part::Variable(_) => self.current(place)?.parts.push(part),
            }
        }
        Ok(())
    }

    fn read_text(&mut self, text: &str, place: &mut Place) -> Result<(), String> {
        for c in text.chars() {
            match (c, *place) {
                ('#', _) => return Err("a fragment (\"#…\") is not allowed: it is never sent".to_owned()),
                ('/', Place::Path) => self.segments.push(Template { parts: Vec::new() }),
                ('?', Place::Path) | ('&', Place::QueryName | Place::QueryValue) => {
                    *place = Place::QueryName;
                    self.query.push((String::new(), None));
                }
                ('=', Place::QueryName) => {
                    *place = Place::QueryValue;
                    if let Some((_, value)) = self.query.last_mut() {
                        *value = Some(Template { parts: Vec::new() });
                    }
                }
                (c, Place::QueryName) => {
                    if let Some((name, _)) = self.query.last_mut() {
                        name.push(c);
                    }
                }
                (c, place) => push_char(self.current(place)?, c),
            }
        }
        Ok(())
    }

    /// The template that the next part belongs to.
    fn current(&mut self, place: Place) -> Result<&mut Template, String> {
        let current = match place {
            Place::Path => self.segments.last_mut(),
            Place::QueryName => None,
            Place::QueryValue => self.query.last_mut().and_then(|(_, value)| value.as_mut()),
        };
        current.ok_or_else(|| {
            "a variable may stand in a path segment or in the value of a query parameter, nowhere else".to_owned()
        })
    }
}

fn push_char(template: &mut Template, c: char) {
    if let Some(Part::Text(text)) = template.parts.last_mut() {
        text.push(c);
    } else {
        template.parts.push(Part::Text(c.to_string()));
    }
}

/// `scheme://host:port` and the rest; the first part holds no variables.
fn split_origin(text: &str) -> Result<(String, &str), String> {
    let after_scheme = text.find("://").map(|at| at + 3).ok_or("a URL starts with http:// or https://")?;
    let end = text[after_scheme..].find(['/', '?', '#']).map_or(text.len(), |at| after_scheme + at);
    let (origin, rest) = text.split_at(end);
    if origin.contains("{{") {
        return Err("scheme and host may hold no variables".to_owned());
    }
    Ok((origin.to_owned(), rest))
}

fn check_origin(origin: &str) -> Result<String, String> {
    let url = Url::parse(origin).map_err(|error| format!("{origin:?} is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("scheme {:?} is not allowed; allowed: http, https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a user or password in the URL is not allowed; use a header with {{secret.NAME}}".to_owned());
    }
    url.host_str().map(str::to_owned).ok_or_else(|| "the URL has no host".to_owned())
}

fn fill_segment(segment: &Template, values: &Values<'_>) -> Result<String, Refused> {
    if !segment.has_variables() {
        return segment.fill_certain(values);
    }
    let plain = segment.fill_certain(values)?;
    let decoded = percent_decode_str(&plain).decode_utf8_lossy();
    let climbs = |text: &str| text.split(['/', '\\']).any(|piece| piece == "." || piece == "..");
    if plain.is_empty() {
        return Err(segment.refuse("minLength", "text that is not empty"));
    }
    if climbs(&plain) || climbs(&decoded) {
        return Err(segment.refuse("path", "text without \".\" or \"..\" as a part of a path"));
    }
    segment.fill(values, encode)?.ok_or_else(|| segment.refuse("null", "a value other than null"))
}

fn encode(value: &str) -> String {
    utf8_percent_encode(value, ENCODED).to_string()
}
