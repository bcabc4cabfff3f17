//! The documented questions as command lines, one a line. Each must find its rows by an index.

use super::fill::Filled;

pub(super) fn all(filled: &Filled) -> Vec<String> {
    let (call, task, middle) = (filled.call, filled.task, filled.calls / 2 / 10 * 10);
    // The worker of the calls in the middle, see `fill_varied_calls.sql`.
    let worker = format!("worker-{}-3", filled.calls / 2 / 50_000);
    let digits: String = call.to_string().chars().take(26).collect();
    let named = [
        format!("history --before {call}"),
        format!("history --conversation conversation_{}", middle / 10),
        format!("history --key key_{}", middle / 20 * 20 + 10),
        format!("history --task {task}"),
        format!("history --worker {worker}"),
        format!("history --worker {worker} --state failed"),
        format!("show {call}"),
        format!("show {digits}"),
        format!("show {task}"),
    ];
    OTHERS.iter().map(|&line| line.to_owned()).chain(named).collect()
}

const OTHERS: [&str; 36] = [
    "history",
    "history --since 20days",
    "history --until 20days",
    "history --tool tool_7",
    "history --tool tool_rare",
    "history --tool no_such",
    "history --tool tool_7 --since 20days",
    "history --state failed",
    "history --state unknown",
    "history --state refused",
    "history --state ready",
    "history --state succeeded",
    "history --class auth",
    "history --class unavailable",
    "history --model small",
    "history --argument /city=Paris",
    "history --output /booking=CA1234",
    "history --contains nowhere",
    "history --slowest",
    "tasks",
    "tasks --since 20days",
    "tasks --until 20days",
    "tasks --state failed",
    "tasks --state running",
    "tasks --agent agent_3",
    "tasks --conversation conversation_100",
    "tools",
    "workers --all",
    "dead-letters",
    "actions",
    "stats --by tool",
    "stats --by class",
    "stats --by model",
    "stats --by worker",
    "stats --by hour",
    "stats --by tool --since 30days",
];
