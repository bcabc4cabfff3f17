//! What a request says, read with errors that name what is wrong and what is allowed.

use std::time::Duration;

use axum::{
    body::{Body, HttpBody as _},
    extract::{FromRequest, FromRequestParts, Path, Request},
    http::{HeaderMap, Method, header, request::Parts},
};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use redial_proto::{ApiError, CallId, Code, FieldError, RedriveId, TaskId, limits};
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::{
    gateway::Shared,
    identity::Identity,
    limits::LARGE_BYTES,
    pace::{self, LeastRate},
    problem::Problem,
};

/// JSON nests deeper in a whole request than in the arguments within it.
const DEPTH: usize = limits::MAX_DEPTH + 8;

/// How long a body that is read whole may take to arrive. A large one has to arrive at the least rate instead.
const ARRIVES: Duration = Duration::from_mins(1);

pub(crate) struct Json<T>(pub(crate) T);

/// A JSON body, or none at all.
pub(crate) struct JsonOrNothing<T>(pub(crate) T);

pub(crate) struct RawJson(pub(crate) Bytes);

/// The parameters of the query. An unknown one is an error: a misspelt filter must not let everything through.
pub(crate) struct Query<T>(pub(crate) T);

pub(crate) struct Name(pub(crate) String);

pub(crate) struct Id<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Shared> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, gateway: &Shared) -> Result<Self, Problem> {
        let RawJson(body) = RawJson::from_request(request, gateway).await?;
        json(&body).map(Self)
    }
}

impl<T: DeserializeOwned + Default> FromRequest<Shared> for JsonOrNothing<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, gateway: &Shared) -> Result<Self, Problem> {
        let headers = request.headers();
        let is_empty = headers.get(header::CONTENT_LENGTH).is_none_or(|length| length == "0")
            && !headers.contains_key(header::TRANSFER_ENCODING)
            && !headers.contains_key(header::CONTENT_TYPE);
        if is_empty {
            return Ok(Self(T::default()));
        }
        Json::from_request(request, gateway).await.map(|Json(body)| Self(body))
    }
}

impl FromRequest<Shared> for RawJson {
    type Rejection = Problem;

    async fn from_request(request: Request, gateway: &Shared) -> Result<Self, Problem> {
        check_json_type(request.headers())?;
        let who = request.extensions().get::<Identity>().cloned();
        let hold = async |bytes| match &who {
            Some(who) => gateway.hold(who, bytes).await,
            None => Ok(()),
        };
        let body = read(request.into_body(), gateway.config.body, hold).await?;
        check_depth(&body)?;
        Ok(Self(body))
    }
}

impl<T: DeserializeOwned> FromRequestParts<Shared> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Problem> {
        Self::read(parts.uri.query().unwrap_or_default())
    }
}

impl<T: DeserializeOwned> Query<T> {
    pub(crate) fn read(query: &str) -> Result<Self, Problem> {
        if query.contains("%00") {
            return Err(Problem::invalid("the query: it holds U+0000, which no text of Redial may"));
        }
        let read = serde_path_to_error::deserialize(serde_html_form::Deserializer::from_bytes(query.as_bytes()));
        read.map(Self).map_err(|error| wrong_query(query, &error.path().to_string(), &error.inner().to_string()))
    }
}

impl<T: OfUuid> FromRequestParts<Shared> for Id<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Shared) -> Result<Self, Problem> {
        let wrong = |text: &str| {
            Problem::invalid(format!("the id in the path is {:?}; allowed: a UUID", limits::shorten(text, 100)))
        };
        let Path(text) = Path::<String>::from_request_parts(parts, gateway).await.map_err(|_| wrong(""))?;
        text.parse().map(|id| Self(T::of(id))).map_err(|_| wrong(&text))
    }
}

pub(crate) struct Ids<T, N>(pub(crate) T, pub(crate) N);

impl<T: OfUuid> FromRequestParts<Shared> for Ids<T, u32> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Shared) -> Result<Self, Problem> {
        let wrong = |what: &str, text: &str, allowed: &str| {
            Problem::invalid(format!("the {what} in the path is {:?}; allowed: {allowed}", limits::shorten(text, 100)))
        };
        let read = Path::<(String, String)>::from_request_parts(parts, gateway).await;
        let Path((id, number)) = read.map_err(|_| wrong("id", "", "a UUID"))?;
        let id = id.parse().map(T::of).map_err(|_| wrong("id", &id, "a UUID"))?;
        let number = number.parse().map_err(|_| wrong("number", &number, "a whole number from 1"))?;
        Ok(Self(id, number))
    }
}

