//! What never reaches a model or the record, and what must.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use redial_proto::{ErrorClass, Failure, FieldError, limits};
use redial_redaction::{Known, redact_failure, scrub};

fn clean(text: &str) -> String {
    scrub(text, &Known::nothing())
}

const TRACES: &str = include_str!("traces.txt");
const MACHINES: &str = include_str!("machines.txt");
const SECRETS: &str = include_str!("secrets.txt");

/// Reads the texts of a file. Those of `TRACES` have a name in their first line.
fn texts(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.trim_end().split("\n---\n")
}

fn traces() -> impl Iterator<Item = (&'static str, &'static str)> {
    texts(TRACES).map(|trace| trace.split_once('\n').unwrap())
}

#[test]
fn a_stack_trace_becomes_its_message() {
    let lines: Vec<String> = traces().map(|(name, trace)| format!("{name}\n{}", clean(trace))).collect();
    insta::assert_snapshot!(lines.join("\n\n"));
}

fn cleaned(file: &'static str) -> String {
    let lines = texts(file).map(|text| format!("{text}\n    {}", clean(text).replace('\n', "⏎")));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn machines_and_disks_have_no_names() {
    insta::assert_snapshot!(cleaned(MACHINES));
}

#[test]
fn secrets_are_removed() {
    insta::assert_snapshot!(cleaned(SECRETS));
}

fn on_record(text: &str, own: Option<&str>, sent: &str) -> String {
    redact_failure(Failure::new(ErrorClass::Unavailable, text), own, sent).message
}

#[test]
fn what_is_on_record_has_no_hosts_and_keeps_other_words() {
    let marked = |mark| include_str!("record.txt").lines().filter_map(move |line: &str| line.strip_prefix(mark));
    for (text, shown) in marked("> ").zip(marked("= ")) {
        assert_eq!(on_record(text, Some("shop.example.org"), ""), shown);
    }
}

#[test]
fn a_long_message_is_cut_after_its_hosts_are_removed() {
    let message = on_record(&"db-7.prod.internal:5432 ".repeat(limits::MAX_ERROR_MESSAGE), None, "");
    assert!(message.len() <= limits::MAX_ERROR_MESSAGE && !message.contains("db"), "{message}");
}

#[test]
fn what_was_sent_stays_on_record_but_not_the_own_host() {
    let sent = r#"{"url": "https://news.acme.com/today", "host": "api.acme.com"}"#;
    let text = "https://news.acme.com/today: not found; api.acme.com:443 and db-7:5432 failed";
    let shown = "https://news.acme.com/today: not found; [host] and [host] failed";
    assert_eq!(on_record(text, Some("api.acme.com"), sent), shown);
    let (path, rule, allowed) = ("/host".to_owned(), "enum".to_owned(), "db-8:5432".to_owned());
    let detail = FieldError { path, rule, sent: Some("db-7:5432".into()), allowed, hint: None };
    let failure = Failure { details: vec![detail], ..Failure::new(ErrorClass::Unavailable, "db-7:5432 failed") };
    assert_eq!(redact_failure(failure.clone(), None, ""), failure);
}

#[test]
fn what_a_model_has_to_know_stays() {
    for text in [
        "Input queries must be all capitals",
        "no seat left on CA1234 at 12:30 on 2026-05-01; 3/4 are business class",
        "/date: \"明天\" was sent; allowed: YYYY-MM-DD (did you mean 2026-05-01?)",
        "the arguments are not valid JSON at line 1 column 8, in /place/lat: a value is needed before ','",
        "order 123e4567-e89b-12d3-a456-426614174000 is closed",
        "password: must have at least 8 characters, token: expired",
        "Basic economy is sold out; bearer authentication needed",
        "user.address.city is missing; see section 4.2.1 of the terms",
        "an e-mail to li@example.com; a URI with its scheme, e.g. https://example.com/a",
        "the table `_sqlx_migrations` and std::io::Error, java.lang.String, 1:30:00",
        "余票不足：北京到上海 5 月 1 日仅剩 2 张",
        "密码：不能为空",
        "call read_result with {\"call_id\":\"c12_1\",\"offset\":8192}",
        "ratio 16:9, score 3:21, room 4:30, verse 12:42",
    ] {
        assert_eq!(clean(text), text);
    }
}

#[test]
fn what_is_clean_stays_as_it_is() {
    for text in traces().map(|(_, trace)| trace).chain(texts(MACHINES)).chain(texts(SECRETS)) {
        let once = clean(text);
        assert_eq!(clean(&once), once);
    }
}

#[test]
fn what_the_model_sent_stays_but_only_that() {
    let known = Known::new(r#"{"host":"db-7:5432","key":"a\"b","n":"4567"}"#, &[]);
    assert_eq!(scrub("db-7:5432 refused db-8:5432", &known), "db-7:5432 refused [host]");
    assert_eq!(scrub("password=456 or password=45678", &known), "password=[removed] or password=[removed]");
    assert_eq!(scrub("password=4567", &known), "password=4567");
}

#[test]
fn no_half_of_a_secret_is_left_where_a_long_text_is_cut() {
    for length in 16_370..16_400 {
        let text = format!("{} password=canary-canary-canary", "x ".repeat(length / 2));
        assert!(!clean(&text).contains("canary"));
    }
    assert_eq!(clean(&"x".repeat(100_000)), "");
}

/// Generates pieces of real messages, and noise.
fn piece() -> impl Strategy<Value = String> {
    let known: Vec<String> = traces().map(|(_, trace)| trace.to_owned()).collect();
    let words = "password= Bearer hunter2 10.0.0.1 :5432 https:// db-7.internal /home/x/y at sk-abcdefghijk1 token: ::1 [ ] \" \
                 ' host= C:\\x\\y 好 ， [host] [removed] [path] . - @ = eyJabcdef.eyJabcdef.x ^^^";
    let words = words.split(' ').chain([" ", "\n", "at ", "\tat a.b(C.java:1)", "goroutine 1 [running]:"]);
    prop_oneof![
        1 => prop::sample::select(known),
        6 => prop::sample::select(words.collect::<Vec<_>>()).prop_map(str::to_owned),
        2 => "\\PC{0,8}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_panics_or_grows_over_its_limit(pieces in prop::collection::vec(piece(), 0..20)) {
        let text = pieces.concat();
        let once = clean(&text);
        prop_assert!(once.len() <= 4096);
    }

    #[test]
    fn named_secrets_are_found_anywhere(before in "\\PC{0,20}", after in "\\PC{0,20}", name in prop::sample::select(
        vec!["password", "db_password", "API_KEY", "client-secret", "accessToken"])
    ) {
        let text = format!("{before} {name}=canary5ecret {after}");
        prop_assert!(!clean(&text).contains("canary5ecret"), "{}", clean(&text));
    }
}
