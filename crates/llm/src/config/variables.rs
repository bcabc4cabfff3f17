//! Environment variables in values: `${NAME}`.

/// A text with its variables filled in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// All variables are set.
    Complete {
        text: String,
        /// The values of the variables, which must not be shown.
        values: Vec<String>,
    },
    Missing(String),
}

/// Fills in the variables of a text; an empty value counts as not set.
pub(super) fn fill(template: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Filled, String> {
    let (mut text, mut values, mut rest) = (String::new(), Vec::new(), template);
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').ok_or("\"${\" without \"}\"; allowed: ${NAME}")?;
        check_name(name)?;
        let Some(value) = variable(name).filter(|value| !value.is_empty()) else {
            return Ok(Filled::Missing(name.to_owned()));
        };
        text.push_str(before);
        text.push_str(&value);
        values.push(value);
        rest = after;
    }
    text.push_str(rest);
    Ok(Filled::Complete { text, values })
}

/// Checks a variable's name: ASCII letters, digits and `_`.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(());
    }
    Err(format!("{name:?} is not a variable name; allowed: ASCII letters, digits and \"_\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_or_named() {
        let variable = |name: &str| match name {
            "A" => Some("one".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let complete = |text: &str, values: &[&str]| {
            Ok(Filled::Complete { text: text.to_owned(), values: values.iter().map(|v| (*v).to_owned()).collect() })
        };
        assert_eq!(fill("plain $A {A}", &variable), complete("plain $A {A}", &[]));
        assert_eq!(fill("x ${A}, ${A}.", &variable), complete("x one, one.", &["one", "one"]));
        assert_eq!(fill("${A} ${B}", &variable), Ok(Filled::Missing("B".to_owned())));
        assert_eq!(fill("${EMPTY}", &variable), Ok(Filled::Missing("EMPTY".to_owned())));
        assert!(fill("${A", &variable).unwrap_err().contains("${NAME}"));
        assert!(fill("${A B}", &variable).unwrap_err().contains("\"A B\""));
    }
}
