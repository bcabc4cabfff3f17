//! Lets the events of a history happen to a task, and tells what follows from each.

use chrono::TimeDelta;
use redial_arguments::{Repairs, Schema};
use redial_engine::{
    Time,
    task::{Event, Proposed, Reply, Step, StepContext, Task, Verdict, step},
};
use redial_proto::{AgentSpec, CallId, ErrorClass, Failure, Finish, Language, Message, Role, TaskDecision, Usage};
use serde_json::{Value, json};

use super::record::Record;

/// Reads a call as the histories write it: the tool, its arguments, and after `!` a setting or the class of a refusal.
fn proposed(written: &str) -> Proposed {
    let (call, mark) = written.split_once(" !").unwrap_or((written, ""));
    let (tool, arguments) = call.split_once(' ').unwrap();
    let refused = |failure: Failure| {
        let known = failure.class != ErrorClass::UnknownTool;
        let (tool, version) = (known.then(|| tool.to_owned()), if known { "1".to_owned() } else { String::new() });
        Verdict::Refused { tool, version, failure, help: None }
    };
    let verdict = match mark {
        "" | "polling" | "sequential" | "version 2" => Verdict::Run {
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
            repairs: Vec::new(),
            undeclared: Vec::new(),
            version: if mark == "version 2" { "2".to_owned() } else { "1".to_owned() },
            polling: mark == "polling",
            sequential: mark == "sequential",
        },
        "schema" => refused_by_schema(tool, arguments),
        failure => refused(failed(failure)),
    };
    Proposed { name: tool.to_owned(), arguments: arguments.to_owned(), verdict }
}

/// Returns the verdict of a schema with a city and a day, in English.
fn refused_by_schema(tool: &str, arguments: &str) -> Verdict {
    let properties = json!({"to": {"type": "string"}, "day": {"type": "string", "format": "date"}});
    let schema = Schema::compile(&json!({"properties": properties, "required": ["to", "day"]})).unwrap();
    let refusal = schema.resolve(arguments, Repairs::On).unwrap_err();
    let help = Some(refusal.help.clone());
    Verdict::Refused { tool: Some(tool.to_owned()), version: "1".to_owned(), failure: refusal.into(), help }
}

/// Reads `class message`, with a question mark behind the class if it may have had an effect.
fn failed(written: &str) -> Failure {
    let (class, message) = written.split_once(' ').unwrap();
    let effect_possible = class.ends_with('?');
    Failure { effect_possible, ..Failure::new(class.trim_end_matches('?').parse().unwrap(), message) }
}

pub(super) struct Play {
    agent: AgentSpec,
    task: Task,
    now: Time,
    record: Record,
    /// Ends of turns and calls, which may be delivered again.
    past: Vec<Event>,
    /// What each reply costs.
    usage: Usage,
    told: Vec<String>,
}

impl Play {
    pub(super) fn new() -> Self {
        Self {
            agent: AgentSpec { tools: vec!["*".into()], ..AgentSpec::new("small") },
            task: Task::default(),
            now: Time::default(),
            record: Record::default(),
            past: Vec::new(),
            usage: Usage { input_tokens: 10, output_tokens: 5, cost_micros: Some(20), ..Usage::default() },
            told: Vec::new(),
        }
    }

    /// Returns what follows from the events of a history.
    pub(super) fn of(history: &str) -> String {
        let mut play = Self::new();
        history.trim().lines().for_each(|line| play.take_line(line));
        let (task, usage) = (&play.task, play.task.usage());
        play.told.push(format!(
            "    turns {}, calls {}, corrections {}, estimated tokens {}, pruned {:?}",
            task.turns(),
            task.tool_calls(),
            task.corrections(),
            usage.estimated_tokens(),
            task.pruned()
        ));
        play.told.join("\n")
    }

    pub(super) fn is_over(&self) -> bool {
        self.record.ended.is_some()
    }

    pub(super) fn take_line(&mut self, line: &str) {
        self.told.push(line.to_owned());
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        self.take(word, rest);
    }

