//! A URL whose scheme, host and path structure no argument can change.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use redial_http::is_loopback;
use reqwest::Url;

use super::{
    scope::Scope,
    text::{Part, Template},
    values::{RefusedValue, Values},
};

/// Everything but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How often a value may be percent-encoded.
const MAX_DECODED: usize = 5;

/// `scheme://host`, path segments, query parameters.
#[derive(Clone, Debug)]
pub(crate) struct UrlTemplate {
    origin: String,
    /// The origin, parsed.
    address: Url,
    segments: Vec<Segment>,
    query: Vec<(String, Option<Template>)>,
}

/// A segment of a path.
#[derive(Clone, Debug, Default)]
struct Segment {
    template: Template,
    /// Its values may contain `/`, sent as `%2F`.
    takes_slash: bool,
}

/// The component of the URL that is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Component {
    Path,
    QueryName,
    QueryValue,
}

impl UrlTemplate {
    /// Parses a URL template; variables are allowed in path segments and in values of query parameters. The values of
    /// arguments named in `slashes` may contain `/` in a path segment.
    pub(crate) fn parse(text: &str, scope: &Scope<'_>, slashes: &[String]) -> Result<Self, String> {
        let (origin, rest) = split_origin(text)?;
        let address = check_origin(&origin)?;
        let mut url = Self { origin, address, segments: Vec::new(), query: Vec::new() };
        url.read(Template::parse(rest, scope)?)?;
        for segment in &mut url.segments {
            segment.template.require_values()?;
            segment.takes_slash = segment.template.names_one_of(slashes);
        }
        for value in url.query.iter().filter_map(|(_, value)| value.as_ref()) {
            if value.whole_argument().is_none() {
                value.require_values()?;
            }
        }
        Ok(url)
    }

    /// True if a request crosses a network unencrypted.
    pub(crate) fn is_readable_on_the_way(&self) -> bool {
        self.address.scheme() == "http" && !is_loopback(self.host())
    }

    /// Returns the host, so that it can be removed from messages.
    pub(crate) fn host(&self) -> &str {
        self.address.host_str().unwrap_or_default()
    }

    /// Returns scheme, host and port.
    pub(crate) fn address(&self) -> &Url {
        &self.address
    }

    /// Fills in the URL of one attempt.
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
                ('/', Component::Path) => self.segments.push(Segment::default()),
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

    /// Returns the template that the next part belongs to.
    fn current(&mut self, component: Component) -> Result<&mut Template, String> {
        let current = match component {
            Component::Path => self.segments.last_mut().map(|segment| &mut segment.template),
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

/// Splits `scheme://host:port`, which must not contain variables, from the rest.
fn split_origin(text: &str) -> Result<(String, &str), String> {
    let after_scheme = text.find("://").map(|at| at + 3).ok_or("a URL must start with http:// or https://")?;
    let end = text[after_scheme..].find(['/', '?', '#']).map_or(text.len(), |at| after_scheme + at);
    let (origin, rest) = text.split_at(end);
    if origin.contains("{{") {
        return Err("scheme and host cannot contain variables".to_owned());
    }
    Ok((origin.to_owned(), rest))
}

fn check_origin(origin: &str) -> Result<Url, String> {
    let url = Url::parse(origin).map_err(|error| format!("{origin:?} is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("scheme {:?} is not allowed; allowed: http, https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a user name or password in the URL is not allowed; use a header with {{secret.NAME}}".to_owned());
    }
    if url.has_host() { Ok(url) } else { Err("the URL has no host".to_owned()) }
}

/// Fills in a segment. A value stays within it, also after proxies that decode the path once more: it is checked in
/// every form that decoding makes of it.
fn fill_segment(segment: &Segment, values: &Values<'_>) -> Result<String, RefusedValue> {
    let Segment { template, takes_slash } = segment;
    let plain = template.fill_required(values)?;
    if !template.has_variables() {
        return Ok(plain);
    }
    if plain.is_empty() {
        return Err(template.refuse("minLength", "text that is not empty"));
    }
    let mut form = plain;
    for _ in 0..MAX_DECODED {
        check_form(&form, *takes_slash).map_err(|allowed| template.refuse("path", allowed))?;
        let decoded = percent_decode_str(&form).decode_utf8_lossy().into_owned();
        if decoded == form {
            let filled = template.fill(values, encode)?;
            return filled.ok_or_else(|| template.refuse("null", "a value other than null"));
        }
        form = decoded;
    }
    Err(template.refuse("path", "text that is not percent-encoded again and again"))
}

/// Checks one form of a segment; the error says what is allowed.
fn check_form(text: &str, takes_slash: bool) -> Result<(), &'static str> {
    if text.chars().any(char::is_control) {
        return Err("text without control characters, also percent-encoded ones");
    }
    if text.contains('\\') || (text.contains('/') && !takes_slash) {
        return Err("text without \"/\" and \"\\\", also percent-encoded ones");
    }
    // Some servers take what follows a ";" for a parameter of the segment.
    let is_name = |piece: &str| !matches!(piece.split(';').next().unwrap_or_default(), "" | "." | "..");
    if !text.split('/').all(is_name) {
        return Err("text without \".\", \"..\" or nothing as a part of a path");
    }
    Ok(())
}

fn encode(value: &str) -> String {
    utf8_percent_encode(value, ENCODED).to_string()
}