impl FromRequestParts<Shared> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Shared) -> Result<Self, Problem> {
        let wrong = |text: &str| {
            let (text, most) = (limits::shorten(text, 100), limits::MAX_KEY);
            let allowed = format!("allowed: 1 to {most} bytes of UTF-8 without control characters");
            Problem::invalid(format!("the name in the path is {text:?}; {allowed}"))
        };
        let Path(text) = Path::<String>::from_request_parts(parts, gateway).await.map_err(|_| wrong(""))?;
        if text.is_empty() || text.len() > limits::MAX_KEY || text.chars().any(char::is_control) {
            return Err(wrong(&text));
        }
        Ok(Self(text))
    }
}

pub(crate) trait OfUuid {
    fn of(id: Uuid) -> Self;
}

impl OfUuid for CallId {
    fn of(id: Uuid) -> Self {
        Self(id)
    }
}

impl OfUuid for TaskId {
    fn of(id: Uuid) -> Self {
        Self(id)
    }
}

impl OfUuid for RedriveId {
    fn of(id: Uuid) -> Self {
        Self(id)
    }
}

impl OfUuid for Uuid {
    fn of(id: Uuid) -> Self {
        id
    }
}

/// Reads a JSON text of the wire contract; the error says what is wrong with it, in which field and where.
pub(crate) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        let mut again = serde_json::Deserializer::from_slice(body);
        let path = serde_path_to_error::deserialize::<_, T>(&mut again).err().map(|error| error.path().clone());
        let field = path.as_ref().filter(|_| error.is_data()).map(ToString::to_string).filter(|field| field != ".");
        let field = field.map(|field| format!("{field}: ")).unwrap_or_default();
        let message = format!("the body cannot be read: {field}{error}");
        let details = path.filter(|_| error.is_data()).map(|path| broken_rule(&path, &error.to_string()));
        ApiError { code: Code::InvalidMessage, message, details: details.into_iter().collect() }.into()
    })
}

/// Says what is wrong in a query, in which parameter, and what is allowed there.
fn wrong_query(query: &str, name: &str, told: &str) -> Problem {
    // The path has the index of a parameter that may be repeated.
    let name = name.split(['[', '.']).next().unwrap_or_default();
    let pairs: Vec<(String, String)> = serde_html_form::from_str(query).unwrap_or_default();
    let sent: Vec<&str> = pairs.iter().filter(|(sent, _)| sent == name).map(|(_, value)| value.as_str()).collect();
    let listed = || told.split_once("expected one of ").map(|(_, names)| names.replace('`', ""));
    let told = match (&*sent, in_words(told).map(str::to_owned).or_else(listed)) {
        ([], _) => format!("the query: {told}"),
        (_, Some(allowed)) if told.starts_with("unknown field") => {
            format!("the query has the unknown parameter {:?}; allowed: {allowed}", limits::shorten(name, 100))
        }
        ([_], Some(allowed)) => format!("{name} is {:?}; allowed: {allowed}", limits::shorten(sent[0], 100)),
        ([_], None) => format!("{name} is {:?}: {told}", limits::shorten(sent[0], 100)),
        (_, Some(allowed)) => format!("one of the values of {name} is wrong; allowed: {allowed}"),
        (_, None) => format!("{name} is given {} times: {told}; allowed: once", sent.len()),
    };
    Problem::invalid(told)
}

/// Says what is allowed where a parser of a library says only what it met.
fn in_words(told: &str) -> Option<&'static str> {
    const TIMES: [&str; 5] = [
        "input contains invalid characters",
        "premature end of input",
        "input is out of range",
        "trailing input",
        "input is not enough for unique date and time",
    ];
    match told {
        told if TIMES.contains(&told) => Some("a time with its zone, such as 2026-11-24T17:00:00Z"),
        told if told.starts_with("invalid digit found") || told.starts_with("number too ") => Some("a whole number"),
        told if told.starts_with("cannot parse integer from empty") => Some("a whole number"),
        told if told.starts_with("UUID parsing failed") => Some("a UUID"),
        told if told.starts_with("provided string was not `true`") => Some("true or false"),
        _ => None,
    }
}

