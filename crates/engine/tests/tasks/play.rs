//! Lets events happen to a task and keeps what it writes.

use std::collections::{BTreeMap, HashMap};

use redial_arguments::{Repairs, Schema};
use redial_engine::{
    Time,
    task::{Event, Proposed, RULES, Reply, Step, StepContext, Task, Verdict, step},
};
use redial_proto::{
    AgentSpec, CallId, ErrorClass, Failure, Language, Message, Role, TaskCode, TaskDecision, TaskState, Usage,
};
use redial_records::TaskOutcome;

pub(crate) fn agent() -> AgentSpec {
    AgentSpec { tools: vec!["*".into()], ..AgentSpec::new("small") }
}

pub(crate) fn failure(class: ErrorClass, message: &str) -> Failure {
    Failure::new(class, message).without_effect()
}

pub(crate) struct Settings {
    pub(crate) version: String,
    pub(crate) polling: bool,
    pub(crate) sequential: bool,
}

/// A call of the tool `tool` that may run.
pub(crate) fn run(change: impl Fn(&mut Settings)) -> Proposed {
    let mut settings = Settings { version: "1".into(), polling: false, sequential: false };
    change(&mut settings);
    let verdict = Verdict::Run {
        tool: "tool".into(),
        arguments: "{}".into(),
        repairs: Vec::new(),
        undeclared: Vec::new(),
        version: settings.version,
        polling: settings.polling,
        sequential: settings.sequential,
    };
    Proposed { name: "tool".into(), arguments: "{}".into(), verdict }
}

pub(crate) fn runs(tool: &str, arguments: &str) -> Proposed {
    let mut call = run(|_| ());
    if let Verdict::Run { tool: name, arguments: checked, .. } = &mut call.verdict {
        (*name, *checked) = (tool.to_owned(), arguments.to_owned());
    }
    Proposed { name: tool.to_owned(), arguments: arguments.to_owned(), ..call }
}

pub(crate) fn refused(tool: &str, arguments: &str, failure: Failure) -> Proposed {
    let verdict = Verdict::Refused { tool: Some(tool.to_owned()), version: "1".into(), failure, help: None };
    Proposed { name: tool.to_owned(), arguments: arguments.to_owned(), verdict }
}

/// A call of a tool with this schema, refused by it in English.
pub(crate) fn refused_by(schema: &serde_json::Value, tool: &str, arguments: &str) -> Proposed {
    let refusal = Schema::compile(schema).unwrap().resolve(arguments, Repairs::On).unwrap_err();
    let help = Some(refusal.help.clone());
    let mut call = refused(tool, arguments, refusal.into());
    if let Verdict::Refused { help: shown, .. } = &mut call.verdict {
        *shown = help;
    }
    call
}

pub(crate) struct Play {
    pub(crate) agent: AgentSpec,
    pub(crate) task: Task,
    pub(crate) now: Time,
    /// The last step.
    pub(crate) step: Step,
    pub(crate) messages: BTreeMap<u32, Message>,
    /// Calls that were given to workers.
    pub(crate) runs: usize,
    turn: u32,
    /// Turn and index of every call that was asked for.
    calls: HashMap<CallId, (u32, u32)>,
    ended: Option<(TaskState, TaskCode)>,
    /// How it ended, with its words.
    pub(crate) outcome: Option<TaskOutcome>,
    /// Every decision so far.
    pub(crate) decisions: Vec<TaskDecision>,
    /// The version of the rules of tasks that start.
    pub(crate) rules: u32,
    /// What each reply costs.
    pub(crate) usage: Usage,
}

