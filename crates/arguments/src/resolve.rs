//! The pipeline: raw text → JSON → names → types → schema.

use std::borrow::Cow;

use redial_proto::{FieldError, Language, Repair, RepairKind, repair::MAX_REPAIRS};
use serde_json::Value;

use crate::{Schema, coerce, edit, edit::Fix, parse, refusal::Refusal, text, words::pick};

/// Each round unwraps one layer, say a string that holds an object with keys of another case; nobody means more.
const MAX_ROUNDS: usize = 8;

/// Whether arguments may be repaired. Off is for tools that would rather ask once more than act on anything but the
/// very letters that the model wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repairs {
    /// Lossless repairs are made and recorded.
    #[default]
    On,
    /// Arguments run as they are, or not at all.
    Off,
}

/// Arguments that may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved<'a> {
    /// JSON text of an object that fits the schema; the very text that was sent if nothing was repaired.
    pub arguments: Cow<'a, str>,
    /// What was changed, in order.
    pub repairs: Vec<Repair>,
    /// JSON pointers to properties that the schema allows and does not declare: most tools ignore them. At most 100.
    pub undeclared: Vec<String>,
}

impl Schema {
    /// Turns a model's raw text into arguments that fit the schema, with lossless repairs only, or says why not.
    ///
    /// Each repair writes down the same value in the form that was asked for; where that would take a guess, the
    /// arguments are refused. `docs/ARGUMENTS.md` lists both. Linear in the length of the text.
    pub fn resolve<'a>(&self, raw: &'a str, repairs: Repairs) -> Result<Resolved<'a>, Refusal> {
        self.resolve_in(raw, repairs, Language::En)
    }

    /// The same, with the refusal in the language of the model.
    pub fn resolve_in<'a>(&self, raw: &'a str, repairs: Repairs, language: Language) -> Result<Resolved<'a>, Refusal> {
        if repairs == Repairs::Off {
            return self.as_it_is(raw, language);
        }
        let parsed = parse::parse(raw, language);
        let draft = match parsed {
            Ok(value) => Draft { json: Cow::Borrowed(raw), value, repairs: Vec::new(), language },
            Err(_) => Draft::repaired(raw, language)?,
        };
        self.settle(draft)
    }

    fn as_it_is<'a>(&self, raw: &'a str, language: Language) -> Result<Resolved<'a>, Refusal> {
        let value = parse::parse(raw, language).map_err(|refusal| without_repairs(raw, &refusal, language))?;
        if !self.is_valid(&value) {
            return Err(self.refuse(&value, &[], language));
        }
        let undeclared = self.shapes.survey(&value).undeclared;
        Ok(Resolved { arguments: Cow::Borrowed(raw), repairs: Vec::new(), undeclared })
    }

    fn settle<'a>(&self, mut draft: Draft<'a>) -> Result<Resolved<'a>, Refusal> {
        for _ in 0..MAX_ROUNDS {
            let survey = self.shapes.survey(&draft.value);
            if draft.apply(&survey.fixes)? {
                continue;
            }
            if self.is_valid(&draft.value) {
                let Draft { json, repairs, .. } = draft;
                return Ok(Resolved { arguments: json, repairs, undeclared: survey.undeclared });
            }
            let fixes = self.with_errors(&draft.value, |errors| coerce::fixes(errors));
            if !draft.apply(&fixes)? {
                break;
            }
        }
        Err(self.refuse(&draft.value, &draft.repairs, draft.language))
    }
}

/// Arguments on their way.
struct Draft<'a> {
    json: Cow<'a, str>,
    /// What the text holds.
    value: Value,
    repairs: Vec<Repair>,
    /// Of a refusal.
    language: Language,
}

impl Draft<'_> {
    /// From a text that is no JSON object as it is.
    fn repaired(raw: &str, language: Language) -> Result<Self, Refusal> {
        let (json, repairs) = text::repair(raw, language)?;
        let value = parse::parse(&json, language)?;
        Ok(Self { json: Cow::Owned(json), value, repairs, language })
    }

    /// Makes changes; true if there was anything to change.
    fn apply(&mut self, fixes: &[Fix]) -> Result<bool, Refusal> {
        if fixes.is_empty() {
            return Ok(false);
        }
        let (json, made) = edit::apply(&self.json, fixes);
        if made.is_empty() {
            return Ok(false);
        }
        if self.repairs.len() + made.len() > MAX_REPAIRS {
            return Err(Refusal::malformed(pick(
                self.language,
                format!("the arguments need more than {MAX_REPAIRS} repairs"),
                format!("参数需要修复的地方超过 {MAX_REPAIRS} 处"),
            )));
        }
        self.value = parse::parse(&json, self.language)?;
        self.json = Cow::Owned(json);
        self.repairs.extend(made);
        Ok(true)
    }
}

/// Says where the text is cut off or ambiguous, even if the rest could have been repaired.
fn without_repairs(raw: &str, strict: &Refusal, language: Language) -> Refusal {
    match text::repair(raw, language) {
        Err(refusal) => refusal,
        Ok(_) => Refusal::malformed(pick(
            language,
            format!("{strict}; this tool takes valid JSON only"),
            format!("{strict}；这个工具只接受有效的 JSON"),
        )),
    }
}

/// Broken rules quote what was sent, not what a repair made of it.
pub(crate) fn quote_as_sent(details: &mut [FieldError], repairs: &[Repair]) {
    let retyped = |kind| matches!(kind, RepairKind::Type | RepairKind::EnumValue | RepairKind::DoubleEncoded);
    for violation in details {
        let first = repairs.iter().find(|made| retyped(made.kind) && made.path.as_ref() == Some(&violation.path));
        if let Some(made) = first {
            let sent = serde_json::from_str(&made.before);
            violation.sent = sent.unwrap_or_else(|_| Value::String(made.before.clone()));
        }
    }
}
