//! What the check of a call's arguments found, as it goes on record.

use std::mem;

use redial_arguments::Refusal;
use redial_proto::{Failure, Help, Repair};

/// Why a call must not run.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) failure: Failure,
    /// What helps to correct it.
    pub(crate) help: Option<Box<Help>>,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { failure, help: None }
    }
}

impl From<Refusal> for Refused {
    fn from(mut refusal: Refusal) -> Self {
        let help = mem::take(&mut refusal.help);
        Self { failure: refusal.into(), help: Some(help) }
    }
}

/// The arguments of a call, and what is on record of their check.
#[derive(Default)]
pub(crate) struct Checked {
    pub(crate) arguments: String,
    pub(crate) repairs: Vec<Repair>,
    pub(crate) undeclared: Vec<String>,
    pub(crate) help: Option<Box<Help>>,
    pub(crate) refusal: Option<Failure>,
}

impl Checked {
    /// Takes arguments that were refused.
    pub(crate) fn refused(arguments: String, Refused { failure, help }: Refused) -> Self {
        let checked = Self { arguments, refusal: Some(failure), ..Self::default() };
        match help {
            Some(mut help) => {
                let (repairs, undeclared) = (mem::take(&mut help.repairs), mem::take(&mut help.undeclared));
                Self { repairs, undeclared, help: Some(help), ..checked }
            }
            None => checked,
        }
    }
}