impl Play {
    pub(crate) fn new(agent: AgentSpec) -> Self {
        let (task, step) = (Task::default(), Step::default());
        let now = Time::default();
        let (messages, calls) = (BTreeMap::new(), HashMap::new());
        let (ended, outcome, decisions) = (None, None, Vec::new());
        let usage = Usage { input_tokens: 10, output_tokens: 5, cost_micros: Some(20), ..Usage::default() };
        Self {
            agent,
            task,
            now,
            step,
            messages,
            runs: 0,
            turn: 0,
            calls,
            ended,
            outcome,
            decisions,
            rules: RULES,
            usage,
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        // Between two events a task is only in the database.
        let stored = serde_json::to_string(&self.task).unwrap();
        self.task = serde_json::from_str(&stored).unwrap();
        let (agent, language, now) = (&self.agent, Language::En, self.now);
        let context = StepContext { agent, language, now, new_id: &mut CallId::generate };
        self.step = step(&mut self.task, event, context);
        for (seq, message) in &self.step.messages {
            assert!(self.messages.insert(*seq, message.clone()).is_none(), "two messages at {seq}");
        }
        self.runs += self.step.calls.iter().filter(|call| call.refusal.is_none()).count();
        self.calls.extend(self.step.calls.iter().map(|call| (call.id, (call.turn, call.call_index))));
        if let Some(turn) = &self.step.turn {
            self.calls.insert(turn.id, (turn.turn, 0));
            assert!(self.messages.keys().copied().eq(1..=u32::try_from(self.messages.len()).unwrap()), "a gap");
            self.turn = turn.turn;
        }
        self.decisions.extend(self.step.decisions.clone());
        if let Some(end) = &self.step.ended {
            self.outcome = Some(end.clone());
            assert!(self.ended.replace((end.state, end.code)).is_none(), "ended twice");
        }
        assert_eq!(self.step.wake_at.is_none(), self.ended.is_some());
    }

    pub(crate) fn start(&mut self, input: &str) {
        let first_seq = u32::try_from(self.messages.len()).unwrap() + 1;
        let carried = self.task.carried();
        self.task = Task::default();
        self.ended = None;
        self.event(Event::Started { input: input.to_owned(), first_seq, system: false, carried, rules: self.rules });
    }

    pub(crate) fn follow_up(&mut self, input: &str) {
        assert!(self.ended.is_some());
        self.start(input);
    }

    pub(crate) fn reply(&mut self, mut reply: Reply) {
        reply.usage = self.usage;
        self.event(Event::TurnEnded { turn: self.turn, end: Ok(reply) });
    }

    pub(crate) fn replies(&mut self, calls: Vec<Proposed>) {
        self.reply(Reply { calls, ..Reply::default() });
    }

    pub(crate) fn says(&mut self, text: &str) {
        self.reply(Reply { text: Some(text.to_owned()), ..Reply::default() });
    }

    pub(crate) fn turn_fails(&mut self, failure: Failure) {
        self.event(Event::TurnEnded { turn: self.turn, end: Err(failure) });
    }

    pub(crate) fn ends(&mut self, call_index: u32, end: Result<&str, Failure>) {
        self.event(Event::CallEnded { turn: self.turn, call_index, end: end.map(str::to_owned) });
    }

    /// The calls to stop, by turn and call index.
    pub(crate) fn cancelled(&self) -> Vec<(u32, u32)> {
        self.step.cancel.iter().map(|call| self.calls[call]).collect()
    }

    pub(crate) fn end(&self) -> (TaskState, TaskCode) {
        self.ended.unwrap()
    }

    /// All messages and the end, a line each.
    pub(crate) fn log(&self) -> String {
        let mut lines: Vec<String> =
            self.messages.iter().map(|(seq, message)| format!("{seq} {}", line(message))).collect();
        lines.extend(self.ended.map(|(state, code)| format!("{state} {code}")));
        lines.join("\n")
    }
}

fn line(message: &Message) -> String {
    let role = message.role;
    match message.role {
        Role::User if message.by_redial => format!("{role} by redial"),
        Role::Assistant if !message.calls.is_empty() => {
            let calls: Vec<_> = message.calls.iter().map(|call| format!("{} {}", call.id, call.tool)).collect();
            format!("{role} [{}]", calls.join(", "))
        }
        Role::Tool => {
            let id = message.call_id.as_deref().unwrap();
            let Some(class) = message.class else { return format!("{role} {id} {}", message.content) };
            let content: serde_json::Value = serde_json::from_str(&message.content).unwrap();
            let left = content["corrections_left"].as_u64().map(|left| format!(" left {left}"));
            format!("{role} {id} {class}{}", left.unwrap_or_default())
        }
        _ => format!("{role} {}", message.content),
    }
}
