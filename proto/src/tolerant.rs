//! Reads what a newer version may have written into types that users fill in.
//!
//! A field that no version knows is a mistake in what a user sends, so these types refuse it (`deny_unknown_fields`). On record, and in
//! messages between processes, it is a field of a newer version, and is ignored. An unknown value is refused here, too: nothing can
//! be done with it.

use serde::{
    Deserializer,
    de::{
        DeserializeOwned, IntoDeserializer, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Value};

/// Reads JSON as `serde_json` does, but ignores fields that a type does not have, at any depth. For types that hold their JSON as
/// values: a [`serde_json::value::RawValue`] is only read if there is no such field.
pub fn from_slice<T: DeserializeOwned>(json: &[u8]) -> Result<T, Error> {
    let strict = match serde_json::from_slice(json) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    // Only what is valid JSON can have unknown fields. The position in the first error is of use, unless it is about one of them.
    let Ok(value) = serde_json::from_slice::<Value>(json) else { return Err(strict) };
    T::deserialize(OfNewer(value))
}

/// The same for a text.
pub fn from_str<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    from_slice(json.as_bytes())
}

/// A value that a newer version may have written.
struct OfNewer(Value);

impl IntoDeserializer<'_, Error> for OfNewer {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for OfNewer {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.into_iter().map(OfNewer))),
            Value::Object(fields) => {
                visitor.visit_map(MapDeserializer::new(fields.into_iter().map(|(name, value)| (name, OfNewer(value)))))
            }
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Self(mut value) = self;
        if let Value::Object(fields) = &mut value {
            fields.retain(|name, _| known.contains(&name.as_str()));
        }
        Self(value).deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{AgentSpec, Registration, RetryOverride, ToolEffect, ToolSpec};

    #[test]
    fn fields_of_a_newer_version_are_ignored_at_any_depth() {
        let tool = json!({
            "name": "t", "effect": "read", "priority": 3, "timeout_ms": 5,
            "parameters": {"type": "object", "properties": {"priority": {"type": "integer"}}},
            "retry": {"max_attempts": 2, "factor": 2, "jitter": "none"},
        });
        assert!(serde_json::from_value::<ToolSpec>(tool.clone()).is_err(), "what users send stays strict");
        let read: ToolSpec = from_str(&tool.to_string()).unwrap();
        assert_eq!((read.effect, read.retry.max_attempts, read.timeout_ms), (ToolEffect::Read, 2, 5));
        assert_eq!(read.parameters, tool["parameters"], "what is data stays as it is");
        let registration = json!({
            "worker": "w-1", "started_at": "2026-11-20T11:47:10Z", "slots": 1, "version": "9", "rack": 7, "tools": [tool],
        });
        let read: Registration = from_slice(registration.to_string().as_bytes()).unwrap();
        assert_eq!((read.tools.len(), read.tools[0].name.as_str()), (1, "t"));
        let agent = json!({
            "model": "small", "mood": "calm", "budgets": {"turns": 3, "joules": 9},
            "functions": [{"name": "ask", "colour": "red", "parameters": {"type": "object"}}],
        });
        let read: AgentSpec = from_str(&agent.to_string()).unwrap();
        assert_eq!((read.budgets.turns, read.functions.len()), (3, 1));
    }

    #[test]
    fn values_of_a_newer_version_are_not_guessed_and_what_is_wrong_is_said() {
        let effect = from_str::<ToolSpec>(r#"{"name":"t","effect":"quantum","priority":1}"#).unwrap_err();
        assert!(effect.to_string().contains("unknown variant `quantum`"), "{effect}");
        let soon = from_str::<RetryOverride>(r#"{"initial_ms":"soon"}"#).unwrap_err();
        assert!(soon.to_string().contains("invalid type: string"), "{soon}");
        let broken = from_str::<ToolSpec>("{").unwrap_err();
        assert!(broken.to_string().contains("line 1 column 1"), "{broken}");
    }
}
