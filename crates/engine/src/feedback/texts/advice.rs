//! What to do now about refused arguments, by what is wrong with them.

use super::text::Text;

const fn text(key: &'static str, en: &'static str, zh: &'static str) -> Text {
    Text { key, en, zh }
}

pub(super) const TEXTS: [Text; 8] = [
    text(
        "malformed_arguments.form",
        "Call {tool} again with one JSON object as its arguments and nothing else, every name in double quotes.",
        "请再次调用 {tool}，参数只能是一个 JSON 对象，其中每个名称都用双引号。",
    ),
    text(
        "malformed_arguments.place",
        "The mark HERE in sent shows where the text breaks. Correct that, and send the whole call again: its arguments \
         must be one complete JSON object.",
        "sent 中的标记 HERE 指出文本在哪里出错。请改正那里，然后重新发送整个调用，参数必须是一个完整的 JSON 对象。",
    ),
    text(
        "malformed_arguments.cut_off",
        "The text ended before the arguments did. Send the whole call again, and shorter: shorter texts, fewer items, \
         or several calls.",
        "参数还没有写完，文本就结束了。请重新发送整个调用，并写得更短：更短的文本、更少的条目，或者分成几个调用。",
    ),
    text(
        "malformed_arguments.comment",
        "A comment hides the end of the arguments; the mark HERE in sent shows where it begins. Send the whole call \
         again without comments.",
        "参数的结尾被注释掉了，sent 中的标记 HERE 指出注释从哪里开始。请去掉注释，重新发送整个调用。",
    ),
    text(
        "malformed_arguments.over_limit",
        "Allowed: at most {limit}; this was {over} over the limit. Send less: shorter texts, fewer items, or several \
         calls.",
        "最多允许 {limit}，超出了 {over}。请减少发送的内容：更短的文本、更少的条目，或者分成几个调用。",
    ),
    text(
        "invalid_arguments.form",
        "Nothing that was sent is right. Call {tool} again with arguments of the right form. If you do not know a \
         value, ask the user instead of inventing one.",
        "发送的内容没有一处正确。请按正确的形式再次调用 {tool}。如果不知道某个值，请询问用户，不要编造。",
    ),
    text(
        "invalid_arguments.values",
        "Correct {wrong}, keep the rest, and call {tool} again. If you do not know a value, ask the user instead of \
         inventing one.",
        "请改正 {wrong}，其余保持不变，然后再次调用 {tool}。如果不知道某个值，请询问用户，不要编造。",
    ),
    text(
        "example",
        "The field example is a valid call: take its form, with the right values.",
        "字段 example 是一个有效的调用：请参照它的形式，填入正确的值。",
    ),
];