/// Returns the rule that a field of a body breaks, of what serde says about it.
fn broken_rule(path: &serde_path_to_error::Path, told: &str) -> FieldError {
    let told = told.rsplit_once(" at line ").map_or(told, |(told, _)| told);
    let segments = path.iter().map(|segment| match segment {
        Segment::Seq { index } => index.to_string(),
        Segment::Map { key } => key.clone(),
        Segment::Enum { variant } => variant.clone(),
        Segment::Unknown => "?".to_owned(),
    });
    let missing = told.strip_prefix("missing field ").map(|name| name.trim_matches('`').to_owned());
    let rules = [
        ("missing field", "required"),
        ("unknown field", "additionalProperties"),
        ("unknown variant", "enum"),
        ("invalid type", "type"),
    ];
    let rule = rules.iter().find(|(start, _)| told.starts_with(start)).map_or("format", |(_, rule)| rule);
    let pointer = segments.chain(missing).map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1")));
    FieldError {
        path: pointer.collect(),
        rule: rule.to_owned(),
        sent: None,
        allowed: match (rule, told.split_once("expected ")) {
            ("required", _) => "a value".to_owned(),
            (_, Some((_, allowed))) if allowed.starts_with("struct ") => "an object".to_owned(),
            (_, Some((_, allowed))) => allowed.to_owned(),
            (_, None) => in_words(told).unwrap_or(told).to_owned(),
        },
        hint: None,
    }
}

/// Fails if a text nests deeper than what is read here.
pub(crate) fn check_depth(body: &[u8]) -> Result<(), Problem> {
    let text = str::from_utf8(body)
        .map_err(|error| Problem::new(Code::InvalidMessage, format!("the body is not UTF-8: {error}")))?;
    let depth = limits::json_depth(text);
    if depth > DEPTH {
        return Err(Problem::new(Code::TooLarge, format!("the body nests {depth} deep; allowed: {DEPTH}")));
    }
    Ok(())
}

/// Reads a whole body of at most `most` bytes. One that does not arrive in time is given up: it would be held
/// indefinitely. `hold` waits until so many bytes may be held, once what has arrived is large, or before anything is
/// read of a body that says that it is.
async fn read(body: Body, most: usize, hold: impl AsyncFnOnce(usize) -> Result<(), Problem>) -> Result<Bytes, Problem> {
    let told = body.size_hint().exact().map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let (mut pieces, mut read) = (body.into_data_stream(), BytesMut::new());
    let late = Instant::now() + ARRIVES;
    let (mut hold, mut rate) = (Some(hold), None::<LeastRate>);
    loop {
        let bytes = told.max(read.len());
        if let Some(hold) = hold.take_if(|_| bytes > LARGE_BYTES) {
            hold(bytes).await?;
            read.reserve(bytes.min(most) - read.len());
            rate = Some(LeastRate::begin());
        }
        let until = rate.as_ref().map_or(late, LeastRate::until);
        let piece = match timeout_at(until, pieces.next()).await {
            Ok(None) => return Ok(read.freeze()),
            Ok(Some(piece)) => piece.map_err(|error| not_whole(&error.to_string()))?,
            Err(_) if rate.as_mut().is_some_and(LeastRate::holds) => continue,
            Err(_) if rate.is_some() => return Err(not_whole(&format!("less than {} came", pace::IN_WORDS))),
            Err(_) => return Err(not_whole(&format!("it took more than {} s", ARRIVES.as_secs()))),
        };
        if read.len() + piece.len() > most {
            return Err(Problem::new(Code::TooLarge, format!("the body has more bytes than are allowed: {most}")));
        }
        read.extend_from_slice(&piece);
        if let Some(rate) = &mut rate {
            rate.add(piece.len());
        }
    }
}

fn not_whole(why: &str) -> Problem {
    Problem::new(Code::InvalidMessage, format!("the body did not arrive whole: {why}"))
}

/// Returns the media type of the body, in lower case and without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

fn check_json_type(headers: &HeaderMap) -> Result<(), Problem> {
    check_encoding(headers)?;
    match media_type(headers).as_deref() {
        Some("application/json") => Ok(()),
        Some(media) if media.starts_with("application/") && media.ends_with("+json") => Ok(()),
        other => Err(wrong_type(other, "application/json")),
    }
}

