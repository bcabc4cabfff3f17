//! A tool's schema, compiled once.

use jsonschema::{Draft, PatternOptions, ValidationError, Validator, error::ValidationErrorKind};
use redial_proto::{Language, Repair, limits};
use serde_json::Value;

use crate::{
    bounds,
    cost::{Costly, Costs, Steps},
    document::Document,
    expansion, explain,
    parse::parse,
    pointer,
    refusal::Refusal,
    schema_error::SchemaError,
    shape::Shapes,
};

/// Total size of all JSON pointers into the arguments, in bytes. Beyond it only the first field error is reported, because
/// each one carries its pointer: one long key above many small values would cost gigabytes.
const MAX_POINTERS: usize = 8 * 1024 * 1024;
/// Most memory of a compiled regular expression, and of what it remembers while it matches, in bytes.
const MAX_REGEX: usize = 10 * 1024 * 1024;
const MAX_REGEX_CACHE: usize = 2 * 1024 * 1024;

/// A compiled JSON Schema (draft 2020-12) of a tool's arguments. Formats are asserted, patterns run in linear time
/// (no look-around, no back-references), and nothing is ever fetched.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Value,
    validator: Validator,
    costs: Costs,
    memory: u64,
    pub(crate) shapes: Shapes,
}

impl Schema {
    /// Compiles a schema; the error says which part of it is wrong, or which limit it exceeds.
    ///
    /// Bounded in time and memory, whatever the schema is: its size, its regular expressions, and how often its references
    /// multiply are checked first.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        check_allows_objects(schema)?;
        let memory = bounds::check(schema)?;
        // First, because the others follow references without a limit.
        let mut document = Document::read(schema)?;
        let here = expansion::check(&mut document)?;
        let costs = Costs::of(&mut document, here)?;
        let patterns = PatternOptions::regex().size_limit(MAX_REGEX).dfa_size_limit(MAX_REGEX_CACHE);
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(true)
            .with_pattern_options(patterns)
            .offline()
            .build(schema)
            .map_err(|error| schema_error(schema, &error))?;
        Ok(Self { root: schema.clone(), validator, costs, memory, shapes: Shapes::of(schema) })
    }

    /// Checks the raw text of a call's arguments: strict JSON within the limits of [`redial_proto::limits`], an object,
    /// without duplicate keys, and every rule of the schema.
    pub fn check(&self, raw: &str) -> Result<(), Refusal> {
        let arguments = parse(raw, Language::En)?;
        let (steps, language) = (Steps::default(), Language::En);
        let check = Check { schema: self, steps: &steps, bytes: raw.len() };
        match check.is_valid(&arguments) {
            Ok(true) => Ok(()),
            Ok(false) => Err(check.refuse(&arguments, &[], language)),
            Err(Costly) => Err(Refusal::costly(language)),
        }
    }

    /// True if arguments of so many bytes are checked within a few milliseconds, whatever they are. Others should not be
    /// checked on a thread on which something else waits.
    pub fn is_cheap(&self, bytes: usize) -> bool {
        self.costs.is_cheap(bytes)
    }

    /// Estimates the memory that it takes at most, in bytes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    pub(crate) fn root(&self) -> &Value {
        &self.root
    }
}

/// The check of one call's arguments, with the steps that it may still take.
#[derive(Clone, Copy)]
pub(crate) struct Check<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) steps: &'a Steps,
    /// Length of the arguments as they were sent.
    pub(crate) bytes: usize,
}

impl Check<'_> {
    pub(crate) fn is_valid(&self, arguments: &Value) -> Result<bool, Costly> {
        let schema = self.schema;
        schema.costs.take_check(arguments, self.bytes, self.steps)?;
        Ok(schema.validator.is_valid(arguments))
    }

    /// Refuses with every field error; `repairs` tell which values were sent in another form.
    pub(crate) fn refuse(&self, arguments: &Value, repairs: &[Repair], language: Language) -> Refusal {
        let root = self.schema.root();
        let described = self.with_errors(arguments, |errors| explain::field_errors(root, arguments, errors, language));
        let Ok((mut details, more)) = described else { return Refusal::undescribed(arguments, language) };
        explain::quote_as_sent(&mut details, repairs);
        Refusal::invalid(details, more, language)
    }

    /// Passes the validator's errors to `use_them`; only the first one if the pointers of all would take too much memory.
    pub(crate) fn with_errors<T>(
        &self,
        arguments: &Value,
        use_them: impl FnOnce(&mut dyn Iterator<Item = ValidationError<'_>>) -> T,
    ) -> Result<T, Costly> {
        let Schema { validator, costs, .. } = self.schema;
        costs.take_description(arguments, self.steps)?;
        Ok(if pointers_within(arguments, MAX_POINTERS) {
            use_them(&mut validator.iter_errors(arguments))
        } else {
            use_them(&mut validator.validate(arguments).err().into_iter())
        })
    }
}

