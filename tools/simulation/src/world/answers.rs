//! Clients answer calls of their functions, or never do.

use redial_engine::call::CallEvent;
use redial_proto::{CallState, ErrorClass};

use super::{ids::CallNo, invent, state::World, transaction::CommitOutcome};

impl World {
    /// Calls that wait for their clients, and that these are going to answer: three of four.
    pub(super) fn functions_to_answer(&self) -> usize {
        if self.nats_up && self.postgres_up { self.answerable().count() } else { 0 }
    }

    fn answerable(&self) -> impl Iterator<Item = CallNo> + '_ {
        let waits = |call: &usize| self.tables.calls[*call].state == CallState::ClientWait && call % 4 != 3;
        (0..self.tables.calls.len()).filter(waits).map(|call| call as CallNo)
    }

    /// A client answers; the reply may be lost, and then it answers again.
    pub(super) fn next_answer(&mut self, n: usize, pick: u32) {
        let Some(call) = self.answerable().nth(n) else { return };
        let d = (pick >> 16) as usize % self.dispatchers.len();
        let row = self.row(call);
        let [failure, _] = invent::failures(ErrorClass::ToolFailed);
        let answer = if pick & 8 == 0 { Ok("1") } else { Err(&failure) };
        let Some(transition) = self.plan(call, &row, &CallEvent::Answered { by: "client", answer }, 0.0) else {
            return;
        };
        self.log(|| format!("the client answers call {call}"));
        let applied = self.transaction(d, CommitOutcome::of(pick), |world| world.apply(&transition));
        if let Some(Some(facts)) = applied {
            self.carry_out_all(d, &transition, &facts);
        }
    }
}
