//! What Redial says in a user message of its own.

use super::text::Text;

const fn text(key: &'static str, en: &'static str, zh: &'static str) -> Text {
    Text { key, en, zh }
}

pub(super) const TEXTS: [Text; 15] = [
    text(
        "nudge.empty",
        "[Note by Redial, not by the user] Your reply was empty. Answer the user, or call a tool.",
        "[Redial 提示，并非用户发言] 你的回复是空的。请回答用户，或者调用工具。",
    ),
    text(
        "nudge.problem",
        "[Note by Redial, not by the user] Your reply could not be used: {problem}. Reply again in the right form.",
        "[Redial 提示，并非用户发言] 你的回复无法使用：{problem}。请按正确的格式重新回复。",
    ),
    text(
        "nudge.cut_off",
        "[Note by Redial, not by the user] Your answer was cut off because it was too long. Answer again from the beginning, \
         complete and much shorter.",
        "[Redial 提示，并非用户发言] 你的回答太长，被截断了。请从头重新回答，内容完整，但要短得多。",
    ),
    text(
        "nudge.cut_off_before_answer",
        "[Note by Redial, not by the user] Your reply was cut off before it had an answer or a call. Think much more \
         briefly, then answer the user or call a tool.",
        "[Redial 提示，并非用户发言] 你的回复在给出回答或调用之前就被截断了。请大幅简化思考，然后回答用户，或者调用工具。",
    ),
    text(
        "nudge.continue",
        "[Note by Redial, not by the user] Your answer was cut off because it was too long. Its last words are: {ending}\n\
         Repeat exactly these last words, and continue the answer from there. Write nothing else.",
        "[Redial 提示，并非用户发言] 你的回答太长，被截断了。它最后的文字是：{ending}\n请原样重复这些文字，并从那里接着写下去，不要写其他内容。",
    ),
    text(
        "last_answer",
        "[Note by Redial, not by the user] {reason} No tool can be called any more. Give your final answer now: tell \
         the user honestly what was done, what was not done, and why. Claim nothing that no tool has confirmed.",
        "[Redial 提示，并非用户发言] {reason}不能再调用任何工具。请现在给出最终回答：如实告诉用户完成了什么、没有完成什么以及原因。没有得到工具确认的事，不要声称已经完成。",
    ),
    text(
        "last_answer.tool_corrections_exhausted",
        "Calls of {tool} failed or were repeated again and again; the corrections are used up.",
        "对 {tool} 的调用一再失败或重复，改正次数已经用完。",
    ),
    text(
        "last_answer.corrections_exhausted",
        "Calls failed or were repeated again and again; the corrections of this task are used up.",
        "调用一再失败或重复，这个任务的改正次数已经用完。",
    ),
    text("last_answer.turns_exhausted", "The turns of this task are used up.", "这个任务的轮次已经用完。"),
    text(
        "last_answer.tool_calls_exhausted",
        "The tool calls of this task are used up.",
        "这个任务的工具调用次数已经用完。",
    ),
    text("last_answer.tokens_exhausted", "The tokens of this task are used up.", "这个任务的词元（token）已经用完。"),
    text("last_answer.cost_exhausted", "The money for this task is used up.", "这个任务的费用已经用完。"),
    text(
        "last_answer.cost_unknown",
        "This task has a limit of money, and what it costs is unknown.",
        "这个任务有费用上限，但它的费用无法得知。",
    ),
    text("last_answer.time_exhausted", "The time for this task is over.", "这个任务的时间已经用完。"),
    text("last_answer.other", "This task has to end now.", "这个任务必须现在结束。"),
];
