//! The texts that a model receives: a public interface, to the letter.

mod refused;
mod templates;

use std::collections::BTreeMap;

use redial_engine::{
    Route,
    feedback::{
        CallFailure, MAX_FEEDBACK, Nudge, Repeated, Words, call_failure, failed_call, message, nudge, repeated,
    },
};
use redial_proto::{ErrorClass, Failure, FieldError, Language, TaskCode};
use serde_json::{Value, json};

const NONE: &BTreeMap<String, String> = &BTreeMap::new();
const EN: Words<'static> = Words { language: Language::En, templates: NONE };
const ZH: Words<'static> = Words { language: Language::Zh, templates: NONE };

fn failure(class: ErrorClass, message: &str) -> Failure {
    Failure::new(class, message).without_effect()
}

fn pretty(content: &str) -> String {
    serde_json::to_string_pretty(&serde_json::from_str::<Value>(content).unwrap()).unwrap()
}

fn field(path: &str, rule: &str, sent: impl Into<Value>, allowed: &str) -> FieldError {
    FieldError { path: path.into(), rule: rule.into(), sent: Some(sent.into()), allowed: allowed.into(), hint: None }
}

/// Refuses a flight with two mistakes, as the arguments' pipeline does.
fn flight(language: Language) -> Failure {
    let (message, allowed, hint) = match language {
        Language::En => ("/date: \"明天\" was sent; allowed: YYYY-MM-DD", "1 to 5", "did you mean 5?"),
        Language::Zh => ("/date 收到的是 \"明天\"，允许的是：YYYY-MM-DD", "1 到 5", "是否应为 5？"),
    };
    let passengers = FieldError { hint: Some(hint.into()), ..field("/passengers", "maximum", 6, allowed) };
    let details = vec![field("/date", "format", "明天", "YYYY-MM-DD"), passengers];
    Failure { details, ..failure(ErrorClass::InvalidArguments, message) }
}

fn every_class(words: Words<'_>) -> String {
    let said = |class: ErrorClass| match class {
        ErrorClass::InvalidArguments => flight(words.language),
        class => failure(class, "what the tool or the pipeline said"),
    };
    let corrections = |class| matches!(redial_engine::route(class), Route::Feedback | Route::Unexplained);
    let lines = ErrorClass::ALL.map(|class| {
        let left = corrections(class).then_some(2);
        pretty(&failed_call(words, "book_flight", &said(class), left))
    });
    lines.join("\n")
}

#[test]
fn every_class_in_english() {
    insta::assert_snapshot!(every_class(EN));
}

#[test]
fn every_class_in_chinese() {
    insta::assert_snapshot!(every_class(ZH));
}

#[test]
fn without_corrections_the_model_is_told_to_stop() {
    let told = |words, left| pretty(&failed_call(words, "book_flight", &flight(Language::En), left));
    insta::assert_snapshot!([told(EN, Some(0)), told(ZH, Some(0)), told(EN, None)].join("\n"));
}

