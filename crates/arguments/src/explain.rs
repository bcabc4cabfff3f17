//! Turns the validator's errors into field errors that a model or a person can act on.

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};
use redial_proto::{
    FieldError, Language, Repair, RepairKind,
    limits::{self, MAX_DETAILS},
};
use serde_json::{Map, Value};

use crate::{describe, hints, language::pick, pointer, refusal::quoted};

/// Longest text that says what is allowed, in bytes.
const MAX_ALLOWED: usize = 2_000;

type Error<'e> = ValidationError<'e>;

/// Lists field errors with what the schema allows instead; returns how many more there are than are listed, too.
pub(crate) fn field_errors<'e>(
    schema: &Value,
    arguments: &Value,
    errors: impl Iterator<Item = Error<'e>>,
    language: Language,
) -> (Vec<FieldError>, usize) {
    let mut explanation = Explanation { schema, arguments, language, found: Vec::new(), more: 0 };
    errors.for_each(|error| explanation.add(&error));
    for error in &mut explanation.found {
        error.allowed = limits::shorten(&error.allowed, MAX_ALLOWED);
    }
    (explanation.found, explanation.more)
}

struct Explanation<'a> {
    schema: &'a Value,
    arguments: &'a Value,
    language: Language,
    found: Vec<FieldError>,
    more: usize,
}

impl<'a> Explanation<'a> {
    fn add(&mut self, error: &Error<'_>) {
        if self.is_full() {
            return;
        }
        match error.kind() {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                for key in unexpected {
                    self.add_extra_key(error, key);
                }
            }
            // This is how the validator reports `additionalProperties: false` without `properties`: only the first extra key.
            Kind::FalseSchema if error.schema_path().as_str().ends_with("/additionalProperties") => {
                for key in self.sent_at(error).as_object().into_iter().flat_map(Map::keys) {
                    self.add_extra_key(error, key);
                }
            }
            Kind::Required { property } => self.add_missing(error, property.as_str().unwrap_or_default()),
            Kind::PropertyNames { error: name } => {
                let mut field_error = self.broken(name);
                field_error.path = pointer::join(path(error), name.instance().as_str().unwrap_or_default());
                "propertyNames".clone_into(&mut field_error.rule);
                self.found.push(field_error);
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => match intended_branch(error, context) {
                Some(branch) => branch.iter().for_each(|error| self.add(error)),
                None => self.found.push(field_error(
                    error,
                    describe::schema(self.schema, self.holder(error), self.language),
                    None,
                )),
            },
            _ => {
                let field_error = self.broken(error);
                self.found.push(field_error);
            }
        }
    }

    /// True if the list is full; counts an error that is not listed.
    fn is_full(&mut self) -> bool {
        let full = self.found.len() >= MAX_DETAILS;
        self.more += usize::from(full);
        full
    }

    fn add_extra_key(&mut self, error: &Error<'_>, key: &str) {
        if self.is_full() {
            return;
        }
        let object = self.sent_at(error);
        let declared = properties(self.holder(error));
        let allowed = if declared.is_empty() {
            pick(self.language, "no property of this name", "没有这个名称的属性")
        } else {
            let names = describe::list(declared.keys().map(|name| format!("\"{name}\"")), self.language);
            pick(self.language, format!("only {names}"), format!("仅限 {names}"))
        };
        let hint = hints::for_extra_key(key, object, declared, self.language);
        self.found.push(FieldError {
            path: pointer::join(path(error), key),
            sent: object.get(key).map(quoted),
            rule: match error.kind() {
                Kind::FalseSchema => "additionalProperties".to_owned(),
                kind => kind.keyword().to_owned(),
            },
            allowed,
            hint,
        });
    }

    fn add_missing(&mut self, error: &Error<'_>, property: &str) {
        let declared = properties(self.holder(error));
        let allowed = describe::schema(self.schema, declared.get(property).unwrap_or(&Value::Null), self.language);
        let hint = hints::for_missing(property, self.sent_at(error), declared, self.language);
        let path = pointer::join(path(error), property);
        self.found.push(FieldError { path, rule: "required".to_owned(), sent: None, allowed, hint });
    }

