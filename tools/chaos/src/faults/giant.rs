//! A conversation of some MB.

use std::time::{Duration, Instant};

use redial_proto::{TaskId, TaskState, TaskSubmission};

use super::{Injector, Outcome, Target, reached};
use crate::load;

/// How long the tasks of the giant conversation may take.
const GIANT: Duration = Duration::from_mins(1);

impl Injector {
    /// Three tasks of one conversation whose results are large or many; small ones of others end meanwhile.
    pub(super) async fn giant_conversation(&mut self) -> anyhow::Result<Outcome> {
        let pulse = self.pulse();
        let (number, began) = (self.number(), Instant::now());
        let mut giant = Vec::new();
        for task in load::giant(number) {
            giant.extend(self.submit_task(&task).await);
        }
        let (mut slowest, mut small) = (Some(Duration::ZERO), 0);
        while slowest.is_some() && began.elapsed() < GIANT && !self.have_ended(&giant).await {
            let task = load::small_task(self.number());
            let took = self.task_ends(&task).await;
            slowest = slowest.zip(took).map(|(slowest, took)| slowest.max(took));
            small += 1;
        }
        let took = began.elapsed();
        let outcome = Outcome::recovered(slowest).counts_for(Target::GiantConversation);
        for task in giant {
            let state = self.fixture.observer.task_state(task).await;
            if state != Some(TaskState::Succeeded) {
                self.wrong.push(format!("task {task} of a giant conversation is {state:?} after {took:?}"));
            }
        }
        let note = format!("{small} small tasks ended in the {:.1} s that it took", took.as_secs_f64());
        Ok(outcome.with(self.longest_pause(pulse).await).noted(note))
    }

    /// How long a new task takes.
    async fn task_ends(&mut self, task: &TaskSubmission) -> Option<Duration> {
        let began = Instant::now();
        let task = self.submit_task(task).await?;
        reached(async || self.have_ended(&[task]).await).await?;
        Some(began.elapsed())
    }

    async fn have_ended(&self, tasks: &[TaskId]) -> bool {
        for task in tasks {
            if !self.fixture.observer.task_state(*task).await.is_some_and(TaskState::is_terminal) {
                return false;
            }
        }
        true
    }
}
