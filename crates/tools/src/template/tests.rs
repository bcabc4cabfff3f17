//! Which templates load, what they expand to, and that no argument escapes from its position.

use std::sync::LazyLock;

use proptest::prelude::*;
use redial_proto::CallId;
use reqwest::Url;
use serde_json::{Value, json, value::RawValue};

use super::{JsonTemplate, Scope, Template, UrlTemplate, Values};
use crate::context::Context;

static PARAMETERS: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "properties": {"city": {}, "id": {}, "unit": {"default": "km"}, "page": {"type": "integer"}, "a/b": {}},
        "required": ["city", "id"]
    })
});

fn scope() -> Scope<'static> {
    Scope { parameters: &PARAMETERS, secrets: None }
}

fn context() -> Context {
    Context {
        call: "0190a5c0-0000-7000-8000-000000000001".parse::<CallId>().unwrap(),
        attempt: 3,
        idempotency_key: "key-1".to_owned(),
        tenant: "acme".to_owned(),
        ..Context::new("t")
    }
}

fn with_values<T>(arguments: &Value, run: impl FnOnce(&Values<'_>) -> T) -> T {
    let raw = RawValue::from_string(arguments.to_string()).unwrap();
    let context = context();
    run(&Values::new(&context, &raw).unwrap())
}

fn error(text: &str) -> String {
    Template::parse_required(text, &scope()).unwrap_err()
}

fn url(text: &str) -> Result<UrlTemplate, String> {
    UrlTemplate::parse(text, &scope(), &[])
}

fn filled(template: &str, arguments: &Value) -> Result<String, String> {
    let template = url(template).unwrap();
    with_values(arguments, |values| template.fill(values).map_err(|refused| values.failure(refused).message))
}

#[test]
fn mistakes_are_found_when_loading() {
    let lookup = |name: &str| (name == "EMPTY").then(String::new);
    let scope = Scope { secrets: Some(&lookup), ..scope() };
    let secret = |text: &str| Template::parse(text, &scope).unwrap_err();
    let errors = [
        error("{{arguments.citty}}"),
        error("{{argument.city}}"),
        error("{{}}"),
        error("a {{arguments.city"),
        error("{{arguments.page}}"),
        error("{{secret.KEY}}"),
        secret("{{secret.KEY}}"),
        secret("{{secret.EMPTY}}"),
        secret("{{env.KEY}}"),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn mistakes_in_urls_are_found_when_loading() {
    let errors = [
        "example.com/a",
        "ftp://example.com/a",
        "https://{{arguments.city}}.example.com/",
        "https://user:pass@example.com/",
        "https://example.com/a#b",
        "https://example.com{{arguments.city}}",
        "https://example.com/?{{arguments.city}}=1",
        "https://example.com/{{arguments.page}}",
        "https://example.com/?a=x{{arguments.page}}",
        "https://:80/",
    ]
    .map(|text| format!("{text}\n    {}", url(text).unwrap_err()));
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn every_variable_has_its_text() {
    let lookup = |_: &str| Some("s3cret".to_owned());
    let scope = Scope { secrets: Some(&lookup), ..scope() };
    let text =
        "{{call}} {{ attempt }} {{idempotency_key}} {{tenant}} {{arguments.city}} {{arguments.unit}} {{secret.X}} }}";
    let template = Template::parse_required(text, &scope).unwrap();
    let filled = with_values(&json!({"city": {"n": 1.50}}), |values| template.fill_required(values).unwrap());
    assert_eq!(filled, "0190a5c0-0000-7000-8000-000000000001 3 key-1 acme {\"n\":1.5} km s3cret }}");
    assert!(!format!("{template:?}").contains("s3cret"));
}

#[test]
fn numbers_keep_their_text() {
    let raw = RawValue::from_string(r#"{"city":123456789012345678901234567890,"id":1.50}"#.to_owned()).unwrap();
    let context = context();
    let values = Values::new(&context, &raw).unwrap();
    let url = url("https://example.com/{{arguments.city}}?id={{arguments.id}}").unwrap();
    assert_eq!(url.fill(&values).unwrap(), "https://example.com/123456789012345678901234567890?id=1.50");
}

#[test]
fn urls_are_encoded_by_position() {
    let template = "https://example.com/v1/{{arguments.city}}/x-{{arguments.id}}?page={{arguments.page}}&u={{arguments.unit}}&flag";
    let url = filled(template, &json!({"city": "北 京..x?#%", "id": 7})).unwrap();
    assert_eq!(url, "https://example.com/v1/%E5%8C%97%20%E4%BA%AC..x%3F%23%25/x-7?u=km&flag");
    let url = filled(template, &json!({"city": "a", "id": true, "page": 2, "unit": "a&b=c"})).unwrap();
    assert_eq!(url, "https://example.com/v1/a/x-true?page=2&u=a%26b%3Dc&flag");
    for bad in [
        "",
        ".",
        "..",
        "a/b",
        "a\\b",
        "%2e%2E",
        "a%2Fb",
        "a%5cb",
        "%2525252525252f",
        "..;x",
        "%2e.%3bx",
        "a\nb",
        "a%00b",
    ] {
        let refusal = filled(template, &json!({"city": bad, "id": 1})).unwrap_err();
        assert!(refusal.starts_with("/city: "), "{bad}: {refusal}");
    }
    assert!(filled(template, &json!({"city": null, "id": 1})).unwrap_err().contains("other than null"));
}

#[test]
fn bodies_keep_types_and_leave_out_what_is_missing() {
    let template = json!({"to": "{{arguments.city}}", "t": "to {{arguments.city}}!", "page": "{{arguments.page}}",
        "n": [1, "{{arguments.id}}", {"unit": "{{arguments.unit}}"}]});
    let template = JsonTemplate::parse(&template, &scope()).unwrap();
    let arguments = json!({"city": "\"}, {\"", "id": {"deep": [true]}});
    let body = with_values(&arguments, |values| template.fill(values).unwrap());
    let body: Value = serde_json::from_str(&body).unwrap();
    let expected = json!({"to": "\"}, {\"", "t": "to \"}, {\"!", "n": [1, {"deep": [true]}, {"unit": "km"}]});
    assert_eq!(body, expected);
}

/// Resolves a path as servers do: to segments without empty and dot ones.
fn resolved(path: &str) -> Vec<&str> {
    let mut segments = Vec::new();
    for segment in path.split(['/', '\\']) {
        match segment.split(';').next().unwrap_or_default() {
            "" | "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    segments
}

proptest! {
    #[test]
    fn an_argument_never_escapes_from_its_segment_or_parameter(city in any::<String>(), id in "[./\\\\%2eE?#&=:@a ]{0,8}") {
        let arguments = json!({"city": city, "id": id});
        let template = "https://example.com:8443/a/{{arguments.id}}/b?x={{arguments.city}}&y=1";
        let Ok(filled) = filled(template, &arguments) else { return Ok(()) };
        let parsed = Url::parse(&filled).unwrap();
        prop_assert_eq!(parsed.as_str(), &filled, "the parser found something to normalise");
        prop_assert_eq!(parsed.host_str(), Some("example.com"));
        prop_assert_eq!(parsed.port(), Some(8443));
        prop_assert_eq!(parsed.path_segments().unwrap().count(), 3);
        prop_assert_eq!(parsed.fragment(), None);
        let query: Vec<_> = parsed.query_pairs().into_owned().collect();
        prop_assert_eq!(query, vec![("x".to_owned(), city), ("y".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn an_argument_never_leaves_its_segment_however_often_the_path_is_decoded(
        id in "([./\\\\;a]|%2e|%2F|%5C|%25|%252f|%3b|é){0,6}", slash in any::<bool>(),
    ) {
            let slashes = if slash { vec!["id".to_owned()] } else { Vec::new() };
        let template = UrlTemplate::parse("https://example.com/a/{{arguments.id}}/b", &scope(), &slashes).unwrap();
        let arguments = json!({"city": 1, "id": id});
        let filled = with_values(&arguments, |values| template.fill(values).map_err(|_| ()));
        let Ok(filled) = filled else { return Ok(()) };
        let mut path = filled.strip_prefix("https://example.com").unwrap().to_owned();
        prop_assert_eq!(path.split('/').count(), 4, "the slash is encoded");
        for _ in 0..8 {
            let segments = resolved(&path);
            prop_assert_eq!((segments.first(), segments.last()), (Some(&"a"), Some(&"b")), "{}", path);
            prop_assert!(segments.len() == 3 || (slash && segments.len() > 3), "{}", path);
            path = percent_encoding::percent_decode_str(&path).decode_utf8_lossy().into_owned();
        }
    }

    #[test]
    fn an_argument_never_escapes_from_its_string_in_a_body(city in any::<String>()) {
            let template = json!({"a": "<{{arguments.city}}>", "b": "{{arguments.city}}"});
        let template = JsonTemplate::parse(&template, &scope()).unwrap();
        let body = with_values(&json!({"city": city, "id": 1}), |values| template.fill(values).unwrap());
        let body: Value = serde_json::from_str(&body).unwrap();
        prop_assert_eq!(body, json!({"a": format!("<{city}>"), "b": city}));
    }
}
