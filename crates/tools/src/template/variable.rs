//! A variable of a template.

use secrecy::SecretString;

/// A variable: `{{call}}`, `{{secret.NAME}}` and so on.
#[derive(Clone, Debug)]
pub(crate) enum Variable {
    Argument(Argument),
    Call,
    Attempt,
    IdempotencyKey,
    Tenant,
    Secret(SecretString),
}

/// An argument of the call: `{{arguments.name}}`.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) name: String,
    /// The schema's default, as JSON text.
    pub(crate) default: Option<String>,
    /// The schema lets a call omit it and declares no default.
    pub(crate) optional: bool,
}

impl Variable {
    pub(crate) fn argument(&self) -> Option<&Argument> {
        if let Self::Argument(argument) = self { Some(argument) } else { None }
    }
}
