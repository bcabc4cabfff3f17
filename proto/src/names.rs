//! Names of closed enums: the same on the wire, in the database, in files and on the command line.
//!
//! The derives of `strum` make the names and the list of an enum from its variants, so neither can miss one.

use std::str::FromStr;

use serde::{Deserialize as _, Deserializer};
use strum::VariantNames;

/// Finds the one of these variants, the first ones of the enum, that has this name. The error says what the text is not (`kind`,
/// with its article) and lists the names that are allowed.
pub fn parse<T: VariantNames + Copy>(all: &[T], text: &str, kind: &str) -> Result<T, String> {
    let names = &<T as VariantNames>::VARIANTS[..all.len()];
    let matching = |(variant, name): (&T, &&str)| (*name == text).then_some(*variant);
    let found = all.iter().zip(names).find_map(matching);
    found.ok_or_else(|| format!("{text:?} is not {kind}; allowed: {}", names.join(", ")))
}

/// The first N variants of an enum as an array, for `ALL`.
pub(crate) const fn array<T: Copy, const N: usize>(variants: &[T]) -> [T; N] {
    match variants.first_chunk() {
        Some(all) => *all,
        None => panic!("N is at most the number of variants"),
    }
}

/// Gives an enum that derives `VariantArray` and `VariantNames` its `ALL`, `as_str`, `Display` and `FromStr`; the
/// text says what its values are, with the article. With `, other` the last variant, `Other`, stands for the values of newer
/// versions: it is not among `ALL`, it has no text that is read, and only views show it.
macro_rules! named {
    ($name:ident, $kind:literal, other) => {
        $crate::names::named!($name, $kind, 1);

        impl $name {
            /// The value of a text that is shown: one that this version does not know is [`Self::Other`].
            pub fn shown(text: &str) -> Self {
                text.parse().unwrap_or(Self::Other)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::shown(&text)
            }
        }
    };
    ($name:ident, $kind:literal) => {
        $crate::names::named!($name, $kind, 0);
    };
    ($name:ident, $kind:literal, $others:literal) => {
        impl $name {
            /// Every variant that this version knows, in the order of declaration.
            pub const ALL: [Self; <Self as strum::VariantArray>::VARIANTS.len() - $others] =
                $crate::names::array(<Self as strum::VariantArray>::VARIANTS);

            /// The name on the wire, in the database, in files and on the command line.
            pub const fn as_str(self) -> &'static str {
                <Self as strum::VariantNames>::VARIANTS[self as usize]
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::names::parse(&Self::ALL, text, $kind)
            }
        }
    };
}
pub(crate) use named;

/// Reads a value in something that users are shown: any text is one.
pub fn shown<'de, D: Deserializer<'de>, T: From<String>>(deserializer: D) -> Result<T, D::Error> {
    String::deserialize(deserializer).map(T::from)
}

/// The same for a value that may be missing.
pub fn shown_option<'de, D: Deserializer<'de>, T: From<String>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(T::from))
}

/// Reads a value in something that users are shown; `None` for one that this version does not know: the words beside it say what
/// it is.
pub fn known<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.and_then(|text| text.parse().ok()))
}

/// The same for a list: what this version does not know is left out.
pub fn known_all<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Vec::<String>::deserialize(deserializer)?.iter().filter_map(|text| text.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Display};

    use serde::Serialize;
    use strum::VariantArray;

    use super::*;
    use crate::{
        CallState, Code, ErrorClass, Language, RepairKind, Role, SubmitStatus, TaskCode, TaskState, TokenState,
        ToolEffect,
        webhook::{DisabledReason, WebhookEvent, WebhookState},
    };

    fn names_match_the_wire<T>(all: &[T])
    where
        T: VariantArray + VariantNames + Serialize + Display + FromStr<Err = String> + PartialEq + Debug,
    {
        for (variant, name) in <T as VariantArray>::VARIANTS.iter().zip(<T as VariantNames>::VARIANTS) {
            assert_eq!(serde_json::to_value(variant).unwrap(), *name);
            assert_eq!(variant.to_string(), *name);
            assert_eq!(name.parse().ok().as_ref(), Some(variant).filter(|variant| all.contains(variant)));
        }
    }

    #[test]
    fn every_named_enum_has_the_names_of_the_wire() {
        macro_rules! check {
            ($($named:ty)*) => { $(names_match_the_wire(&<$named>::ALL);)* };
        }
        check!(CallState Code ToolEffect ErrorClass Language RepairKind Role SubmitStatus TaskCode TaskState);
        check!(WebhookEvent WebhookState DisabledReason TokenState);
    }

    #[test]
    fn what_a_newer_version_wrote_is_shown_and_never_read() {
        assert_eq!(CallState::shown("held"), CallState::Other);
        assert_eq!(CallState::shown("failed"), CallState::Failed);
        for state in ["held", "other"] {
            assert!(state.parse::<CallState>().is_err(), "{state}");
            assert!(serde_json::from_value::<CallState>(state.into()).is_err(), "{state}");
        }
        let reply: crate::CancelReply = serde_json::from_str(r#"{"state":"held"}"#).unwrap();
        assert_eq!(reply.state, CallState::Other);
        assert!(!CallState::Other.is_terminal() && !CallState::ALL.contains(&CallState::Other));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_allowed_ones() {
        let error = "writes".parse::<ToolEffect>().unwrap_err();
        assert_eq!(error, "\"writes\" is not an effect; allowed: read, idempotent, keyed, unsafe");
        assert_eq!(format!("{:>6}", ToolEffect::Read), "  read");
    }
}
