//! A task as a Mermaid sequence diagram: who asked whom, and what came back.

use std::collections::HashMap;

use redial_proto::{Message, Role, StoredMessage, TaskDecision, TaskInput, TaskStep, TaskView, turn};

use super::pretty;
use crate::{commands::story::Wrap, output};

/// Characters of a text that are drawn.
const LONGEST: usize = 240;
/// Columns of a drawn line.
const LINE: usize = 48;

/// The diagram.
pub(super) fn render(task: &TaskView, steps: &[TaskStep], messages: &[StoredMessage]) -> String {
    let mut diagram = Diagram::new(task, messages);
    for step in steps {
        diagram.step(step);
    }
    diagram.finish()
}

struct Diagram<'a> {
    task: &'a TaskView,
    messages: HashMap<u32, &'a Message>,
    /// Arguments of calls, by their ids.
    arguments: HashMap<&'a str, &'a str>,
    /// What answered calls, by their ids.
    results: HashMap<&'a str, &'a str>,
    /// Models and tools, in the order in which they come into it.
    others: Vec<(char, String)>,
    /// The model of each turn.
    models: HashMap<u32, String>,
    lines: Vec<String>,
}

/// The two who are always there.
const USER: &str = "user";
const AGENT: &str = "agent";

impl<'a> Diagram<'a> {
    fn new(task: &'a TaskView, messages: &'a [StoredMessage]) -> Self {
        let calls = messages.iter().flat_map(|stored| &stored.message.calls);
        let answer =
            |stored: &'a StoredMessage| Some((stored.message.call_id.as_deref()?, stored.message.content.as_str()));
        Self {
            task,
            messages: messages.iter().map(|stored| (stored.seq, &stored.message)).collect(),
            arguments: calls.map(|call| (call.id.as_str(), call.arguments.as_str())).collect(),
            results: messages.iter().filter_map(answer).collect(),
            others: Vec::new(),
            models: HashMap::new(),
            lines: Vec::new(),
        }
    }

    fn step(&mut self, step: &TaskStep) {
        match &step.input {
            TaskInput::Started { .. } => self.arrow(USER, "->>", AGENT, &self.task.input.clone()),
            TaskInput::TurnEnded { turn, .. } => self.turn_ended(*turn, step),
            TaskInput::Retrying { tool, attempt, class, message, next_at, .. } => {
                let other = match turn::model_name(tool) {
                    Some(model) => self.other('m', model),
                    None => self.other('t', tool),
                };
                self.arrow(&other, "--x", AGENT, &format!("attempt {attempt}: {class}: {message}"));
                self.note(&format!("retry at {}", output::time(*next_at)));
            }
            TaskInput::CancelRequested => self.arrow(USER, "->>", AGENT, "cancel"),
            TaskInput::CallEnded { .. } | TaskInput::Woken => {}
        }
        for decision in &step.decisions {
            self.decision(decision);
        }
    }

    /// What the model said and asks for.
    fn turn_ended(&mut self, turn: u32, step: &TaskStep) {
        let Some(model) = self.models.get(&turn).cloned() else { return };
        let said = step.decisions.iter().find_map(|decision| match decision {
            TaskDecision::Message { seq } => self.messages.get(seq).filter(|message| message.role == Role::Assistant),
            _ => None,
        });
        let Some(message) = said else {
            let other = self.other('m', &model);
            return self.arrow(&other, "--x", AGENT, "no usable answer");
        };
        let calls: Vec<_> = message.calls.iter().map(|call| call.tool.as_str()).collect();
        let mut parts = vec![message.content.trim().to_owned()];
        if !calls.is_empty() {
            parts.push(format!("calls {}", calls.join(", ")));
        }
        parts.retain(|part| !part.is_empty());
        let text = parts.join("\n");
        let other = self.other('m', &model);
        self.arrow(&other, "-->>", AGENT, &text);
    }

    fn decision(&mut self, decision: &TaskDecision) {
        match decision {
            TaskDecision::Turn { turn, model, last } => {
                self.models.insert(*turn, model.clone());
                let other = self.other('m', model);
                let last = if *last { ", a last answer" } else { "" };
                self.arrow(AGENT, "->>", &other, &format!("turn {turn}{last}"));
            }
            TaskDecision::Run { id, tool, repairs, .. } => {
                for repair in repairs {
                    self.note(&format!("repaired: {repair}"));
                }
                let other = self.other('t', tool);
                let arguments = self.arguments.get(id.as_str()).map(|json| one_line(json)).unwrap_or_default();
                self.arrow(AGENT, "->>", &other, &arguments);
            }
            TaskDecision::Answered { id, tool, ran, class, message, .. } => {
                let failure = class.map(|class| format!("{class}: {}", message.as_deref().unwrap_or_default()));
                match (ran, failure) {
                    (true, Some(failure)) => self.answer(tool, "--x", &failure),
                    (true, None) => {
                        let result = self.results.get(id.as_str()).map(|json| one_line(json)).unwrap_or_default();
                        self.answer(tool, "-->>", &result);
                    }
                    (false, Some(failure)) => self.note(&format!("{tool} did not run: {failure}")),
                    (false, None) => self.note(&format!("{tool} was answered at once")),
                }
            }
            TaskDecision::Ended { state, code, message } => {
                self.ended(&format!("{state}: {code}"), message.as_deref());
            }
            other => self.change_of_course(other),
        }
    }