/// True if the pointers to all values take at most `max` bytes.
fn pointers_within(value: &Value, max: usize) -> bool {
    fn remaining(value: &Value, length: usize, max: usize) -> Option<usize> {
        let max = max.checked_sub(length)?;
        match value {
            Value::Object(object) => {
                object.iter().try_fold(max, |max, (key, value)| remaining(value, length + key.len() + 1, max))
            }
            Value::Array(items) => items.iter().try_fold(max, |max, item| remaining(item, length + 6, max)),
            _ => Some(max),
        }
    }
    remaining(value, 0, max).is_some()
}

/// Refuses a schema that allows no object, because arguments are always an object.
fn check_allows_objects(schema: &Value) -> Result<(), SchemaError> {
    let Some(object) = schema.as_object() else {
        return Err(SchemaError::new("", "a JSON object is needed, such as {\"type\": \"object\"}"));
    };
    let fits = match object.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
    };
    if fits {
        return Ok(());
    }
    let found = object.get("type").map(ToString::to_string).unwrap_or_default();
    let found = limits::shorten(&found, 100);
    Err(SchemaError::new("/type", format!("found {found}; allowed: \"object\", because arguments are an object")))
}

fn schema_error(schema: &Value, error: &ValidationError<'_>) -> SchemaError {
    if let ValidationErrorKind::Referencing(reason) = error.kind() {
        return SchemaError::unresolved(schema, reason);
    }
    let path = error.instance_path().as_str();
    let sent = error.instance();
    let message = match path.rsplit('/').next() {
        _ if pointer::parent(path).ends_with("/properties") => error.to_string(),
        Some("type") => format!(
            "{sent} is not a type; allowed: array, boolean, integer, null, number, object, string, or a list of these"
        ),
        Some("pattern") => {
            let sent = limits::shorten(&sent.to_string(), 300);
            format!(
                "{sent} is not an allowed regular expression; look-around and back-references are not supported, and \
                 compiled it may take {MAX_REGEX} bytes at most"
            )
        }
        _ => error.to_string(),
    };
    SchemaError::new(path, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bad_schema_says_where() {
        let bad = [
            json!(true),
            json!({"type": "string"}),
            json!({"type": "objct"}),
            json!({"properties": {"a": {"type": "strnig"}}}),
            json!({"properties": {"a": {"minimum": "1"}}}),
            json!({"properties": {"a": {"pattern": "(?=x)"}}}),
            json!({"properties": {"a": {"pattern": "("}}}),
            json!({"properties": {"a": {"$ref": "https://example.com/s.json"}}}),
            json!({"properties": {"a": {"$ref": "#/$defs/none"}}}),
            json!({"required": "a"}),
        ];
        let lines = bad.map(|schema| format!("{schema}\n    {}", Schema::compile(&schema).unwrap_err()));
        insta::assert_snapshot!(lines.join("\n"));
    }

    /// Makes definitions that each apply the next one; the last one applies the whole schema to a property.
    fn chain(levels: usize, one: impl Fn(Value) -> Value) -> Value {
        let next = |n: usize| one(json!({"$ref": format!("#/$defs/d{}", n + 1)}));
        let mut definitions: serde_json::Map<_, _> = (0..levels).map(|n| (format!("d{n}"), next(n))).collect();
        definitions.insert(format!("d{levels}"), json!({"properties": {"a": {"$ref": "#"}, "n": {"type": "integer"}}}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    }

    #[test]
    fn the_longest_chain_in_the_deepest_arguments_fits_the_stack() {
        // 14 levels of two schemas, and three for the property, the whole and the last definition: 31 of 32. Test threads
        // have 2 MiB.
        let schema = Schema::compile(&chain(14, |next| json!({"oneOf": [next]}))).unwrap();
        let arguments = (0..63).fold(json!({"n": "x"}), |inner, _| json!({"a": inner}));
        assert!(schema.check(&arguments.to_string()).is_err());
        assert!(Schema::compile(&chain(15, |next| json!({"oneOf": [next]}))).is_err());
    }

    #[test]
    fn unknown_formats_are_ignored() {
        let schema = json!({"properties": {"n": {"type": "integer", "format": "uint8", "maximum": 255}}});
        assert_eq!(Schema::compile(&schema).unwrap().check(r#"{"n": 255}"#), Ok(()));
    }

    #[test]
    fn other_drafts_are_read_as_2020_12() {
        let schema =
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"d": {"format": "date"}}});
        let schema = Schema::compile(&schema).unwrap();
        assert!(schema.check(r#"{"d": "2026-05-01"}"#).is_ok());
        assert!(schema.check(r#"{"d": "tomorrow"}"#).is_err());
    }
}
