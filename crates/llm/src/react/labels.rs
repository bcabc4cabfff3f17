//! Labels at the beginning of lines, in every form in which models write them.

/// The kind of a part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    Thought,
    Action,
    Input,
    Observation,
    Answer,
}

/// The words for each label; a longer word comes before its own prefix.
const WORDS: [(&str, Label); 25] = [
    ("thought", Label::Thought),
    ("思考", Label::Thought),
    ("想法", Label::Thought),
    ("action input", Label::Input),
    ("action_input", Label::Input),
    ("actioninput", Label::Input),
    ("行动输入", Label::Input),
    ("动作输入", Label::Input),
    ("工具输入", Label::Input),
    ("action", Label::Action),
    ("行动", Label::Action),
    ("动作", Label::Action),
    ("observation", Label::Observation),
    ("error", Label::Observation),
    ("观察结果", Label::Observation),
    ("观察", Label::Observation),
    ("观测", Label::Observation),
    ("错误", Label::Observation),
    ("final answer", Label::Answer),
    ("answer", Label::Answer),
    ("最终答案", Label::Answer),
    ("最终回答", Label::Answer),
    ("答案", Label::Answer),
    ("回答", Label::Answer),
    ("答复", Label::Answer),
];

/// Reads the label at the beginning of a line; returns the text after its colon, too. Ignores case, the markup of
/// lists, headings and bold text, and a number after the word; accepts full-width colons.
pub(super) fn label(line: &str) -> Option<(Label, &str)> {
    let inner = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '#' | '>' | '-' | '`'));
    let opening = &line[..line.len() - inner.len()];
    let (word, label) = WORDS.into_iter().find(|(word, _)| starts_with(inner, word))?;
    let after = inner[word.len()..].trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
    let closed = after.trim_start_matches(['*', '_', '`', ' ']);
    let rest = closed.strip_prefix(':').or_else(|| closed.strip_prefix('：'))?;
    Some((label, without_bold(rest, opening, closed.len() < after.len())))
}

/// Removes the markup that closes a bold label or a bold line.
fn without_bold<'a>(rest: &'a str, opening: &str, closed: bool) -> &'a str {
    let mark = opening.trim_start().trim_start_matches(['#', '>', '-', ' ']);
    if mark.is_empty() || closed {
        return rest;
    }
    let rest = rest.trim_end();
    rest.strip_prefix(mark).or_else(|| rest.strip_suffix(mark)).unwrap_or(rest)
}

fn starts_with(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_in_every_form() {
        for (line, found) in [
            ("Action: x", Some((Label::Action, " x"))),
            ("  action : x", Some((Label::Action, " x"))),
            ("**Action:** x", Some((Label::Action, " x"))),
            ("**Action**: x", Some((Label::Action, " x"))),
            ("**Action: x**", Some((Label::Action, " x"))),
            ("### ACTION INPUT: {}", Some((Label::Input, " {}"))),
            ("- `Action_Input`: {}", Some((Label::Input, " {}"))),
            ("Action 2: x", Some((Label::Action, " x"))),
            ("行动：查天气", Some((Label::Action, "查天气"))),
            ("最终答案: 好", Some((Label::Answer, " 好"))),
            ("Answer: **good**", Some((Label::Answer, " **good**"))),
            ("Actions: x", None),
            ("My Action: x", None),
            ("Action", None),
            ("Action needed here: x", None),
            ("", None),
            ("错", None),
        ] {
            assert_eq!(label(line), found, "{line}");
        }
    }
}
