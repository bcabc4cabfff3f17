//! A task with its conversation, as a store would hand it to plans.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, TimeDelta};
use redial_engine::{
    Time,
    call::submitted,
    task::{Known, Needs, PlanContext, Planned, Planning, plan},
    tools::{RegisteredTool, Tools},
    view,
};
use redial_proto::{
    AgentSpec, CallId, CallState, ErrorClass, Language, Message, MessageCall, ReplyCall, Role, StoredMessage, TaskId,
    TaskState, ToolSpec, TurnReply, TurnRequest, turn,
};
use redial_records::{
    Effect, EndedCall, InboxItem, NewCall, StartInfo, TaskRecord, TaskStatus, TaskTransition, TurnOnRecord, TurnTools,
};

const NOW: Time = DateTime::UNIX_EPOCH;

fn tools(names: &str) -> Tools {
    let spec = |name: &str| {
        let pool = if turn::model_name(name).is_some() { turn::POOL } else { "default" };
        ToolSpec { pool: pool.to_owned(), ..ToolSpec::named(name) }
    };
    names.split(' ').map(spec).map(|spec| (spec.name.clone(), Arc::new(RegisteredTool::new(spec).unwrap()))).collect()
}

fn new_task() -> TaskRecord {
    let spec = AgentSpec { tools: vec!["look".into(), "act".into()], system: "Be.".into(), ..AgentSpec::new("small") };
    TaskRecord {
        id: TaskId::generate(),
        tenant: "default".to_owned(),
        conversation: "c".to_owned(),
        state: TaskState::Waiting,
        language: Language::En,
        spec: serde_json::to_string(&spec).unwrap(),
        input: "Look.".to_owned(),
        progress: None,
        last_step: 0,
        submitted_at: NOW,
        wake_at: Some(NOW + TimeDelta::seconds(1)),
        traceparent: Some("trace".to_owned()),
        read_at: NOW,
        inbox: vec![InboxItem::Start],
        start: Some(StartInfo { next_seq: 1, system: None, carried: None }),
    }
}

/// A task with its conversation, and what was planned.
pub(super) struct Play {
    tools: Tools,
    record: TaskRecord,
    messages: Vec<StoredMessage>,
    /// What was offered in turns.
    offers: Vec<TurnTools>,
    calls: Vec<NewCall>,
    told: Vec<String>,
}

impl Play {
    /// Returns what is planned in a history.
    pub(super) fn of(history: &str) -> String {
        let mut play = Self {
            tools: Tools::new(),
            record: new_task(),
            messages: Vec::new(),
            offers: Vec::new(),
            calls: Vec::new(),
            told: Vec::new(),
        };
        for line in history.trim().lines() {
            play.told.push(line.to_owned());
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            play.take(word, rest);
        }
        play.told.join("\n")
    }

