//! One object that is escaped, fenced, or among words: the same value comes back, and the repair is recorded.

use proptest::prelude::*;
use redial_arguments::Repairs;
use redial_proto::RepairKind;
use serde_json::{Value, json};

use super::{
    any_object, anything,
    damage::{Damage, Printer},
};

const BEFORE: [&str; 12] = [
    "Here are the arguments: ",
    "I'll call it now.\n\n",
    "参数如下：",
    "<tool_call>",
    "Sure! <tool_call>\n",
    "<|tool_call_begin|>",
    "callback(",
    "Now: functions.get_weather( ",
    "**Arguments** ",
    "- ",
    "json\n",
    "",
];
const AFTER: [&str; 10] = [
    "",
    ";",
    "<|im_end|>",
    "</tool_call>",
    "\n</tool_call>\n<|im_end|>\n",
    " Let's see.",
    "。",
    "\n\nThat is all!",
    "</s>",
    "<｜tool▁call▁end｜>",
];

/// Resolves a text; returns its value, and the kinds of repairs that were made.
fn read(raw: &str) -> Result<(Value, Vec<RepairKind>), TestCaseError> {
    let schema = anything();
    let done = schema.resolve(raw, Repairs::On);
    let done = done.map_err(|refusal| TestCaseError::fail(format!("{raw}\n{refusal}")))?;
    prop_assert!(schema.resolve(raw, Repairs::Off).is_err(), "{}", raw);
    let value = serde_json::from_str(&done.arguments).unwrap();
    Ok((value, done.repairs.iter().map(|repair| repair.kind).collect()))
}

fn refused(raw: &str) -> Result<(), TestCaseError> {
    let done = anything().resolve(raw, Repairs::On);
    prop_assert!(done.is_err(), "{}\nran as {:?}", raw, done);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn one_object_among_words_is_restored(
        object in any_object(), before in prop::sample::select(BEFORE.to_vec()),
        after in prop::sample::select(AFTER.to_vec()), damage in Damage::any()
    ) {
        let text = Printer::new(damage.unwrapped()).print(&object);
        let closing = if before.trim_end().ends_with('(') { ")" } else { "" };
        prop_assume!(!before.is_empty() || !after.is_empty());
        let (value, kinds) = read(&format!("{before}{text}{closing}{after}"))?;
        prop_assert_eq!(value, object);
        prop_assert!(kinds.contains(&RepairKind::SurroundingText), "{:?}", kinds);
    }

    #[test]
    fn two_objects_or_more_than_words_are_refused(
        one in any_object(), two in any_object(), before in prop::sample::select(BEFORE.to_vec()),
        between in prop::sample::select(vec!["", " and ", ", ", ";\n", "</tool_call><tool_call>"]),
        aside in prop::sample::select(vec!["(see below) ", "[1] ", "\"", "days: 2, ", "days=2 ", "`x` ", "<think>", "「x」"])
    ) {
        refused(&format!("{before}{one}{between}{two}"))?;
        refused(&format!("{aside}{one}"))?;
        refused(&format!("{one} {aside}"))?;
        refused(&format!("{one}</think>"))?;
        refused(&json!(format!("Take {one} please")).to_string())?;
        refused(&format!("Take {one}\n```json\n{two}\n```"))?;
        refused(&format!("```json\n{one}\n```\nor {two}"))?;
    }

    #[test]
    fn a_text_that_was_escaped_once_too_often_is_restored(object in any_object(), pretty in any::<bool>()) {
        prop_assume!(!object.as_object().unwrap().is_empty());
        let text = if pretty { serde_json::to_string_pretty(&object).unwrap() } else { object.to_string() };
        let escaped = json!(text).to_string();
        let (value, kinds) = read(escaped.trim_matches('"'))?;
        prop_assert_eq!(&value, &object);
        prop_assert_eq!(&kinds, &[RepairKind::DoubleEncoded]);
        if !text.contains('\\') {
            // Only the quotes were escaped; line breaks were not.
            let (value, _) = read(&text.replace('"', "\\\""))?;
            prop_assert_eq!(&value, &object);
        }
    }

    #[test]
    fn a_fence_of_any_length_is_removed(object in any_object(), length in 3..8_usize, word in "(json|JSON5|)", closed in any::<bool>()) {
        let fence = "`".repeat(length);
        let end = if closed { format!("\n{fence}") } else { String::new() };
        let (value, kinds) = read(&format!("{fence}{word}\n{object}{end}"))?;
        prop_assert_eq!(value, object);
        prop_assert_eq!(kinds.first(), Some(&RepairKind::CodeFence));
    }
}

/// The forms of tags that the reader of replies knows, and some that it does not know.
#[test]
fn an_object_in_thoughts_is_refused() {
    let words = ["think", "thinking", "thought", "thoughts", "reasoning", "seed:think", "reflection", "Think_Step-1"];
    let mut tags: Vec<(String, String)> =
        words.iter().map(|word| (format!("<{word}>"), format!("</{word}>"))).collect();
    tags.extend(words.iter().map(|word| (format!("<|{}|>", word.to_uppercase()), format!("<|/{word}|>"))));
    for (open, close) in [
        ("[THINK]", "[/THINK]"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("◁think▷", "◁/think▷"),
        ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ] {
        tags.push((open.to_owned(), close.to_owned()));
    }
    let object = json!({"amount": 5});
    for (open, close) in &tags {
        for text in [
            format!("{open}{object}"),
            format!("{open} maybe {object}"),
            format!("Ok. {open}\n```json\n{object}\n```"),
            format!("```json\n{object}\n```\n{close}"),
            format!("{open}{object}{close}"),
            format!("{object}{close}"),
            format!("{object} maybe {close}"),
            format!("{open}<tool_call>{object}</tool_call>{close}"),
        ] {
            assert!(anything().resolve(&text, Repairs::On).is_err(), "{text}");
        }
    }
}

#[test]
fn a_string_that_a_program_sends_is_read_as_the_text_in_it() {
    let schema = anything();
    let sent = json!("Here are the arguments: {\"a\": 1}").to_string();
    assert!(schema.resolve(&sent, Repairs::On).is_err(), "a sentence in a string");
    let done = schema.resolve_json(&sent, Repairs::On).unwrap();
    let kinds: Vec<RepairKind> = done.repairs.iter().map(|repair| repair.kind).collect();
    assert_eq!(
        (done.arguments.as_ref(), kinds.as_slice()),
        (r#"{"a": 1}"#, [RepairKind::DoubleEncoded, RepairKind::SurroundingText].as_slice())
    );
    let refusal = schema.resolve_json(&json!("{\"a\": 1").to_string(), Repairs::On).unwrap_err();
    assert_eq!(refusal.help.sent.as_deref(), Some("{\"a\": 1<<<HERE>>>"));
    assert_eq!(schema.resolve_json("{\"a\": 1}", Repairs::Off).unwrap().arguments, "{\"a\": 1}");
    assert!(schema.resolve_json("\"{}\"", Repairs::Off).is_err());
}
