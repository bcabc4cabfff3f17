//! Names of closed enums: the same on the wire, in the database, in files and on the command line.
//!
//! The derives of `strum` make the names and the list of an enum from its variants, so neither can miss one.

use strum::{VariantArray, VariantNames};

/// Finds the variant that has this name. The error says what the text is not (`kind`, with its article) and lists the
/// names that are allowed.
pub fn parse<T: VariantArray + VariantNames + Copy>(text: &str, kind: &str) -> Result<T, String> {
    let names = <T as VariantNames>::VARIANTS;
    let matching = |(variant, name): (&T, &&str)| (*name == text).then_some(*variant);
    let found = <T as VariantArray>::VARIANTS.iter().zip(names).find_map(matching);
    found.ok_or_else(|| format!("{text:?} is not {kind}; allowed: {}", names.join(", ")))
}

/// The variants of an enum as an array, for `ALL`.
pub(crate) const fn array<T: Copy, const N: usize>(variants: &[T]) -> [T; N] {
    match variants.first_chunk() {
        Some(all) => *all,
        None => panic!("N is the number of variants"),
    }
}

/// Gives an enum that derives `VariantArray` and `VariantNames` its `ALL`, `as_str`, `Display` and `FromStr`; the
/// text says what its values are, with the article.
macro_rules! named {
    ($name:ident, $kind:literal) => {
        impl $name {
            /// Every variant, in the order of declaration.
            pub const ALL: [Self; <Self as strum::VariantArray>::VARIANTS.len()] =
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
                $crate::names::parse(text, $kind)
            }
        }
    };
}
pub(crate) use named;

#[cfg(test)]
mod tests {
    use std::{
        fmt::{Debug, Display},
        str::FromStr,
    };

    use serde::Serialize;

    use super::*;
    use crate::{
        CallState, Code, ErrorClass, Language, RepairKind, Role, SubmitStatus, TaskCode, TaskState, ToolEffect,
        webhook::{DisabledReason, WebhookEvent, WebhookState},
    };

    fn names_match_the_wire<T>()
    where
        T: VariantArray + VariantNames + Serialize + Display + FromStr<Err = String> + PartialEq + Debug,
    {
        for (variant, name) in <T as VariantArray>::VARIANTS.iter().zip(<T as VariantNames>::VARIANTS) {
            assert_eq!(serde_json::to_value(variant).unwrap(), *name);
            assert_eq!(variant.to_string(), *name);
            assert_eq!(name.parse().as_ref(), Ok(variant));
        }
    }

    #[test]
    fn every_named_enum_has_the_names_of_the_wire() {
        names_match_the_wire::<CallState>();
        names_match_the_wire::<Code>();
        names_match_the_wire::<ToolEffect>();
        names_match_the_wire::<ErrorClass>();
        names_match_the_wire::<Language>();
        names_match_the_wire::<RepairKind>();
        names_match_the_wire::<Role>();
        names_match_the_wire::<SubmitStatus>();
        names_match_the_wire::<TaskCode>();
        names_match_the_wire::<TaskState>();
        names_match_the_wire::<WebhookEvent>();
        names_match_the_wire::<WebhookState>();
        names_match_the_wire::<DisabledReason>();
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_allowed_ones() {
        let error = "writes".parse::<ToolEffect>().unwrap_err();
        assert_eq!(error, "\"writes\" is not an effect; allowed: read, idempotent, keyed, unsafe");
        assert_eq!(format!("{:>6}", ToolEffect::Read), "  read");
    }
}
