//! The pipeline: raw text → JSON → names → types → schema check.

use std::borrow::Cow;

use redial_proto::{Language, Repair, repair::MAX_REPAIRS};
use serde_json::Value;

use crate::{coerce, edit, edit::Fix, language::pick, parse, refusal::Refusal, schema::Schema, syntax};

/// Each round unwraps one layer, such as a string that holds an object with keys of another case. Models do not nest deeper
/// than this on purpose.
const MAX_ROUNDS: usize = 8;

/// Whether arguments may be repaired. Off is for tools that must run exactly what the model wrote, even if that costs
/// one more turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repairs {
    /// Lossless repairs are made and recorded.
    #[default]
    On,
    /// Arguments run exactly as they were sent, or not at all.
    Off,
}

/// Arguments that may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved<'a> {
    /// JSON text of an object that fits the schema; the text that was sent, byte for byte, if nothing was repaired.
    pub arguments: Cow<'a, str>,
    /// The changes, in the order in which they were made.
    pub repairs: Vec<Repair>,
    /// JSON pointers to properties that the schema allows but does not declare: most tools ignore them. At most 100.
    pub undeclared: Vec<String>,
}

impl Schema {
    /// Turns a model's raw text into arguments that fit the schema, with lossless repairs only, or says why it cannot.
    ///
    /// A repair writes the same value in the form that the schema asks for; where that would require a guess, the
    /// arguments are refused. `docs/ARGUMENTS.md` lists both cases. Takes time linear in the length of the text.
    pub fn resolve<'a>(&self, raw: &'a str, repairs: Repairs) -> Result<Resolved<'a>, Refusal> {
        self.resolve_in(raw, repairs, Language::En)
    }

    /// [`Schema::resolve`] with the refusal in the model's language.
    pub fn resolve_in<'a>(&self, raw: &'a str, repairs: Repairs, language: Language) -> Result<Resolved<'a>, Refusal> {
        if repairs == Repairs::Off {
            return self.resolve_unrepaired(raw, language);
        }
        let parsed = parse::parse(raw, language);
        let draft = match parsed {
            Ok(value) => Draft { json: Cow::Borrowed(raw), value, repairs: Vec::new(), language },
            Err(_) => Draft::repaired(raw, language)?,
        };
        self.repair_values(draft)
    }

    fn resolve_unrepaired<'a>(&self, raw: &'a str, language: Language) -> Result<Resolved<'a>, Refusal> {
        let value = parse::parse(raw, language).map_err(|refusal| without_repairs(raw, &refusal, language))?;
        if !self.is_valid(&value) {
            return Err(self.refuse(&value, &[], language));
        }
        let undeclared = self.shapes.inspect(&value).undeclared;
        Ok(Resolved { arguments: Cow::Borrowed(raw), repairs: Vec::new(), undeclared })
    }

    /// Repairs names and values until the draft fits the schema or nothing more can be repaired.
    fn repair_values<'a>(&self, mut draft: Draft<'a>) -> Result<Resolved<'a>, Refusal> {
        for _ in 0..MAX_ROUNDS {
            let findings = self.shapes.inspect(&draft.value);
            if draft.apply(&findings.fixes)? {
                continue;
            }
            if self.is_valid(&draft.value) {
                let Draft { json, repairs, .. } = draft;
                return Ok(Resolved { arguments: json, repairs, undeclared: findings.undeclared });
            }
            let fixes = self.with_errors(&draft.value, |errors| coerce::fixes(errors));
            if !draft.apply(&fixes)? {
                break;
            }
        }
        Err(self.refuse(&draft.value, &draft.repairs, draft.language))
    }
}

/// Arguments that are being repaired.
struct Draft<'a> {
    json: Cow<'a, str>,
    /// The value of `json`.
    value: Value,
    repairs: Vec<Repair>,
    /// The language of a refusal.
    language: Language,
}

impl Draft<'_> {
    /// A draft from text that is not a JSON object without repairs.
    fn repaired(raw: &str, language: Language) -> Result<Self, Refusal> {
        let (json, repairs) = syntax::repair(raw, language)?;
        let value = parse::parse(&json, language)?;
        Ok(Self { json: Cow::Owned(json), value, repairs, language })
    }

    /// Makes changes; false if there was nothing to change.
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

/// The refusal of text that is not valid JSON, for a tool without repairs. Text that could not be repaired either is
/// refused with the more exact reason: where it is cut off or ambiguous.
fn without_repairs(raw: &str, strict: &Refusal, language: Language) -> Refusal {
    match syntax::repair(raw, language) {
        Err(refusal) => refusal,
        Ok(_) => Refusal::malformed(pick(
            language,
            format!("{strict}; this tool accepts only valid JSON"),
            format!("{strict}；这个工具只接受有效的 JSON"),
        )),
    }
}
