//! What to do now, by error class.

use super::text::Text;

const fn text(key: &'static str, en: &'static str, zh: &'static str) -> Text {
    Text { key, en, zh }
}

pub(super) const TEXTS: [Text; 21] = [
    text(
        "malformed_arguments",
        "Send the whole call again. Its arguments must be one complete JSON object.",
        "请重新发送整个调用，参数必须是一个完整的 JSON 对象。",
    ),
    text(
        "unknown_tool",
        "Use only the tools that you were given, each by its exact name. If none of them fits, answer without a tool.",
        "只能使用提供给你的工具，名称必须完全一致。如果没有合适的工具，请直接回答。",
    ),
    text(
        "invalid_arguments",
        "Correct everything that is listed, keep the rest, and call {tool} again. If you do not know a value, ask the \
         user instead of inventing one.",
        "请改正列出的所有问题，其余保持不变，然后再次调用 {tool}。如果不知道某个值，请询问用户，不要编造。",
    ),
    text(
        "repeated_call",
        "Do not send this call again. Change what the error is about, take another way, or tell the user what does not \
         work.",
        "不要再次发送这个调用。请针对错误作出修改，换一种办法，或者告诉用户哪里行不通。",
    ),
    text(
        "business_rule",
        "{tool} understood the call and said no. Call it again only with something else that can change the answer; \
         otherwise tell the user.",
        "{tool} 理解了这个调用，但拒绝执行。只有换成可能改变结果的内容时才再次调用；否则请告诉用户。",
    ),
    text(
        "rate_limited",
        "Redial repeats such calls by itself where that is safe. Do not call {tool} again now: go on without it, \
         or ask the user to try later.",
        "在安全的情况下，系统会自动重试。现在不要再调用 {tool}：请在没有它的情况下继续，或者请用户稍后再试。",
    ),
    text(
        "unavailable",
        "Redial repeats such calls by itself where that is safe. Do not call {tool} again now: go on without it, \
         or tell the user that it does not work at the moment.",
        "在安全的情况下，系统会自动重试。现在不要再调用 {tool}：请在没有它的情况下继续，或者告诉用户它暂时无法使用。",
    ),
    text(
        "timeout",
        "Do not send the same call again: ask for less, go on without it, or tell the user.",
        "不要再次发送同样的调用：请减少一次请求的内容，在没有它的情况下继续，或者告诉用户。",
    ),
    text(
        "unanswered",
        "Whatever it is for may still be done later. Do not send the same call again now: go on without it, or tell the \
         user what is missing.",
        "它要做的事之后仍可能完成。现在不要再次发送同样的调用：请在没有它的情况下继续，或者告诉用户还缺什么。",
    ),
    text(
        "lost",
        "Do not send the same call again now: go on without it, or tell the user.",
        "现在不要再次发送同样的调用：请在没有它的情况下继续，或者告诉用户。",
    ),
    text(
        "auth",
        "You cannot fix this. Do not call {tool} again; tell the user that access to it has to be set up.",
        "这不是你能解决的问题。不要再调用 {tool}；请告诉用户需要先配置它的访问权限。",
    ),
    text(
        "configuration",
        "You cannot fix this. Do not call {tool} again; tell the user that it has to be set up correctly.",
        "这不是你能解决的问题。不要再调用 {tool}；请告诉用户它的配置需要修正。",
    ),
    text(
        "output_invalid",
        "{tool} ran, but its result cannot be used. The same call would give the same: ask for something else, or tell \
         the user.",
        "{tool} 已经运行，但结果无法使用。同样的调用会得到同样的结果：请换一种请求，或者告诉用户。",
    ),
    text(
        "output_too_large",
        "{tool} ran, but its result is too large. Ask for less: fewer entries, fewer fields, a shorter time.",
        "{tool} 已经运行，但结果太大。请减少请求的内容：更少的条目、更少的字段、更短的时间范围。",
    ),
    text(
        "rejected",
        "A person said no to this call. Do not try to get the same in another way; go by the reason, and ask the user \
         if it is not clear what to do instead.",
        "有人拒绝了这个调用。不要用别的办法达到同样的目的；请遵从拒绝的理由，如果不清楚该怎么做，请询问用户。",
    ),
    text(
        "budget_exhausted",
        "Call no more tools. Answer with what you have, and say what is missing.",
        "不要再调用工具。请用已有的信息回答，并说明还缺什么。",
    ),
    text("cancelled", "Do not call it again unless the user asks for it.", "除非用户要求，不要再次调用。"),
    text(
        "tool_failed",
        "The same call would most likely fail again. Call {tool} again only with something else that may avoid the \
         failure; otherwise go on without it, or tell the user that it failed.",
        "同样的调用很可能会再次失败。只有换成可能避免失败的内容时才再次调用 {tool}；否则请在没有它的情况下继续，或者告诉用户它失败了。",
    ),
    text(
        "internal",
        "This is no mistake of yours. Do not call {tool} again; tell the user that it failed for a technical reason.",
        "这不是你的错误。不要再调用 {tool}；请告诉用户它因技术原因失败了。",
    ),
    text(
        "no_corrections_left",
        "Do not call {tool} again: its corrections are used up. Go on without it, or tell the user honestly what was \
         not done and why.",
        "不要再调用 {tool}：它的改正次数已经用完。请在没有它的情况下继续，或者如实告诉用户哪些没有完成以及原因。",
    ),
    text(
        "unknown_outcome",
        "It may have been done. Do not call {tool} again for the same thing: it could be done twice. Tell the user \
         that it has to be checked whether it was done.",
        "这件事可能已经完成。不要为同一件事再次调用 {tool}，否则可能重复执行。请告诉用户需要先核实它是否已经完成。",
    ),
];
