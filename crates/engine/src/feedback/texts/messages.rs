//! What went wrong. For errors that a model can act on it is what the pipeline or the tool said; for all others these
//! words alone, because what a broken service says is for operators.

use super::text::Text;

const fn text(key: &'static str, en: &'static str, zh: &'static str) -> Text {
    Text { key, en, zh }
}

/// Repeats whatever was said.
const fn said(key: &'static str) -> Text {
    Text { key, en: "{message}", zh: "{message}" }
}

pub(super) const TEXTS: [Text; 25] = [
    said("malformed_arguments.message"),
    said("unknown_tool.message"),
    said("invalid_arguments.message"),
    said("repeated_call.message"),
    said("business_rule.message"),
    said("output_invalid.message"),
    said("output_too_large.message"),
    said("rejected.message"),
    text("no_message", "{tool} gave no reason.", "{tool} 没有说明原因。"),
    text("rate_limited.message", "{tool} gets too many requests at the moment.", "{tool} 目前收到的请求过多。"),
    text("unavailable.message", "{tool} cannot be reached at the moment.", "{tool} 目前无法访问。"),
    text("timeout.message", "{tool} took too long and was stopped.", "{tool} 运行时间过长，已被停止。"),
    text(
        "unanswered.message",
        "{tool} was not answered in time: the client that serves it gave no result.",
        "{tool} 没有及时得到回应：提供它的客户端没有给出结果。",
    ),
    text(
        "lost.message",
        "What ran {tool} stopped before there was a result.",
        "运行 {tool} 的进程在得出结果之前中断了。",
    ),
    text("auth.message", "{tool} is not allowed to do this.", "{tool} 没有执行此操作的权限。"),
    text("configuration.message", "{tool} is not set up correctly.", "{tool} 的配置不正确。"),
    text(
        "budget_exhausted.message",
        "{tool} was not run: a limit of this task is reached.",
        "{tool} 没有运行：任务已达到上限。",
    ),
    text("cancelled.message", "{tool} was cancelled.", "{tool} 已被取消。"),
    text("tool_failed.message", "{tool} failed: {message}", "{tool} 执行失败：{message}"),
    text("internal.message", "{tool} failed because of an internal error.", "{tool} 因内部错误而失败。"),
    text(
        "unknown_outcome.message",
        "It is not known whether {tool} did its work. {message}",
        "无法确定 {tool} 是否已经执行。{message}",
    ),
    text(
        "repeated_call.same_call",
        "This very call of {tool} failed before, so it was not run again. The error was: {message}",
        "对 {tool} 的同一个调用之前已经失败，因此没有再次运行。当时的错误是：{message}",
    ),
    text(
        "repeated_call.same_error",
        "{tool} was not run: its last {times} calls failed with the same error, whatever the arguments. The error was: \
         {message}",
        "{tool} 没有运行：无论参数如何，它最近 {times} 次调用都因同样的错误失败。当时的错误是：{message}",
    ),
    text(
        "repeated_call.same_result",
        "This very call of {tool} gave the same result {times} times, so it was not run again. Use that result.",
        "对 {tool} 的同一个调用已经 {times} 次得到相同的结果，因此没有再次运行。请使用那个结果。",
    ),
    text(
        "repeated_call.ping_pong",
        "{tool} was not run: it and {other} were called in turns with the same results, and nothing changed. Use those \
         results.",
        "{tool} 没有运行：它和 {other} 一直在交替调用，结果相同，没有任何变化。请使用已有的结果。",
    ),
];
