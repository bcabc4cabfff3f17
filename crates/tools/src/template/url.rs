//! A URL whose scheme, host and path structure no argument can change.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use redial_redaction::hosts;
use reqwest::Url;

use super::{
    scope::Scope,
    text::{Part, Template},
    values::{RefusedValue, Values},
};

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

/// The component of the URL that is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Component {
    Path,
    QueryName,
    QueryValue,
}

impl UrlTemplate {
    /// Parses a URL template; variables are allowed in path segments and in values of query parameters.
    pub(crate) fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, String> {
        let (origin, rest) = split_origin(text)?;
        let host = check_origin(&origin)?;
        let mut url = Self { origin, host, segments: Vec::new(), query: Vec::new() };
        url.read(Template::parse(rest, scope)?)?;
        for segment in &url.segments {
            segment.require_values()?;
        }
        for value in url.query.iter().filter_map(|(_, value)| value.as_ref()) {
            if value.whole_argument().is_none() {
                value.require_values()?;
            }
        }
        Ok(url)
    }

    /// Whether a request crosses a network unencrypted.
    pub(crate) fn is_readable_on_the_way(&self) -> bool {
        self.origin.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http:"))
            && !hosts::is_loopback(&self.host)
    }

    /// The host, so that it can be removed from messages.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The URL of one attempt.
    pub(crate) fn fill(&self, values: &Values<'_>) -> Result<String, RefusedValue> {
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

    /// Splits the template into segments and query parameters.
    fn read(&mut self, template: Template) -> Result<(), String> {
        let mut component = Component::Path;
        for part in template.parts {
            match part {
                Part::Text(text) => self.read_text(&text, &mut component)?,
                Part::Variable(_) => self.current(component)?.parts.push(part),
            }
        }
        Ok(())
    }

    fn read_text(&mut self, text: &str, component: &mut Component) -> Result<(), String> {
        for c in text.chars() {
            match (c, *component) {
                ('#', _) => return Err("a fragment (\"#…\") is not allowed: it is never sent".to_owned()),
                ('/', Component::Path) => self.segments.push(Template { parts: Vec::new() }),
                ('?', Component::Path) | ('&', Component::QueryName | Component::QueryValue) => {
                    *component = Component::QueryName;
                    self.query.push((String::new(), None));
                }
                ('=', Component::QueryName) => {
                    *component = Component::QueryValue;
                    if let Some((_, value)) = self.query.last_mut() {
                        *value = Some(Template { parts: Vec::new() });
                    }
                }
                (c, Component::QueryName) => {
                    if let Some((name, _)) = self.query.last_mut() {
                        name.push(c);
                    }
                }
                (c, component) => push_char(self.current(component)?, c),
            }
        }
        Ok(())
    }

    /// The template that the next part belongs to.
    fn current(&mut self, component: Component) -> Result<&mut Template, String> {
        let current = match component {
            Component::Path => self.segments.last_mut(),
            Component::QueryName => None,
            Component::QueryValue => self.query.last_mut().and_then(|(_, value)| value.as_mut()),
        };
        current.ok_or_else(|| {
            "a variable is allowed only in a path segment or in the value of a query parameter".to_owned()
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

/// `scheme://host:port`, which must not contain variables, and the rest.
fn split_origin(text: &str) -> Result<(String, &str), String> {
    let after_scheme = text.find("://").map(|at| at + 3).ok_or("a URL must start with http:// or https://")?;
    let end = text[after_scheme..].find(['/', '?', '#']).map_or(text.len(), |at| after_scheme + at);
    let (origin, rest) = text.split_at(end);
    if origin.contains("{{") {
        return Err("scheme and host cannot contain variables".to_owned());
    }
    Ok((origin.to_owned(), rest))
}

fn check_origin(origin: &str) -> Result<String, String> {
    let url = Url::parse(origin).map_err(|error| format!("{origin:?} is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("scheme {:?} is not allowed; allowed: http, https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a user name or password in the URL is not allowed; use a header with {{secret.NAME}}".to_owned());
    }
    url.host_str().map(str::to_owned).ok_or_else(|| "the URL has no host".to_owned())
}

fn fill_segment(segment: &Template, values: &Values<'_>) -> Result<String, RefusedValue> {
    if !segment.has_variables() {
        return segment.fill_required(values);
    }
    let plain = segment.fill_required(values)?;
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
