//! The pipeline: raw text → JSON → names → types → schema check.

use std::{borrow::Cow, collections::HashSet};

use redial_proto::{
    Advice, ErrorClass, Language, Limited, Repair, RepairKind,
    limits::{self, MAX_PAYLOAD},
    repair::MAX_REPAIRS,
};
use serde_json::Value;

use crate::{
    coerce,
    cost::{Costly, Steps},
    edit,
    edit::Fix,
    example::{self, Example},
    language::pick,
    parse,
    refusal::Refusal,
    schema::{Check, Schema},
    syntax::{self, Unreadable},
};

/// Each round unwraps one layer, such as a string that holds an object with keys of another case. Models do not nest deeper
/// than this on purpose.
const MAX_ROUNDS: usize = 8;

/// Repairs that are listed with a refusal.
const MAX_LISTED_REPAIRS: usize = 100;

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

/// Arguments that must not run.
struct Refused {
    refusal: Refusal,
    /// What was sent, repaired as far as possible; `None` if nothing of it could be read.
    value: Option<Box<Value>>,
}

impl Refused {
    /// Refuses arguments that could be read.
    fn of(refusal: Refusal, value: Value) -> Self {
        Self { refusal, value: Some(Box::new(value)) }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, value: None }
    }
}

impl Schema {
    /// Turns a model's raw text into arguments that fit the schema, with lossless repairs only, or says why it cannot.
    ///
    /// A repair writes the same value in the form that the schema asks for; where that would require a guess, the
    /// arguments are refused. `docs/ARGUMENTS.md` lists both cases. Takes time linear in the length of the text.
    pub fn resolve<'a>(&self, raw: &'a str, repairs: Repairs) -> Result<Resolved<'a>, Refusal> {
        self.resolve_in(raw, repairs, Language::En)
    }

    /// Does the same as [`Schema::resolve`], with the refusal in the model's language.
    pub fn resolve_in<'a>(&self, raw: &'a str, repairs: Repairs, language: Language) -> Result<Resolved<'a>, Refusal> {
        self.resolve_within(raw, repairs, language, &Steps::default())
    }

    /// Does the same as [`Schema::resolve_in`], with the steps that are left for several calls together. Arguments that
    /// would take more are refused with class `configuration`.
    pub fn resolve_within<'a>(
        &self,
        raw: &'a str,
        repairs: Repairs,
        language: Language,
        steps: &Steps,
    ) -> Result<Resolved<'a>, Refusal> {
        let check = Check { schema: self, steps, bytes: raw.len() };
        let done = match repairs {
            Repairs::On => check.resolve_repaired(raw, language),
            Repairs::Off => check.resolve_unrepaired(raw, language),
        };
        done.map_err(|refused| check.with_help(refused))
    }

    /// Resolves like [`Schema::resolve`] a JSON value that a program sends: an object, or a string that holds a model's
    /// text as the model wrote it. With repairs off, it must be an object.
    pub fn resolve_json<'a>(&self, json: &'a str, repairs: Repairs) -> Result<Resolved<'a>, Refusal> {
        let is_string = repairs == Repairs::On && json.trim_start().starts_with('"') && json.len() <= MAX_PAYLOAD;
        let text = is_string.then(|| serde_json::from_str::<String>(json).ok()).flatten();
        let Some(text) = text else { return self.resolve(json, repairs) };
        let mut done = self.resolve(&text, repairs)?;
        done.repairs.insert(0, syntax::change(RepairKind::DoubleEncoded, 0, json, &text));
        Ok(Resolved { arguments: Cow::Owned(done.arguments.into_owned()), ..done })
    }
}

