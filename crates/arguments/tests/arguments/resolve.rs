//! Properties of every text: nothing is invented, correct parts are not changed, nothing panics.

mod damage;
mod hostile;
mod pipeline;
mod surroundings;

use std::borrow::Cow;

use proptest::prelude::*;
use redial_arguments::{Repairs, Schema};
use redial_proto::Language;
use serde_json::{Value, json};

use damage::{Damage, Printer};

/// Makes a schema that accepts any object.
fn anything() -> Schema {
    Schema::compile(&json!({})).unwrap()
}

/// Generates JSON with these names and texts.
pub(crate) fn any_json_with(name: BoxedStrategy<String>, text: BoxedStrategy<String>) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6..1e6_f64).prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6).prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    let name = prop_oneof!["[a-z_]{1,4}", "[A-Z北\"'\\\\ .-]{0,3}"].boxed();
    let text = prop_oneof!["[a-z北~/_ ]{0,6}", "\\PC{0,8}", "[\"'`\\\\\n\t{}\\[\\],:#/ntu0-9]{0,8}"].boxed();
    let members = prop::collection::vec((name.clone(), any_json_with(name, text)), 0..6);
    members.prop_map(|pairs| pairs.into_iter().collect())
}

/// Cuts the text to about this part of its length.
fn cut(text: &str, part: f64) -> &str {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a test")]
    let mut end = (text.len() as f64 * part) as usize;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn valid_json_is_not_changed(object in any_object(), pretty in any::<bool>()) {
        let raw = if pretty { serde_json::to_string_pretty(&object).unwrap() } else { object.to_string() };
        let schema = anything();
        let done = schema.resolve(&raw, Repairs::On).unwrap();
        prop_assert!(matches!(done.arguments, Cow::Borrowed(same) if same == raw));
        prop_assert!(done.repairs.is_empty());
    }

    #[test]
    fn a_damaged_text_is_restored(object in any_object(), damage in Damage::any()) {
        let raw = Printer::new(damage).print(&object);
        let schema = anything();
        let done = schema.resolve(&raw, Repairs::On);
        let done = done.map_err(|refusal| TestCaseError::fail(format!("{raw}\n{refusal}")))?;
        let value: Value = serde_json::from_str(&done.arguments).unwrap();
        prop_assert_eq!(value, object, "{}\n{}", raw, done.arguments);
        prop_assert_eq!(done.repairs.is_empty(), done.arguments == raw);
    }

    #[test]
    fn the_start_of_a_text_never_runs(object in any_object(), damage in Damage::any(), part in 0.0..1.0_f64) {
        let raw = Printer::new(damage.unwrapped()).print(&object);
        let raw = raw.trim();
        let start = cut(raw, part);
        let refusal = anything().resolve(start, Repairs::On).unwrap_err();
        prop_assert!(refusal.message.contains("cut off") || refusal.message.contains("empty"), "{start}\n{refusal}");
    }

    #[test]
    fn nothing_that_looks_like_json_panics(raw in r#"[\[\]{}:,"'\\ 0-9eE.+a-u`#/*“”，：TFN\n\u{feff}-]{0,80}"#) {
        check_any(&raw)?;
        check_any(&format!("{{{raw}}}"))?;
    }
}

/// Checks that arguments that run are strictly valid, record what was changed, and are not changed a second time.
fn check_any(raw: &str) -> Result<(), TestCaseError> {
    let schema = anything();
    let Ok(done) = schema.resolve(raw, Repairs::On) else {
        // Text that is refused is refused in every language, with a message.
        let refusal = schema.resolve_in(raw, Repairs::On, Language::Zh).unwrap_err();
        prop_assert!(!refusal.message.is_empty());
        return Ok(());
    };
    prop_assert_eq!(schema.check(&done.arguments), Ok(()), "{}", raw);
    prop_assert_eq!(done.repairs.is_empty(), done.arguments.trim() == raw.trim(), "{}", raw);
    let again = schema.resolve(&done.arguments, Repairs::On).unwrap();
    prop_assert!(again.repairs.is_empty());
    prop_assert_eq!(&again.arguments, &done.arguments);
    // Text that serde_json accepts has the same value.
    if let Ok(value) = serde_json::from_str::<Value>(raw)
        && value.is_object()
    {
        prop_assert_eq!(value, serde_json::from_str::<Value>(&done.arguments).unwrap());
    }
    Ok(())
}