    fn take(&mut self, word: &str, rest: &str) {
        let id = self.record.id;
        match word {
            "#" => {}
            "tools" => self.tools = tools(rest),
            "begin" => {
                let (next_seq, system) = rest.split_once(' ').unwrap();
                let (next_seq, system) = (next_seq.parse().unwrap(), Some(system.to_owned()));
                self.record.start = Some(StartInfo { next_seq, system, carried: Some("no progress".to_owned()) });
            }
            // A later task of the conversation, so much later that nothing of this one is read.
            "next" => {
                let next_seq = self.messages.drain(..).next_back().unwrap().seq + 1;
                let carried = self.record.progress.take();
                self.record = new_task();
                self.record.start = Some(StartInfo { next_seq, system: Some("Be.".to_owned()), carried });
            }
            "waiting" => {
                let submitted_at = NOW - TimeDelta::seconds(rest.parse().unwrap());
                (self.record.start, self.record.submitted_at) = (None, submitted_at);
            }
            "spec" => rest.clone_into(&mut self.record.spec),
            "progress" => {
                let (progress, state) = (Some(rest.to_owned()), TaskState::Running);
                self.record = TaskRecord { progress, state, start: None, ..self.record.clone() };
            }
            // The calls of another task that still runs are not this one's to answer.
            "stored" => {
                let call = MessageCall { id: "c1_1".to_owned(), tool: "look".to_owned(), arguments: "{}".to_owned() };
                let message = Message { calls: vec![call], ..Message::text(Role::Assistant, "") };
                let of = |task, seq| StoredMessage { seq, task, at: NOW, message: message.clone() };
                self.messages.extend([of(id, 1), of(TaskId::generate(), 3)]);
            }
            "due" => self.record.wake_at = Some(NOW),
            "cancel" => self.record.inbox.push(InboxItem::Cancel),
            "retrying" => self.record.inbox.push(InboxItem::Retrying {
                call: CallId::generate(),
                turn: 1,
                call_index: 0,
                tool: "model-small".to_owned(),
                attempt: 1,
                class: ErrorClass::RateLimited,
                message: "slow down".to_owned(),
                next_at: NOW,
            }),
            "asks" => {
                let call = |written: &str| {
                    let (name, arguments) = written.split_once(' ').unwrap();
                    ReplyCall { name: name.to_owned(), arguments: arguments.to_owned() }
                };
                let reply = TurnReply { calls: rest.split(" + ").map(call).collect(), ..TurnReply::default() };
                self.ended(0, serde_json::to_string(&reply).unwrap());
            }
            "output" => self.ended(0, rest.to_owned()),
            "ended" => {
                let (index, output) = rest.split_once(' ').unwrap();
                let output = if output == "long" { format!("{:?}", "x".repeat(40_000)) } else { output.to_owned() };
                self.ended(index.parse().unwrap(), output);
            }
            "plan" => self.plan(),
            other => panic!("{other} is no event"),
        }
    }

    /// Ends a call of the last turn.
    fn ended(&mut self, call_index: u32, output: String) {
        let of_index = |call: &&NewCall| call.task.is_some_and(|of| of.call_index == call_index);
        let call = self.calls.iter().rfind(of_index).unwrap();
        self.record.inbox.push(InboxItem::Ended(EndedCall {
            call: call.id,
            turn: call.task.unwrap().turn,
            call_index,
            state: CallState::Succeeded,
            failure: None,
            output: Some(output),
            arguments: (call_index == 0).then(|| call.arguments.clone()),
        }));
    }

    fn plan(&mut self) {
        let mut new_id = CallId::generate;
        let mut context = PlanContext::new(&self.tools, &mut new_id);
        let mut planning = plan(self.read(), &mut context);
        let planned = loop {
            let paused = match planning {
                Planning::Done(planned) => break *planned,
                Planning::Paused(paused) => paused,
                Planning::Unreadable(why) => {
                    self.told.push(format!("    unreadable: {why}"));
                    return;
                }
            };
            assert_eq!(paused.task(), self.record.id);
            let (needs, known) = match paused.needs() {
                Needs::Conversation(reach) => {
                    ("the conversation".to_owned(), Known::Conversation(view::read(&self.messages, reach)))
                }
                Needs::Results(calls) => (format!("results of {calls:?}"), Known::Results(self.results(calls))),
            };
            self.told.push(format!("    needs {needs}"));
            planning = paused.resume(known, &mut context);
        };
        self.write(planned);
    }

    /// Returns the record as a store gives it to a plan: with turns that have ended, but without their messages.
    fn read(&self) -> TaskRecord {
        let mut record = self.record.clone();
        for item in &mut record.inbox {
            if let InboxItem::Ended(EndedCall { arguments: Some(arguments), .. }) = item {
                *arguments = without_messages(arguments, &self.offers);
            }
        }
        record
    }

    fn results(&self, calls: &[String]) -> HashMap<String, String> {
        let messages = self.messages.iter().map(|stored| &stored.message);
        let answer = |message: &Message| Some((message.call_id.clone()?, message.content.clone()));
        messages.filter_map(answer).filter(|(call, _)| calls.contains(call)).collect()
    }