    /// Makes the field error for a rule that concerns one value alone.
    fn broken(&self, error: &Error<'_>) -> FieldError {
        let holder = self.holder(error);
        let hint = match error.kind() {
            Kind::Enum { options } => {
                hints::for_enum(error.instance(), options.as_array().map_or(&[], Vec::as_slice), self.language)
            }
            Kind::Type { .. } => {
                hints::for_type(error.instance(), holder.get("type").unwrap_or(&Value::Null), self.language)
            }
            _ => None,
        };
        field_error(error, self.allowed(error, holder), hint)
    }

    fn allowed(&self, error: &Error<'_>, holder: &Value) -> String {
        let language = self.language;
        match error.kind() {
            Kind::FalseSchema => pick(language, "nothing", "没有任何值可用"),
            Kind::OneOfMultipleValid { .. } => {
                let words = describe::schema(self.schema, holder, language);
                pick(language, format!("exactly one of: {words}"), format!("只能符合其中之一：{words}"))
            }
            kind => describe::keyword(holder, kind.keyword(), language).unwrap_or_else(|| {
                let (rule, words) = (kind.keyword(), error.masked_with("it").to_string());
                pick(language, words.clone(), format!("符合规则 {rule} 的值（{words}）"))
            }),
        }
    }

    /// Returns the schema object that holds the broken keyword.
    fn holder(&self, error: &Error<'_>) -> &'a Value {
        self.schema.pointer(pointer::parent(error.schema_path().as_str())).unwrap_or(&Value::Null)
    }

    fn sent_at(&self, error: &Error<'_>) -> &'a Value {
        self.arguments.pointer(path(error)).unwrap_or(&Value::Null)
    }
}

/// Makes field errors quote what was sent, not what a repair made of it.
pub(crate) fn quote_as_sent(details: &mut [FieldError], repairs: &[Repair]) {
    let retyped = |kind| matches!(kind, RepairKind::Type | RepairKind::EnumValue | RepairKind::DoubleEncoded);
    for error in details {
        let first = repairs.iter().find(|made| retyped(made.kind) && made.path.as_ref() == Some(&error.path));
        if let Some(made) = first {
            let sent = serde_json::from_str(&made.before);
            error.sent = Some(sent.unwrap_or_else(|_| Value::String(made.before.clone())));
        }
    }
}

/// Returns the one branch of an alternative that the sender meant, if only one has the right type and the right
/// constants.
pub(crate) fn intended_branch<'b>(
    error: &Error<'_>,
    branches: &'b [Vec<Error<'static>>],
) -> Option<&'b [Error<'static>]> {
    let here = path(error);
    let fixed = |e: &Error<'_>| matches!(e.kind(), Kind::Enum { .. } | Kind::Constant { .. });
    let other_type = |e: &Error<'_>| (fixed(e) || matches!(e.kind(), Kind::Type { .. })) && path(e) == here;
    let other_tag = |e: &Error<'_>| fixed(e) && pointer::parent(path(e)) == here;
    let fits: Vec<_> = branches.iter().filter(|errors| !errors.iter().any(other_type)).collect();
    if let [only] = fits.as_slice() {
        return Some(only.as_slice());
    }
    let tagged: Vec<_> = fits.iter().filter(|errors| !errors.iter().any(other_tag)).collect();
    if let [only] = tagged.as_slice() { Some(only.as_slice()) } else { None }
}

fn field_error(error: &Error<'_>, allowed: String, hint: Option<String>) -> FieldError {
    let rule = error.kind().keyword().to_owned();
    FieldError { path: path(error).to_owned(), rule, sent: Some(quoted(error.instance())), allowed, hint }
}

fn path<'e>(error: &'e Error<'_>) -> &'e str {
    error.instance_path().as_str()
}

fn properties(schema: &Value) -> &Map<String, Value> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    schema.get("properties").and_then(Value::as_object).unwrap_or(&NONE)
}