    fn take(&mut self, word: &str, rest: &str) {
        match word {
            "#" => {}
            "agent" => {
                let mut agent = serde_json::to_value(&self.agent).unwrap();
                agent.as_object_mut().unwrap().extend(serde_json::from_str::<serde_json::Map<_, _>>(rest).unwrap());
                self.agent = serde_json::from_value(agent).unwrap();
            }
            "usage" => self.usage = serde_json::from_str(rest).unwrap(),
            "start" => self.start(rest),
            "asks" => self.reply(Reply { calls: rest.split(" + ").map(proposed).collect(), ..Reply::default() }),
            "says" => self.reply(Reply { text: Some(rest.to_owned()), ..Reply::default() }),
            "cut" => self.reply(Reply { text: Some(rest.to_owned()), finish: Finish::Length, ..Reply::default() }),
            "reply" => {
                let reply: Value = serde_json::from_str(rest).unwrap();
                let text = |field: &str| reply[field].as_str().map(str::to_owned);
                let finish = if reply["cut"] == true { Finish::Length } else { Finish::Stop };
                let (text, thought, problem) = (text("text"), text("thought"), text("problem"));
                self.reply(Reply { text, thought, problem, finish, ..Reply::default() });
            }
            "fails" => self.event(Event::TurnEnded { turn: self.record.turn, end: Err(failed(rest)) }),
            "ended" => {
                let (call_index, end) = rest.split_once(' ').unwrap();
                let end = end.strip_prefix("ok ").map(str::to_owned).ok_or_else(|| failed(end));
                self.event(Event::CallEnded { turn: self.record.turn, call_index: call_index.parse().unwrap(), end });
            }
            "again" => {
                let nth = rest.parse::<usize>().unwrap().checked_rem(self.past.len());
                if let Some(nth) = nth {
                    self.event(self.past[nth].clone());
                }
            }
            "later" => self.now += TimeDelta::seconds(rest.parse().unwrap()),
            "woken" => self.event(Event::Woken),
            "cancel" => self.event(Event::CancelRequested),
            other => panic!("{other} is no event"),
        }
    }

    fn event(&mut self, event: Event) {
        // Between two events a task is only in the database.
        let stored = serde_json::from_str(&serde_json::to_string(&self.task).unwrap()).unwrap();
        assert_eq!(self.task, stored);
        self.task = stored;
        if matches!(event, Event::TurnEnded { .. } | Event::CallEnded { .. }) {
            self.past.push(event.clone());
        }
        self.record.happens(&event);
        let (agent, language, now) = (&self.agent, Language::En, self.now);
        let step = step(&mut self.task, event, StepContext { agent, language, now, new_id: &mut CallId::generate });
        self.record.write(&step, &self.task, &self.agent);
        let told = self.lines(&step);
        self.told.extend(told.into_iter().map(|line| format!("    {line}")));
    }

    fn start(&mut self, input: &str) {
        let first_seq = u32::try_from(self.record.messages.len()).unwrap() + 1;
        let carried = self.task.carried();
        self.task = Task::default();
        self.record.next_task();
        self.past.clear();
        self.event(Event::Started { input: input.to_owned(), first_seq, system: false, carried });
    }

    fn reply(&mut self, reply: Reply) {
        self.event(Event::TurnEnded { turn: self.record.turn, end: Ok(Reply { usage: self.usage, ..reply }) });
    }

    /// Writes what a step writes, runs, stops and asks for.
    fn lines(&self, step: &Step) -> Vec<String> {
        let mut lines: Vec<String> =
            step.messages.iter().map(|(seq, message)| format!("{seq} {}", line(message))).collect();
        for decision in &step.decisions {
            match decision {
                TaskDecision::Nudged { problem, asked, time } => {
                    lines.push(format!("nudged: {problem}, {asked:?}, {time:?}"));
                }
                TaskDecision::Accepted { problem, refused } => lines.push(format!("accepted: {problem}, {refused}")),
                _ => {}
            }
        }
        let runs = step.calls.iter().filter(|call| call.refusal.is_none());
        lines.extend(runs.map(|call| format!("runs {} of turn {}: {}", call.call_index, call.turn, call.tool)));
        lines.extend(
            step.cancel
                .iter()
                .map(|call| self.record.calls[call])
                .map(|(turn, call)| format!("stops {call} of turn {turn}")),
        );
        lines.extend(step.turn.as_ref().map(|turn| {
            let continues = |decision: &TaskDecision| matches!(decision, TaskDecision::Turn { continues: true, .. });
            let tools = if turn.tools { "with tools" } else { "without tools" };
            let continues = if step.decisions.iter().any(continues) { " to continue" } else { "" };
            format!("turn {}: asks {} {tools}{continues}", turn.turn, turn.model)
        }));
        lines.extend(
            step.ended.as_ref().map(|end| format!("{} {}: {:?} ({:?})", end.state, end.code, end.answer, end.message)),
        );
        lines
    }
}

fn line(message: &Message) -> String {
    let role = message.role;
    match role {
        Role::User if message.by_redial => format!("{role} by redial: {}", message.content),
        Role::Assistant if !message.calls.is_empty() => {
            let calls: Vec<_> = message.calls.iter().map(|call| format!("{} {}", call.id, call.tool)).collect();
            format!("{role} [{}]", calls.join(", "))
        }
        Role::Tool => {
            let id = message.call_id.as_deref().unwrap();
            let Some(class) = message.class else { return format!("{role} {id} {}", message.content) };
            let mut content: serde_json::Map<String, Value> = serde_json::from_str(&message.content).unwrap();
            let left = content.remove("corrections_left").map(|left| format!(" left {left}")).unwrap_or_default();
            content.retain(|field, _| !["status", "class", "guidance"].contains(&field.as_str()));
            format!("{role} {id} {class}{left} {}", Value::Object(content))
        }
        _ => format!("{role} {}", message.content),
    }
}
