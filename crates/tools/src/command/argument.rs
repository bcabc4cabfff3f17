//! One argument of a program's command line.

use crate::template::{RefusedValue, Template};

/// An argument of a program.
#[derive(Clone, Debug)]
pub(crate) struct CommandArgument {
    pub(crate) template: Template,
    /// It begins with a value that must not begin with `-`: the program would read it as an option.
    is_guarded: bool,
}

impl CommandArgument {
    /// Makes the arguments of a command line. After a literal `--` every argument is an operand, whatever it begins
    /// with; values of the arguments named in `dashes` may be options.
    pub(crate) fn list(templates: Vec<Template>, dashes: &[String]) -> Vec<Self> {
        let mut only_operands = false;
        let guard = |template: Template| {
            let is_allowed = template.first_argument().is_some_and(|first| dashes.iter().any(|name| name == first));
            let is_guarded = template.begins_with_variable() && !only_operands && !is_allowed;
            only_operands |= template.is_text("--");
            Self { template, is_guarded }
        };
        templates.into_iter().map(guard).collect()
    }

    /// Refuses a filled argument that would be an option.
    pub(crate) fn check(&self, text: &str) -> Result<(), RefusedValue> {
        if !self.is_guarded || !text.starts_with('-') {
            return Ok(());
        }
        let allowed = "a value that does not begin with \"-\", because the program would read it as an option";
        let hint = "if it is the name of a file, write \"./\" before it";
        Err(RefusedValue { hint: Some(hint), ..self.template.refuse("option", allowed) })
    }
}
