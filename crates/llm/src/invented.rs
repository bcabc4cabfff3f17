//! Results of tools that a model wrote itself, in the form in which chat templates show results. What follows such a
//! result was written on the strength of it, so no call there may run, and it is no answer.

use redial_proto::Language;

use crate::quoted::Quoted;

/// What begins a result in the chat templates of Hermes, Qwen, Mistral and others.
const MARKERS: [&str; 4] = ["<tool_response>", "<function_response>", "<tool_result>", "[TOOL_RESULTS]"];

/// Returns the offset at which the first result begins; `None` if there is none, or if it is only quoted.
pub(crate) fn begin(text: &str) -> Option<usize> {
    let mut found: Vec<_> = MARKERS.iter().flat_map(|marker| text.match_indices(marker)).collect();
    if found.is_empty() {
        return None;
    }
    found.sort_unstable_by_key(|(at, _)| *at);
    let quoted = Quoted::of(text);
    found.into_iter().find(|(at, marker)| !quoted.contains(&(*at..at + marker.len()))).map(|(at, _)| at)
}

/// Returns the problem of a model that wrote a result and no call before it.
pub(crate) const fn problem(language: Language) -> &'static str {
    match language {
        Language::En => {
            "The text has a tool's result that you wrote yourself. Results come only from tools: call the tool, or answer \
             without a result."
        }
        Language::Zh => "文本中有你自己写的工具结果。结果只能来自工具：请调用工具，或者不写结果直接回答。",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_not_quoted_is_found() {
        for (text, wanted) in [
            ("an answer", None),
            ("<tool_response>1</tool_response>", Some(0)),
            ("So. [TOOL_RESULTS]1", Some(4)),
            ("`<tool_response>` or <tool_result>", Some(21)),
            ("Results stand behind `<tool_response>`.", None),
            (r#"<tool_call>{"name": "add", "arguments": {"a": "<tool_response>"}}</tool_call>"#, None),
        ] {
            assert_eq!(begin(text), wanted, "{text}");
        }
    }
}
