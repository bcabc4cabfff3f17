//! Every text that Redial says to a model, by key and language. The keys are what users replace texts by, so they are
//! stable; `docs/FEEDBACK.md` lists them.

mod advice;
mod guidance;
mod messages;
mod nudges;
mod text;

use redial_proto::Language;

pub use self::text::Text;

/// Names in curly brackets that stand for something in a text, where it has it.
pub const PLACEHOLDERS: [&str; 13] = [
    "tool",
    "class",
    "message",
    "corrections_left",
    "times",
    "other",
    "problem",
    "reason",
    "code",
    "wrong",
    "limit",
    "over",
    "ending",
];

pub fn all() -> impl Iterator<Item = &'static Text> {
    guidance::TEXTS.iter().chain(&advice::TEXTS).chain(&messages::TEXTS).chain(&nudges::TEXTS)
}

/// Returns the text of a key; empty if there is no such key.
pub(super) fn text(key: &str, language: Language) -> &'static str {
    let found = all().find(|text| text.key == key);
    found.map_or("", |text| match language {
        Language::En => text.en,
        Language::Zh => text.zh,
    })
}