#[test]
fn an_unknown_outcome_is_said_in_words() {
    let lost = Failure { effect_possible: true, ..failure(ErrorClass::Lost, "the worker w-7 was lost") };
    let timeout = Failure { effect_possible: true, ..failure(ErrorClass::Timeout, "10.0.0.7 did not answer") };
    let lines = [EN, ZH].map(|words| {
        [pretty(&failed_call(words, "book_flight", &lost, None)), pretty(&failed_call(words, "pay", &timeout, None))]
            .join("\n")
    });
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn words_about_a_service_are_our_own_and_no_placeholder_is_left() {
    use ErrorClass::{Auth, Configuration, Internal, Lost, RateLimited, Timeout, Unavailable};
    let of_service = [RateLimited, Unavailable, Timeout, Lost, Auth, Configuration, Internal];
    for (words, class) in [EN, ZH].into_iter().flat_map(|words| ErrorClass::ALL.map(|class| (words, class))) {
        for (left, unknown) in [(None, false), (Some(0), false), (Some(1), false), (None, true)] {
            let said = if of_service.contains(&class) { "canary-5ecret at db-7.prod.internal" } else { "said" };
            let failure = failure(class, said).with_diagnostics("canary-5ecret");
            let failure = Failure { effect_possible: unknown, ..failure };
            let content = failed_call(words, "pay", &failure, left);
            let message = message(words, "pay", &failure);
            assert!(
                !content.contains("canary") && !content.contains("db-7") && !message.contains("canary"),
                "{content}"
            );
            let value: Value = serde_json::from_str(&content).unwrap();
            for field in ["message", "guidance"] {
                let text = value[field].as_str().unwrap();
                assert!(!text.is_empty() && !text.contains(['{', '}']), "{text}");
            }
        }
    }
    let failed = failure(ErrorClass::ToolFailed, "the program ended with exit code 1");
    assert_eq!(message(EN, "get_weather", &failed), "get_weather failed: the program ended with exit code 1");
    let content = failed_call(EN, "get_weather", &failure(ErrorClass::BusinessRule, " \n"), Some(1));
    assert!(content.contains("get_weather gave no reason."), "{content}");
}

#[test]
fn repetitions_quote_the_earlier_error() {
    let all = [
        Repeated::SameCall { error: "/date: \"明天\" was sent; allowed: YYYY-MM-DD" },
        Repeated::SameError { error: "sold out", times: 3 },
        Repeated::SameResult { times: 3 },
        Repeated::PingPong { other: "list_tables" },
    ];
    let lines = [EN, ZH].map(|words| all.map(|why| repeated(words, "book_flight", why).message).join("\n"));
    insta::assert_snapshot!(lines.join("\n"));
    let failure = repeated(EN, "book_flight", Repeated::SameCall { error: &"x".repeat(10_000) });
    assert_eq!(failure.class, ErrorClass::RepeatedCall);
    assert!(failure.message.len() <= 4096 && failure.details.is_empty() && !failure.effect_possible);
}

#[test]
fn nudges_say_who_speaks_and_what_to_do() {
    let last = |code| Nudge::LastAnswer { code, tool: None };
    let mut all = vec![Nudge::Empty, Nudge::Problem("neither Action nor Answer was found.")];
    all.extend([Nudge::CutOff, Nudge::CutOffBeforeAnswer, Nudge::Continue { ending: "and on the plain" }]);
    all.push(Nudge::LastAnswer { code: TaskCode::CorrectionsExhausted, tool: Some("book_flight") });
    all.extend(TaskCode::ALL.map(last));
    let lines = [EN, ZH].map(|words| all.iter().map(|one| nudge(words, *one)).collect::<Vec<_>>().join("\n"));
    assert!(!lines.concat().contains(['{', '}']), "a placeholder is left");
    insta::assert_snapshot!(lines.join("\n\n"));
}

#[test]
fn what_was_sent_always_stays() {
    let sent = r#"{"url":"https://10.0.0.7:8443/a?token=abc123","file":"/home/li/.ssh/id_rsa","note":"a\nb"}"#;
    let said = "cannot read https://10.0.0.7:8443/a?token=abc123 nor /home/li/.ssh/id_rsa from db-7.internal:5432";
    let sent_there = json!({"key": "sk-1234567890abcdef"});
    let allowed = "no key sk-1234567890abcdef, no host 10.9.9.9";
    let details = vec![field("/home/0/name", "exists", sent_there, allowed)];
    let failure = Failure { details, ..failure(ErrorClass::InvalidArguments, said) };
    insta::assert_snapshot!(pretty(&call_failure(
        EN,
        CallFailure { sent, corrections_left: Some(1), ..CallFailure::new("fetch", &failure) },
        MAX_FEEDBACK
    )));
    let blind = failed_call(EN, "fetch", &failure, Some(1));
    assert!(!blind.contains("10.0.0.7") && !blind.contains("id_rsa"), "{blind}");
}

#[test]
fn what_the_schema_allows_is_told_in_full() {
    let details = vec![field("/endpoint", "enum", "x", "one of \"https://eu.api.acme.com\", \"db-7:5432\"")];
    let message = "/endpoint: \"x\" was sent; allowed: one of \"https://eu.api.acme.com\", \"db-7:5432\"";
    let failure = Failure { details, ..failure(ErrorClass::InvalidArguments, message) };
    let content = failed_call(EN, "fetch", &failure, None);
    assert_eq!(content.matches("https://eu.api.acme.com").count(), 2, "{content}");
    assert_eq!(content.matches("db-7:5432").count(), 2, "{content}");
}

#[test]
fn a_flood_of_details_is_cut() {
    let [path, rule, allowed, hint] = ["/p", "r", "a", "h"].map(|part| part.repeat(5_000));
    let detail = FieldError { hint: Some(hint), ..field(&path, &rule, json!(vec!["s".repeat(100); 100]), &allowed) };
    let failure = Failure { details: vec![detail; 200], ..failure(ErrorClass::InvalidArguments, &"m ".repeat(50_000)) };
    let value: Value = serde_json::from_str(&failed_call(ZH, "fetch", &failure, None)).unwrap();
    let shown = value["details"].as_array().unwrap().len();
    assert!(shown > 0 && value["details_left_out"] == 200 - shown, "{shown}: {}", value["details_left_out"]);
    assert!(value["message"].as_str().unwrap().ends_with("(cut)"));
    assert!(value.to_string().len() <= MAX_FEEDBACK);
}
