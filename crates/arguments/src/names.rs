//! Names that differ only in case and separators.

use std::collections::HashMap;

use redial_proto::{Language, Repair, RepairKind, limits, repair::MAX_QUOTED};

use crate::{closest::closest, describe, language::pick, refusal::Refusal};

/// Finds the tool that a model named: an exact match, or the only tool whose name differs just in case and separators,
/// which is recorded as a repair. Everything else is refused with class `unknown_tool` and suggestions, closest first.
pub fn tool_name<'a>(
    sent: &str,
    offered: impl IntoIterator<Item = &'a str>,
) -> Result<(&'a str, Option<Repair>), Refusal> {
    tool_name_in(sent, offered, Language::En)
}

/// Does the same as [`tool_name`], with the refusal in the model's language.
pub fn tool_name_in<'a>(
    sent: &str,
    offered: impl IntoIterator<Item = &'a str>,
    language: Language,
) -> Result<(&'a str, Option<Repair>), Refusal> {
    let offered: Vec<&str> = offered.into_iter().collect();
    if let Some(name) = offered.iter().find(|name| **name == sent) {
        return Ok((name, None));
    }
    if sent.len() <= limits::MAX_KEY
        && let Some(name) = equal_by_fold(sent, &offered)
    {
        let repair = Repair {
            kind: RepairKind::ToolName,
            path: None,
            offset: None,
            before: sent.to_owned(),
            after: name.to_owned(),
        };
        return Ok((name, Some(repair)));
    }
    Err(unknown(sent, &offered, language))
}

fn equal_by_fold<'a>(sent: &str, offered: &[&'a str]) -> Option<&'a str> {
    let folded = fold(sent);
    let same: Vec<&str> = offered.iter().copied().filter(|name| !folded.is_empty() && fold(name) == folded).collect();
    if let [only] = same.as_slice() { Some(only) } else { None }
}

fn unknown(sent: &str, offered: &[&str], language: Language) -> Refusal {
    let sent_short = limits::shorten(sent, MAX_QUOTED);
    let message = match closest(sent, offered.iter().copied(), 3).as_slice() {
        [] if offered.is_empty() => pick(
            language,
            format!("no tool {sent_short:?} is offered; no tools are offered at all"),
            format!("没有名为 {sent_short:?} 的工具，也没有提供任何其他工具"),
        ),
        [] => {
            let names = describe::list(offered.iter().map(|name| format!("{name:?}")), language);
            pick(
                language,
                format!("no tool {sent_short:?} is offered; offered: {names}"),
                format!("没有名为 {sent_short:?} 的工具；可用的工具：{names}"),
            )
        }
        close => {
            let names: Vec<_> = close.iter().map(|name| format!("{name:?}")).collect();
            pick(
                language,
                format!("no tool {sent_short:?} is offered; did you mean {}?", names.join(" or ")),
                format!("没有名为 {sent_short:?} 的工具；是否应为 {}？", names.join(" 或 ")),
            )
        }
    };
    Refusal::unknown_tool(&message)
}

/// Removes case and separators from a name: `departureDate`, `departure_date` and `Departure-Date` fold to the same. A
/// separator between two digits counts: `v1_1` is not `v11`.
pub(crate) fn fold(name: &str) -> String {
    folded(name, |before, c, after| match c {
        '_' | '-' | ' ' | '.' if is_digit(before) && is_digit(after) => Some('_'),
        '_' | '-' | ' ' | '.' => None,
        c => Some(c),
    })
}

/// Removes case from a value and leaves one kind of separator: `one-way` and `One Way` fold to the same. Signs and
/// digits stay: `-1` is not `1`, `2026-05` is not `2026 05`.
pub(crate) fn fold_value(value: &str) -> String {
    let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    folded(value, |before, c, after| match c {
        '_' | '-' | ' ' if joins(before) && joins(after) && !(is_digit(before) && is_digit(after)) => Some('_'),
        c => Some(c),
    })
}

fn is_digit(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_digit())
}

/// Lowers the case of what `keep` returns for each character, given its neighbours.
fn folded(text: &str, keep: impl Fn(Option<char>, char, Option<char>) -> Option<char>) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        folded.extend(keep(before, c, chars.peek().copied()).into_iter().flat_map(char::to_lowercase));
        before = Some(c);
    }
    folded
}

/// Maps names by their fold; `None` where several names share one.
pub(crate) fn unique_folds<'a>(names: impl IntoIterator<Item = &'a str>) -> HashMap<String, Option<String>> {
    let mut folds: HashMap<String, Option<String>> = HashMap::new();
    for name in names {
        let folded = fold(name);
        if !folded.is_empty() {
            folds.entry(folded).and_modify(|only| *only = None).or_insert_with(|| Some(name.to_owned()));
        }
    }
    folds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_separators_do_not_count_in_names() {
        for same in ["departureDate", "departure_date", "Departure-Date", "DEPARTURE DATE", "departure.date"] {
            assert_eq!(fold(same), "departuredate");
        }
        assert_ne!(fold("v1_1"), fold("v11"));
        assert_ne!(fold("$top"), fold("top"));
        assert_eq!(fold("出发_城市"), fold("出发城市"));
    }

    #[test]
    fn signs_and_digits_count_in_values() {
        assert_eq!(fold_value("One Way"), fold_value("one-way"));
        assert_eq!(fold_value("gpt-4"), fold_value("GPT_4"));
        for (one, other) in [("-1", "1"), ("2026-05", "2026 05"), ("C", "C++"), ("oneway", "one_way"), ("-a", "a")] {
            assert_ne!(fold_value(one), fold_value(other), "{one} {other}");
        }
    }

    fn named(sent: &str, offered: &[&'static str]) -> String {
        match tool_name(sent, offered.iter().copied()) {
            Ok((name, None)) => format!("{name} as sent"),
            Ok((_, Some(repair))) => repair.to_string(),
            Err(refusal) => format!("{}: {refusal}", refusal.class),
        }
    }

    #[test]
    fn a_tool_is_found_only_by_a_unique_fold() {
        let tools = ["get_weather", "book_flight", "订机票", "sum", "SUM"];
        let sent = [
            "get_weather",
            "Get_Weather",
            "getWeather",
            "GET-WEATHER ",
            "订 机票",
            "sum",
            "Sum",
            "get_wether",
            "functions.get_weather",
            "send_email",
            "",
            "_",
        ];
        let lines: Vec<_> = sent.iter().map(|sent| format!("{sent:?}  {}", named(sent, &tools))).collect();
        insta::assert_snapshot!(lines.join("\n"));
        insta::assert_snapshot!(named("a", &[]), @r#"unknown_tool: no tool "a" is offered; no tools are offered at all"#);
    }
}
