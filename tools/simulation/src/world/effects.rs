//! A dispatcher carries out the effects that the engine planned, after the commit.

use redial_engine::call::{CallEvent, effects, plan};
use redial_proto::RetryPolicy;
use redial_records::{Backlog, CallFacts, Change, Effect, OutgoingJob, Transition};

use super::{
    clock::time,
    dispatcher::{Cancel, OperationKind},
    ids::{CallNo, call_no, consumer_no, process_of},
    messages::{ControlMessage, Job},
    state::World,
    tables::CallRow,
};

impl World {
    /// The transition that the engine plans for an event; `None` if the event changes nothing.
    pub(super) fn plan(&self, call: CallNo, row: &CallRow, event: &CallEvent<'_>, random: f64) -> Option<Transition> {
        plan(&row.record(call, self.now), &RetryPolicy::default(), event, time(self.now), random)
    }

    /// Carries out all effects of a committed transition.
    pub(super) fn carry_out_all(&mut self, d: usize, transition: &Transition, facts: &CallFacts) {
        self.log(|| log_line(transition, facts));
        if let Some(attempt) = transition.ended_attempt() {
            let class = attempt.result.as_ref().err().map(|failure| failure.class);
            let tool = self.tool_of_call(call_no(transition.call));
            self.dispatchers[d].feeder.count(tool, class, self.now);
        }
        for effect in effects(transition, facts) {
            self.carry_out(d, effect);
        }
    }

    pub(super) fn carry_out(&mut self, d: usize, effect: Effect) {
        match effect {
            Effect::PublishJob(OutgoingJob { job, publish_no, consumer, .. }) => {
                let job = Job { call: call_no(job.call), attempt: job.attempt };
                self.publish(d, job, publish_no, consumer_no(&consumer));
            }
            Effect::WakeFeeder { part, .. } if part.backlog == Backlog::Job => {
                self.dispatchers[d].feeder.windows.waits(&part.tool, &part.tenant);
            }
            Effect::StopWorker { worker, attempt: job } => {
                self.send(ControlMessage::Stop {
                    worker: process_of(&worker),
                    job: Job { call: call_no(job.call), attempt: job.attempt },
                });
            }
            Effect::CancelCall(call) => {
                self.dispatchers[d].begin(OperationKind::Cancel(Cancel { call: call_no(call), for_client: false }));
            }
            // The model finds tasks and due calls by polling the tables, and no client waits for an event.
            Effect::NotifySubmitter(_)
            | Effect::NotifyWatchers { .. }
            | Effect::WakeTask(_)
            | Effect::WakeSweeper
            | Effect::WakeFeeder { .. } => {}
        }
    }
}

fn log_line(transition: &Transition, facts: &CallFacts) -> String {
    let why = match &transition.change {
        Change::End { failure: Some(failure), .. } => format!(" ({})", failure.class),
        Change::Wait { backlog, .. } => format!(" and waits ({backlog:?})"),
        Change::Extend { .. } => " and gets more time".to_owned(),
        _ => String::new(),
    };
    let (call, state, attempt) = (call_no(transition.call), transition.state(), facts.attempt);
    format!("    call {call} is {state}{why}, attempt {attempt}")
}