/// Fails for a body that is compressed, which would be read as what it is not.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(found) = headers.get(header::CONTENT_ENCODING) else { return Ok(()) };
    if found.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity") {
        return Ok(());
    }
    let found = limits::shorten(&String::from_utf8_lossy(found.as_bytes()), 100);
    let message = format!("Content-Encoding is {found:?}; allowed: none, the body as it is");
    Err(Problem::new(Code::UnsupportedMediaType, message))
}

pub(crate) fn wrong_type(found: Option<&str>, allowed: &str) -> Problem {
    let found = found.map_or("absent".to_owned(), |found| format!("{:?}", limits::shorten(found, 100)));
    Problem::new(Code::UnsupportedMediaType, format!("Content-Type is {found}; allowed: {allowed}"))
}

/// Returns whether a request changes nothing, by its method.
pub(crate) fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::stream;
    use redial_proto::Submission;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Order {
        #[expect(dead_code, reason = "only read")]
        lines: Vec<Line>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line {
        #[expect(dead_code, reason = "only read")]
        seats: u8,
    }

    #[test]
    fn what_is_wrong_in_a_body_has_a_pointer_a_rule_and_what_is_allowed() {
        for (body, pointer, rule, allowed) in [
            (r#"{"lines": [{"seats": 1}, {"seats": "two"}]}"#, "/lines/1/seats", "type", "u8"),
            (r#"{"lines": [{}]}"#, "/lines/0/seats", "required", "a value"),
            (r#"{"lines": [{"seats": 1, "a/b": 2}]}"#, "/lines/0/a~1b", "additionalProperties", "`seats`"),
            (r#"{"lines": [{"seats": 300}]}"#, "/lines/0/seats", "format", "u8"),
            ("17", "", "type", "an object"),
        ] {
            let error = json::<Order>(body.as_bytes()).unwrap_err().error;
            let told = &error.details[0];
            assert_eq!((told.path.as_str(), told.rule.as_str(), told.allowed.as_str()), (pointer, rule, allowed));
            assert!(error.message.contains(" at line 1 column "), "{}", error.message);
        }
        assert!(json::<Submission>(b"{").unwrap_err().error.details.is_empty(), "no JSON: there is no field");
    }
    /// Makes a body that does not say how long it is, of pieces of 16 KiB, so many a second.
    fn trickle(pieces: usize, a_second: u32) -> Body {
        let pause = Duration::from_secs(1) / a_second;
        Body::from_stream(stream::iter(0..pieces).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 16 * 1024]))
        }))
    }

    /// Returns how many seconds a body was read, how many bytes were asked for, and what was read or is wrong.
    async fn read_in(body: Body) -> (u64, Option<usize>, Result<usize, String>) {
        let (began, asked) = (Instant::now(), Cell::new(None));
        let hold = async |bytes| {
            asked.set(Some(bytes));
            Ok(())
        };
        let read = read(body, 4 << 20, hold).await.map(|body| body.len()).map_err(|problem| problem.error.message);
        (began.elapsed().as_secs(), asked.get(), read)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_needs_a_share_beyond_1_mib_and_has_to_arrive_at_the_least_rate_then() {
        let wrong = |why: &str| Err(format!("the body did not arrive whole: {why}"));
        // Of 1 MiB: none.
        assert_eq!(read_in(trickle(64, 4)).await, (16, None, Ok(1 << 20)));
        assert_eq!(read_in(trickle(64, 1)).await, (60, None, wrong("it took more than 60 s")));
        // A little more, after 16 s.
        let begun = (1 << 20) + 16 * 1024;
        assert_eq!(read_in(trickle(200, 4)).await, (50, Some(begun), Ok(200 * 16 * 1024)));
        assert_eq!(read_in(trickle(200, 3)).await, (41, Some(begun), wrong("less than 64 KiB/s over 10 s came")));
        // Nothing comes any more.
        let stopped = trickle(66, 1_000).into_data_stream().chain(stream::pending());
        let (seconds, _, stopped) = read_in(Body::from_stream(stopped)).await;
        assert_eq!((seconds, stopped), (20, wrong("less than 64 KiB/s over 10 s came")));
        // One that says that it is large has its share before anything is read.
        assert_eq!(read_in(Body::from(vec![b' '; 2 << 20])).await, (0, Some(2 << 20), Ok(2 << 20)));
        let too_large = "the body has more bytes than are allowed: 4194304".to_owned();
        assert_eq!(read_in(trickle(1_000, 1_000)).await.2, Err(too_large));
    }
}
