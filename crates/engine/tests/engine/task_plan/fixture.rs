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
    AgentSpec, CallId, CallState, Language, Message, ReplyCall, StoredMessage, TaskId, TaskNotice, TaskState, ToolSpec,
    TurnReply, TurnRequest, turn,
};
use redial_records::{
    Effect, EndedCall, InboxItem, NewCall, StartInfo, TaskOutcome, TaskRecord, TaskStatus, TaskTransition,
    TurnOnRecord, TurnTools,
};

pub(crate) const NOW: Time = DateTime::UNIX_EPOCH;

pub(crate) fn tools(names: &[&str]) -> Tools {
    let spec = |name: &&str| {
        let pool = if turn::model_name(name).is_some() { turn::POOL } else { "default" };
        ToolSpec { pool: pool.to_owned(), ..ToolSpec::named(*name) }
    };
    names.iter().map(spec).map(|spec| (spec.name.clone(), Arc::new(RegisteredTool::new(spec).unwrap()))).collect()
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

/// A task with its conversation.
pub(crate) struct Fixture {
    pub(crate) tools: Tools,
    pub(crate) record: TaskRecord,
    pub(crate) messages: Vec<StoredMessage>,
    /// What was offered in turns.
    offers: Vec<TurnTools>,
}

impl Fixture {
    pub(crate) fn new(names: &[&str]) -> Self {
        Self { tools: tools(names), record: new_task(), messages: Vec::new(), offers: Vec::new() }
    }

    pub(crate) fn plan(&self) -> TaskTransition {
        let planned = self.planned();
        assert!(planned.bugs.is_empty(), "{:?}", planned.bugs);
        planned.transition
    }

    pub(crate) fn planned(&self) -> Planned {
        let mut new_id = CallId::generate;
        let mut context = PlanContext::new(&self.tools, &mut new_id);
        let mut planning = plan(self.read(), &mut context);
        loop {
            let paused = match planning {
                Planning::Done(planned) => return *planned,
                Planning::Paused(paused) => paused,
                Planning::Unreadable(why) => panic!("unreadable: {why}"),
            };
            assert_eq!(paused.task(), self.record.id);
            let known = match paused.needs() {
                Needs::Conversation(reach) => Known::Conversation(view::read(&self.messages, reach)),
                Needs::Results(calls) => Known::Results(self.results(calls)),
            };
            planning = paused.resume(known, &mut context);
        }
    }

    /// The record as a store gives it to a plan: with turns that have ended, but without their messages.
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

    /// What the plan needs first.
    pub(crate) fn needs(&self) -> Option<Needs> {
        let mut new_id = CallId::generate;
        match plan(self.read(), &mut PlanContext::new(&self.tools, &mut new_id)) {
            Planning::Done(_) => None,
            Planning::Paused(paused) => Some(paused.needs().clone()),
            Planning::Unreadable(why) => panic!("unreadable: {why}"),
        }
    }

    /// Plans, writes that down, and puts the next items into the inbox.
    pub(crate) fn advance(&mut self, next: impl FnOnce(&TaskTransition) -> Vec<InboxItem>) -> TaskTransition {
        let transition = self.plan();
        let (task, at) = (self.record.id, self.record.read_at);
        let stored = |(seq, message): &(u32, Message)| StoredMessage { seq: *seq, task, at, message: message.clone() };
        self.messages.extend(transition.messages.iter().map(stored));
        self.messages.sort_by_key(|message| message.seq);
        self.offers.extend(transition.offers.iter().cloned());
        self.record = TaskRecord {
            state: transition.status.state(),
            progress: Some(transition.progress.clone()),
            last_step: transition.steps.last().map_or(self.record.last_step, |step| step.step),
            wake_at: wake_at(&transition),
            inbox: next(&transition),
            start: None,
            ..self.record.clone()
        };
        transition
    }
}

/// A request to a model without its messages, from the arguments of its call on record.
fn without_messages(arguments: &str, offers: &[TurnTools]) -> String {
    let turn = TurnOnRecord::read(arguments).unwrap();
    let offered = offers.iter().find(|offer| Some(offer.hash.as_str()) == turn.tools());
    turn.without_messages(offered.map(|offer| offer.tools.as_str())).unwrap()
}

/// The tools that the model is offered in the turn that begins.
pub(crate) fn offered(transition: &TaskTransition) -> Vec<String> {
    let request = without_messages(&transition.calls[0].arguments, &transition.offers);
    let request: TurnRequest = serde_json::from_str(&request).unwrap();
    request.tools.into_iter().map(|tool| tool.name).collect()
}

pub(crate) fn wake_at(transition: &TaskTransition) -> Option<Time> {
    match transition.status {
        TaskStatus::Waiting { wake_at } => Some(wake_at),
        TaskStatus::Running { wake_at } => wake_at,
        TaskStatus::Ended(_) => None,
    }
}

pub(crate) fn outcome(transition: &TaskTransition) -> &TaskOutcome {
    match &transition.status {
        TaskStatus::Ended(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

/// The end of a model's call, which asks for these tools.
pub(crate) fn asks_for(call: &NewCall, names: &[&str]) -> InboxItem {
    let calls = names.iter().map(|name| ReplyCall { name: (*name).to_owned(), arguments: "{}".to_owned() }).collect();
    replies(call, &TurnReply { calls, ..TurnReply::default() })
}

pub(crate) fn replies(call: &NewCall, reply: &TurnReply) -> InboxItem {
    ended(call, CallState::Succeeded, Some(serde_json::to_string(&reply).unwrap()))
}

pub(crate) fn ended(call: &NewCall, state: CallState, output: Option<String>) -> InboxItem {
    let of = call.task.unwrap();
    InboxItem::Ended(EndedCall {
        call: call.id,
        turn: of.turn,
        call_index: of.call_index,
        state,
        failure: None,
        output,
        arguments: (of.call_index == 0).then(|| call.arguments.clone()),
    })
}

/// The new calls whose jobs are published, at once or by the feeder.
pub(crate) fn published(transition: &TaskTransition) -> Vec<CallId> {
    transition.calls.iter().filter(|call| !submitted(call).is_empty()).map(|call| call.id).collect()
}

pub(crate) fn cancelled(transition: &TaskTransition) -> Vec<CallId> {
    let call = |effect: &Effect| match effect {
        Effect::CancelCall(call) => Some(*call),
        _ => None,
    };
    transition.effects.iter().filter_map(call).collect()
}

pub(crate) fn notices(transition: &TaskTransition) -> impl Iterator<Item = &TaskNotice> {
    transition.effects.iter().filter_map(|effect| match effect {
        Effect::NotifyWatchers { notice, .. } => Some(notice),
        _ => None,
    })
}