impl Check<'_> {
    fn resolve_repaired<'a>(&self, raw: &'a str, language: Language) -> Result<Resolved<'a>, Refused> {
        parse::check_size(raw, language)?;
        let draft = match parse::parse(raw, language) {
            Ok(value) => Draft { json: Cow::Borrowed(raw), value, repairs: Vec::new(), language },
            Err(_) => self.repaired_text(raw, language)?,
        };
        let was_object = matches!(draft.json, Cow::Borrowed(_));
        let done = self.repair_values(draft);
        if was_object {
            return done;
        }
        // A conversation holds only JSON objects, so the model cannot see this text otherwise.
        done.map_err(|refused| Refused { refusal: refused.refusal.quoting(raw, None, language), ..refused })
    }

    /// Makes a draft from text that is not a JSON object without repairs.
    fn repaired_text(&self, raw: &str, language: Language) -> Result<Draft<'static>, Refused> {
        match syntax::repair(raw, language) {
            Ok((json, repairs)) => {
                let value = parse::parse(&json, language)?;
                Ok(Draft { json: Cow::Owned(json), value, repairs, language })
            }
            Err(Unreadable { refusal, members }) => {
                let value = Value::Object(*members);
                let draft = Draft { json: Cow::Owned(value.to_string()), value, repairs: Vec::new(), language };
                Err(Refused::of(refusal, self.repaired_value(draft)))
            }
        }
    }

    fn resolve_unrepaired<'a>(&self, raw: &'a str, language: Language) -> Result<Resolved<'a>, Refused> {
        let value = match parse::parse(raw, language) {
            Ok(value) => value,
            Err(strict) => return Err(without_repairs(raw, strict, language)),
        };
        let undeclared = self.schema.shapes.inspect(&value).undeclared;
        if !self.is_valid(&value).map_err(|Costly| Refusal::costly(language))? {
            let refusal = with_undeclared(self.refuse(&value, &[], language), undeclared);
            return Err(Refused::of(refusal, value));
        }
        Ok(Resolved { arguments: Cow::Borrowed(raw), repairs: Vec::new(), undeclared })
    }

    /// Repairs names and values until the draft fits the schema or nothing more can be repaired.
    fn repair_values<'a>(&self, mut draft: Draft<'a>) -> Result<Resolved<'a>, Refused> {
        let fits = self.repair_draft(&mut draft)?;
        let undeclared = self.schema.shapes.inspect(&draft.value).undeclared;
        let Draft { json, value, repairs, language } = draft;
        if fits {
            return Ok(Resolved { arguments: json, repairs, undeclared });
        }
        let mut refusal = with_undeclared(self.refuse(&value, &repairs, language), undeclared);
        refusal.help.repairs = repairs;
        refusal.help.repairs.truncate(MAX_LISTED_REPAIRS);
        Err(Refused::of(refusal, value))
    }

    /// Repairs a draft once; true if it fits the schema now.
    fn repair_draft(&self, draft: &mut Draft<'_>) -> Result<bool, Refusal> {
        for _ in 0..MAX_ROUNDS {
            let findings = self.schema.shapes.inspect(&draft.value);
            if draft.apply(&findings.fixes)? {
                continue;
            }
            if self.is_valid(&draft.value).map_err(|Costly| Refusal::costly(draft.language))? {
                return Ok(true);
            }
            // What is too much to describe is not repaired.
            let fixes = self.with_errors(&draft.value, |errors| coerce::fixes(errors)).unwrap_or_default();
            if !draft.apply(&fixes)? {
                break;
            }
        }
        Ok(false)
    }

    /// Returns what the draft holds once its names and values are repaired as far as possible.
    fn repaired_value(&self, mut draft: Draft<'_>) -> Value {
        // Without its last repairs it is a worse start for an example, not a wrong one.
        let _ = self.repair_draft(&mut draft);
        draft.value
    }

    /// Adds an example to the refusal. Without a single value that was right, the form is what has to be shown.
    fn with_help(&self, refused: Refused) -> Refusal {
        let Refused { mut refusal, value } = refused;
        if refusal.class == ErrorClass::Configuration {
            return refusal;
        }
        let check = Check { bytes: self.bytes.max(example::MAX_BYTES), ..*self };
        let example = Example::of(&check, value.as_deref());
        if refusal.help.advice == Advice::Values && example.as_ref().is_some_and(|example| example.kept == 0) {
            refusal.help.advice = Advice::Form;
        }
        refusal.help.example = example.map(|example| example.arguments);
        refusal
    }
}

struct Draft<'a> {
    json: Cow<'a, str>,
    /// The value of `json`.
    value: Value,
    repairs: Vec<Repair>,
    language: Language,
}

impl Draft<'_> {
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
            let message = pick(
                self.language,
                format!("the arguments need more than {MAX_REPAIRS} repairs"),
                format!("参数需要修复的地方超过 {MAX_REPAIRS} 处"),
            );
            let advice = Advice::over(Limited::Repairs, MAX_REPAIRS, self.repairs.len() + made.len());
            return Err(Refusal::malformed(message, advice));
        }
        self.value = parse::parse(&json, self.language)?;
        self.json = Cow::Owned(json);
        self.repairs.extend(made);
        Ok(true)
    }
}

/// Adds what the schema does not declare; what it forbids is among the broken rules.
fn with_undeclared(mut refusal: Refusal, mut undeclared: Vec<String>) -> Refusal {
    let forbidden: HashSet<&str> = refusal.details.iter().map(|error| error.path.as_str()).collect();
    undeclared.retain(|path| !forbidden.contains(path.as_str()));
    refusal.help.undeclared = undeclared;
    refusal
}

/// Refuses text that is not valid JSON, for a tool without repairs. Text that could not be repaired either is refused
/// with the more exact reason: where it is cut off or ambiguous.
fn without_repairs(raw: &str, strict: Refusal, language: Language) -> Refused {
    match syntax::repair(raw, language) {
        Err(Unreadable { refusal, members }) => Refused::of(refusal, Value::Object(*members)),
        Ok((json, _)) => {
            let message = pick(
                language,
                format!("{strict}; this tool accepts only valid JSON"),
                format!("{strict}；这个工具只接受有效的 JSON"),
            );
            let refusal = Refusal { message: limits::shorten(&message, limits::MAX_ERROR_MESSAGE), ..strict };
            Refused { refusal, value: serde_json::from_str(&json).ok().map(Box::new) }
        }
    }
}