    fn write(&mut self, planned: Planned) {
        let transition = planned.transition;
        let (task, at) = (self.record.id, self.record.read_at);
        let stored = |(seq, message): &(u32, Message)| StoredMessage { seq: *seq, task, at, message: message.clone() };
        self.messages.extend(transition.messages.iter().map(stored));
        self.messages.sort_by_key(|message| message.seq);
        self.offers.extend(transition.offers.iter().cloned());
        self.calls.extend(transition.calls.iter().cloned());
        let told = self.lines(&transition);
        self.told.extend(told.into_iter().map(|line| format!("    {line}")));
        self.told.extend(planned.bugs.iter().map(|bug| format!("    bug: {bug:?}")));
        self.record = TaskRecord {
            state: transition.status.state(),
            progress: Some(transition.progress).filter(|progress| progress != "null"),
            last_step: transition.steps.last().map_or(self.record.last_step, |step| step.step),
            wake_at: match transition.status {
                TaskStatus::Waiting { wake_at } => Some(wake_at),
                TaskStatus::Running { wake_at } => wake_at,
                TaskStatus::Ended(_) => None,
            },
            inbox: Vec::new(),
            // A task that waits is told again whether it may start.
            start: None,
            ..self.record.clone()
        };
    }

    fn lines(&self, transition: &TaskTransition) -> Vec<String> {
        let seconds = |time: Time| (time - NOW).num_seconds();
        let started = if transition.starts { ", starts" } else { "" };
        let status = match &transition.status {
            TaskStatus::Waiting { wake_at } => format!("waits, due in {} s", seconds(*wake_at)),
            TaskStatus::Running { wake_at } => format!("runs, due in {:?} s", wake_at.map(seconds)),
            TaskStatus::Ended(end) => format!("{} {}: {:?}", end.state, end.code, end.message),
        };
        let progress = if transition.progress == "null" { ", no progress" } else { "" };
        let mut lines = vec![format!("{status}{started}{progress}")];
        lines.extend(transition.steps.iter().map(|step| {
            let input = serde_json::to_value(&step.input).unwrap();
            format!("step {}: {} {}", step.step, input["event"].as_str().unwrap(), input["call_index"])
        }));
        lines.extend(transition.messages.iter().map(|(seq, message)| {
            let class = message.class.map(|class| format!(" {class}")).unwrap_or_default();
            format!("message {seq}: {}{class} {:?} {:.60}", message.role, message.call_id, message.content)
        }));
        lines.extend(transition.calls.iter().map(|call| self.line(call)));
        for effect in &transition.effects {
            match effect {
                Effect::CancelCall(id) => {
                    let of = self.calls.iter().find(|call| call.id == *id).unwrap().task.unwrap();
                    lines.push(format!("stops call {} of turn {}", of.call_index, of.turn));
                }
                Effect::NotifyWatchers { notice, .. } => {
                    lines.push(format!("tells of step {}: {}", notice.step, notice.state));
                }
                _ => {}
            }
        }
        lines
    }

    fn line(&self, call: &NewCall) -> String {
        let of = call.task.unwrap();
        assert_eq!((of.task, call.conversation.as_deref()), (self.record.id, Some("c")));
        assert_eq!(call.traceparent.as_deref(), Some("trace"));
        let told = match &call.refusal {
            Some(refusal) => format!(", refused: {}", refusal.message),
            None if of.call_index == 0 => {
                let request = without_messages(&call.arguments, &self.offers);
                let request: TurnRequest = serde_json::from_str(&request).unwrap();
                let names: Vec<String> = request.tools.into_iter().map(|tool| tool.name).collect();
                format!(", offers {}", names.join(", "))
            }
            None => String::new(),
        };
        let published = if submitted(call).is_empty() { "" } else { ", published" };
        format!("call {} of turn {}: {} of {}{published}{told}", of.call_index, of.turn, call.tool, call.pool)
    }
}

/// Returns a request to a model without its messages, from the arguments of its call on record.
fn without_messages(arguments: &str, offers: &[TurnTools]) -> String {
    let turn = TurnOnRecord::read(arguments).unwrap();
    let offered = offers.iter().find(|offer| Some(offer.hash.as_str()) == turn.tools());
    turn.without_messages(offered.map(|offer| offer.tools.as_str())).unwrap()
}