    fn change_of_course(&mut self, decision: &TaskDecision) {
        let text = match decision {
            TaskDecision::Nudged { problem } => format!("say it again: {problem}"),
            TaskDecision::Fallback { model, because, pruned } if pruned.is_empty() => {
                format!("{model} takes over: {because}")
            }
            TaskDecision::Fallback { model, because, pruned } => {
                format!("{model} takes over: {because}\nout of sight: {}", pruned.join(", "))
            }
            TaskDecision::Returned { model } => format!("{model} goes on"),
            TaskDecision::LastAnswer { code } => format!("limit reached: {code}"),
            TaskDecision::Stopping { calls } => format!("stopping what still runs: {calls}"),
            _ => return,
        };
        self.note(&text);
    }

    fn answer(&mut self, tool: &str, arrow: &str, text: &str) {
        let other = self.other('t', tool);
        self.arrow(&other, arrow, AGENT, text);
    }

    fn ended(&mut self, how: &str, message: Option<&str>) {
        if let Some(answer) = self.task.answer.clone() {
            self.arrow(AGENT, "-->>", USER, &answer);
        }
        self.note(&[how, message.unwrap_or_default()].join("\n"));
    }

    /// The name of a model or a tool in the diagram. Their own names could be words of Mermaid's.
    fn other(&mut self, kind: char, name: &str) -> String {
        let found = self.others.iter().position(|(k, n)| *k == kind && n == name);
        let at = found.unwrap_or_else(|| {
            self.others.push((kind, name.to_owned()));
            self.others.len() - 1
        });
        format!("{kind}{}", at + 1)
    }

    fn arrow(&mut self, from: &str, arrow: &str, to: &str, text: &str) {
        self.lines.push(format!("{from}{arrow}{to}: {}", drawn(text)));
    }

    fn note(&mut self, text: &str) {
        self.lines.push(format!("Note over {AGENT}: {}", drawn(text)));
    }

    fn finish(self) -> String {
        let agent = self.task.agent.as_deref().map(|name| format!("Redial, agent {name}"));
        let mut text = format!(
            "sequenceDiagram\n    actor {USER} as User\n    participant {AGENT} as {}\n",
            escaped(agent.as_deref().unwrap_or("Redial"))
        );
        for (at, (kind, name)) in self.others.iter().enumerate() {
            let what = if *kind == 'm' { "Model" } else { "Tool" };
            text.push_str(&format!("    participant {kind}{} as {what} {}\n", at + 1, escaped(name)));
        }
        for line in &self.lines {
            text.push_str(&format!("    {line}\n"));
        }
        text.truncate(text.trim_end().len());
        text
    }
}

fn one_line(json: &str) -> String {
    match serde_json::from_str::<&serde_json::value::RawValue>(json) {
        Ok(raw) => pretty::one_line(raw.get()),
        Err(_) => json.to_owned(),
    }
}

/// A text of several short lines. A message without any text is an error to Mermaid.
fn drawn(text: &str) -> String {
    let text = output::plain(text.trim());
    let mut shown: String = text.chars().take(LONGEST).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    let mut wrap = Wrap::new(Some(LINE), 0, 0);
    let shown = escaped(&(wrap.push(&shown) + &wrap.finish()));
    if shown.is_empty() { "#8203;".to_owned() } else { shown }
}

/// A text whose every character is itself to Mermaid: `;` and a line break would end the statement, `#` begins the code
/// of a character, `<` HTML, `%%{` a directive, `$$` a formula.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("#quot;"),
            '#' | ';' | '<' | '>' | '&' | '%' | '$' | '\\' | '`' => out.push_str(&format!("#{};", u32::from(c))),
            '\n' => out.push_str("<br/>"),
            c => out.push(c),
        }
    }
    // Words that Mermaid looks for in a text: layout at its start, and what it takes for CSS.
    for word in ["wrap:", "nowrap:"] {
        if let Some(rest) = out.strip_prefix(word) {
            out = format!("{}#58;{rest}", &word[..word.len() - 1]);
        }
    }
    out.replace("style", "styl#101;").replace("classDef", "classDe#102;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::story::sample;

    #[test]
    fn a_task_is_drawn() {
        let report = sample::report();
        insta::assert_snapshot!(render(&report.task, &report.steps, &report.messages));
    }

    #[test]
    fn nothing_in_a_text_is_mermaid() {
        let text = "a;b #1 \"引号\"\n第二行 <b>&amp; %%{init: {}}%% $$x$$ \\n style: classDef `";
        insta::assert_snapshot!(drawn(text));
        assert_eq!(drawn("wrap: me"), "wrap#58; me");
        assert_eq!(drawn(" \n "), "#8203;");
        assert_eq!(drawn("a\r\nb\u{1b}[0m"), "a#92;r<br/>b#92;u{1b}[0m");
    }

    #[test]
    fn long_texts_are_broken_and_cut() {
        let shown = drawn(&"长".repeat(1000));
        assert_eq!(shown.matches("<br/>").count(), 10, "{shown}");
        assert!(shown.ends_with('…') && shown.chars().count() < 300, "{shown}");
    }
}
