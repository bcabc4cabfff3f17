//! A task as a Mermaid sequence diagram: which messages Redial exchanged with the user, the models and the tools.

use super::{
    entry::{Drawing, Entry, Party},
    wrap::Wrap,
};
use crate::output;

/// Characters of a text that are drawn.
const LONGEST: usize = 240;
/// Columns of a drawn line.
const LINE: usize = 48;

/// The parties that every diagram has.
const USER: &str = "user";
const AGENT: &str = "agent";

/// Draws the entries of a task's timeline.
pub(crate) fn render<'a>(
    agent: Option<&str>,
    entries: impl IntoIterator<Item = &'a Entry>,
    answer: Option<&str>,
) -> String {
    let mut diagram = Diagram::default();
    for entry in entries {
        diagram.draw(entry);
    }
    if let Some(answer) = answer {
        diagram.lines.push(format!("{AGENT}-->>{USER}: {}", drawn(answer)));
    }
    diagram.finish(agent)
}

#[derive(Default)]
struct Diagram {
    /// In the order in which they appear.
    parties: Vec<Party>,
    lines: Vec<String>,
}

impl Diagram {
    fn draw(&mut self, entry: &Entry) {
        let text = drawn(&format!("{}: {}", entry.label, entry.text));
        let line = match &entry.drawing {
            Drawing::Hidden => return,
            Drawing::Note => format!("Note over {AGENT}: {text}"),
            Drawing::To(party) => format!("{AGENT}->>{}: {text}", self.alias(party)),
            Drawing::From(Party::User) => format!("{USER}->>{AGENT}: {text}"),
            Drawing::From(party) => format!("{}-->>{AGENT}: {text}", self.alias(party)),
            Drawing::Failed(party) => format!("{}--x{AGENT}: {text}", self.alias(party)),
        };
        self.lines.push(line);
    }

    /// Returns the name of a party in the diagram. The names of models and tools could be keywords of Mermaid's.
    fn alias(&mut self, party: &Party) -> String {
        let kind = match party {
            Party::User => return USER.to_owned(),
            Party::Model(_) => 'm',
            Party::Tool(_) => 't',
        };
        let at = self.parties.iter().position(|known| known == party).unwrap_or_else(|| {
            self.parties.push(party.clone());
            self.parties.len() - 1
        });
        format!("{kind}{}", at + 1)
    }

    fn finish(mut self, agent: Option<&str>) -> String {
        let agent = agent.map_or("Redial".to_owned(), |name| format!("Redial, agent {name}"));
        let mut lines = vec![
            "sequenceDiagram".to_owned(),
            format!("    actor {USER} as User"),
            format!("    participant {AGENT} as {}", escaped(&agent)),
        ];
        for party in self.parties.clone() {
            let name = match &party {
                Party::User => continue,
                Party::Model(name) => format!("Model {}", escaped(name)),
                Party::Tool(name) => format!("Tool {}", escaped(name)),
            };
            lines.push(format!("    participant {} as {name}", self.alias(&party)));
        }
        lines.extend(self.lines.iter().map(|line| format!("    {line}")));
        lines.join("\n").trim_end().to_owned()
    }
}

/// Draws a text of several short lines. Mermaid rejects a message without text.
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

/// Escapes what has a meaning in Mermaid: `;` and a line break end the statement, `#` begins the code of a character, `<`
/// HTML, `%%{` a directive, `$$` a formula.
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
    // Words that Mermaid looks for in a text: layout at its start, and CSS.
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
    use crate::timeline::{Printed, TaskTimeline, sample};

    #[test]
    fn a_task_is_drawn() {
        let report = sample::report();
        let mut timeline = TaskTimeline::new(&report.task);
        timeline.add_messages(&report.messages);
        let entries: Vec<_> =
            report.steps.iter().flat_map(|step| timeline.event(step, Printed::default(), Vec::new()).entries).collect();
        insta::assert_snapshot!(render(report.task.agent.as_deref(), &entries, report.task.answer.as_deref()));
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
