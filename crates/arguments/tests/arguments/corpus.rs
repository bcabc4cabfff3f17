//! Damaged arguments as models write them, and the required outcome of each: they run with exactly these arguments, or
//! become feedback. The worst outcome, arguments that run but were not meant, must never happen.

use std::rc::Rc;

use redial_arguments::{Refusal, Repairs, Schema, tool_name_in};
use redial_proto::Language;
use serde_json::{Value, json};

/// Characters that a line cannot show, and how the corpus shows them.
const SHOWN: [(&str, &str); 5] = [("\n", "⏎"), ("\r", "␍"), ("\t", "⇥"), ("\u{feff}", "<BOM>"), ("\u{a0}", "<NBSP>")];

struct Text {
    schema: Rc<Schema>,
    /// As the corpus shows it, and as it was sent.
    shown: &'static str,
    sent: String,
    /// The arguments that it means without doubt.
    wanted: Option<Value>,
}

fn corpus() -> Vec<Text> {
    let mut schema = Rc::new(Schema::compile(&json!({})).unwrap());
    let mut texts: Vec<Text> = Vec::new();
    for line in include_str!("corpus.txt").lines() {
        if let Some(of_texts) = line.strip_prefix(':') {
            schema = Rc::new(Schema::compile(&serde_json::from_str(of_texts).unwrap()).unwrap());
        } else if let Some(text) = line.strip_prefix('>') {
            let shown = text.strip_prefix(' ').unwrap_or(text);
            let sent = SHOWN.iter().fold(shown.to_owned(), |text, (sent, shown)| text.replace(shown, sent));
            texts.push(Text { schema: Rc::clone(&schema), shown, sent, wanted: None });
        } else if let Some(wanted) = line.strip_prefix('=') {
            texts.last_mut().unwrap().wanted = Some(serde_json::from_str(wanted).unwrap());
        }
    }
    texts
}

#[test]
fn no_damaged_text_runs_with_wrong_arguments() {
    let (mut ran, mut lines, mut wrong, mut refused) = (0, Vec::new(), Vec::new(), Vec::new());
    let corpus = corpus();
    for Text { schema, shown, sent, wanted } in &corpus {
        lines.push((*shown).to_owned());
        match (schema.resolve(sent, Repairs::On), wanted) {
            (Ok(done), Some(wanted)) if serde_json::from_str::<Value>(&done.arguments).unwrap() == *wanted => {
                lines.extend(done.repairs.iter().map(|repair| format!("    {repair}")));
                let arguments =
                    SHOWN.iter().fold(done.arguments.into_owned(), |text, (is, shown)| text.replace(is, shown));
                lines.push(format!("    runs with {arguments}"));
                ran += 1;
            }
            (Ok(done), _) => wrong.push(format!("{shown}\n  ran as {}", done.arguments)),
            (Err(refusal), Some(_)) => refused.push(format!("{shown}\n  {refusal}")),
            (Err(refusal), None) => lines.push(format!("    {}: {refusal}", refusal.class)),
        }
        assert!(schema.check(sent).is_ok() || schema.resolve(sent, Repairs::Off).is_err(), "{shown}");
    }
    println!(
        "damaged arguments: {} texts; {ran} run correctly, {} rightly refused, {} silently wrong, {} refused that should run",
        corpus.len(),
        corpus.iter().filter(|text| text.wanted.is_none()).count(),
        wrong.len(),
        refused.len()
    );
    assert!(wrong.is_empty(), "silently wrong:\n{}", wrong.join("\n"));
    assert!(refused.is_empty(), "refused that should run:\n{}", refused.join("\n"));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn feedback_in_chinese_has_the_same_details() {
    let mut lines = Vec::new();
    let corpus = corpus();
    for Text { schema, shown, sent, .. } in corpus.iter().filter(|text| text.wanted.is_none()) {
        let refusal = schema.resolve_in(sent, Repairs::On, Language::Zh).unwrap_err();
        let english = schema.resolve(sent, Repairs::On).unwrap_err();
        let rules = |refusal: &Refusal| {
            refusal.details.iter().map(|d| (d.path.clone(), d.rule.clone(), d.sent.clone())).collect::<Vec<_>>()
        };
        assert_eq!((refusal.class, rules(&refusal)), (english.class, rules(&english)));
        assert!(refusal.message.contains(|c| matches!(c, '\u{4e00}'..='\u{9fff}')), "{refusal}");
        lines.push(format!("{shown}\n    {}: {refusal}", refusal.class));
    }
    insta::assert_snapshot!(lines.join("\n"));
    let unknown = |sent: &str, offered: &[&'static str]| {
        tool_name_in(sent, offered.iter().copied(), Language::Zh).unwrap_err().message
    };
    let tools = ["get_weather", "get_whether"];
    insta::assert_snapshot!(
        [unknown("get_wether", &tools), unknown("send_email", &tools), unknown("a", &[])].join("\n")
    );
    let off = |raw| corpus[0].schema.resolve_in(raw, Repairs::Off, Language::Zh).unwrap_err().message;
    insta::assert_snapshot!([off(r#"{"location":"Paris",}"#), off("{\"location\":1e999}"), off("")].join("\n"));
}
