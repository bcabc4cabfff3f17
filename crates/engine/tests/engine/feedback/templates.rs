//! The user's own words.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use redial_engine::feedback::{Nudge, Repeated, Words, check_templates, failed_call, nudge, repeated, texts};
use redial_proto::{ErrorClass, Failure, Language, TaskCode};
use serde_json::Value;

use super::{EN, ZH, failure, flight};

fn own(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
    texts.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn own_texts_replace_the_built_in_ones() {
    let templates = own(&[
        ("invalid_arguments", "Fix it, {tool} waits. {corrections_left} left. {nonsense} {times}"),
        ("invalid_arguments.message", "[{class}] {message}"),
        ("timeout.message", "{tool} is slow. {message}"),
        ("repeated_call.same_error", "{times}× {message}"),
        ("nudge.problem", "Bad form: {problem}"),
        ("last_answer", "{code}: {reason}"),
        ("last_answer.turns_exhausted", "No turns."),
        ("no_corrections_left", "Stop."),
    ]);
    assert_eq!(check_templates(&templates), Ok(()));
    let words = Words { language: Language::En, templates: &templates };
    let content: Value =
        serde_json::from_str(&failed_call(words, "book_flight", &flight(Language::En), Some(2))).unwrap();
    assert_eq!(content["guidance"], "Fix it, book_flight waits. 2 left. {nonsense} {times}");
    assert_eq!(content["message"], "[invalid_arguments] /date: \"明天\" was sent; allowed: YYYY-MM-DD");
    let content = failed_call(words, "book_flight", &flight(Language::En), Some(0));
    assert!(content.contains(r#""guidance":"Stop.""#), "{content}");
    // What a service said is not to be had by a template either.
    let content = failed_call(words, "slow", &failure(ErrorClass::Timeout, "secret words"), None);
    assert!(content.contains("slow is slow. ") && !content.contains("secret"), "{content}");
    let why = Repeated::SameError { error: "no {times}", times: 4 };
    assert_eq!(repeated(words, "t", why).message, "4× no {times}");
    assert_eq!(nudge(words, Nudge::Problem("no Action")), "Bad form: no Action");
    let last = Nudge::LastAnswer { code: TaskCode::TurnsExhausted, tool: None };
    assert_eq!(nudge(words, last), "turns_exhausted: No turns.");
}

#[test]
fn bad_templates_are_named() {
    let of = |key: &str, text: &str| check_templates(&own(&[(key, text)])).unwrap_err();
    insta::assert_snapshot!(of("invalid_argument", "x"));
    insta::assert_snapshot!(of("nudge.empty", " "), @r#"templates: "nudge.empty" is empty; a text is needed"#);
    insta::assert_snapshot!(of("auth", &"x".repeat(9_000)), @r#"templates: "auth" takes 9000 bytes; allowed: 8192"#);
}

#[test]
fn keys_are_unique_and_every_class_has_its_texts() {
    let mut keys: Vec<&str> = texts::all().map(|text| text.key).collect();
    for class in ErrorClass::ALL {
        assert!(keys.contains(&class.as_str()), "{class}");
        assert!(keys.contains(&format!("{class}.message").as_str()), "{class}.message");
    }
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count);
}

#[test]
fn both_languages_have_the_same_placeholders() {
    for text in texts::all() {
        for name in texts::PLACEHOLDERS {
            let holder = format!("{{{name}}}");
            // Who did it may be said once more in one language.
            if name != "tool" {
                assert_eq!(text.en.contains(&holder), text.zh.contains(&holder), "{} {holder}", text.key);
            }
        }
        assert!(!text.en.is_empty() && !text.zh.is_empty(), "{}", text.key);
    }
}

fn page() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/FEEDBACK.md")).unwrap()
}

#[test]
fn the_examples_of_the_page_are_real() {
    let mut real: BTreeSet<(String, String)> = super::refused::guidances();
    for (words, class) in [EN, ZH].into_iter().flat_map(|words| ErrorClass::ALL.map(|class| (words, class))) {
        for tool in ["book_flight", "get_weather", "pay"] {
            for unknown in [false, true] {
                let failure = Failure { effect_possible: unknown, ..failure(class, "said") };
                let content: Value = serde_json::from_str(&failed_call(words, tool, &failure, None)).unwrap();
                real.insert((class.as_str().to_owned(), content["guidance"].as_str().unwrap().to_owned()));
            }
        }
    }
    let page = page();
    let examples: Vec<&str> = page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 5);
    for example in examples {
        let example: Value = serde_json::from_str(example).unwrap();
        let text = |field: &str| example[field].as_str().unwrap().to_owned();
        assert!(real.contains(&(text("class"), text("guidance"))), "{example}");
    }
    // Quotations are broken into lines.
    let last = Nudge::LastAnswer { code: TaskCode::CorrectionsExhausted, tool: Some("book_flight") };
    assert!(page.replace("\n> ", " ").contains(&nudge(EN, last)));
}

#[test]
fn the_page_names_every_key_and_placeholder() {
    let page = page();
    for text in texts::all() {
        let class = text.key.strip_suffix(".message").filter(|class| class.parse::<ErrorClass>().is_ok());
        let named = page.contains(&format!("`{}`", text.key))
            || class.is_some_and(|class| page.contains(&format!("`{class}`")));
        assert!(named, "{} is not on the page", text.key);
    }
    for name in texts::PLACEHOLDERS {
        assert!(page.contains(&format!("`{{{name}}}`")), "{{{name}}} is not on the page");
    }
}
