//! What all parts of a task's page show.

use chrono::Utc;
use redial_api::{TaskCallItem, TaskSpec};
use redial_proto::TaskReport;

use crate::{
    failure::Failure,
    page::{Shell, Visit},
    record, show,
    story::{
        Story,
        chains::{self, Chain},
        verdict::{Verdict, verdict},
    },
};

/// Steps that a page shows: the last ones, unless it is asked for others.
const STEPS: u32 = 400;
/// Answers that they are read in at most: each holds as many steps as fit.
const PAGES: usize = 6;

/// What all parts of a task's page show.
pub(crate) struct Head {
    pub(crate) shell: Shell,
    pub(crate) story: Story,
    pub(crate) part: &'static str,
    pub(crate) chains: Vec<Chain>,
    pub(crate) verdict: Verdict,
    pub(crate) items: Vec<TaskCallItem>,
    pub(crate) agent: Option<TaskSpec>,
    pub(crate) first: u32,
    /// The steps go on beyond what is shown, after this one.
    pub(crate) after: Option<u32>,
    pub(crate) more_calls: bool,
}

/// Reads a task, and shows one part of it.
pub(super) async fn head(visit: &Visit, id: &str, part: &'static str) -> Result<Head, Failure> {
    let from = crate::filter::Filter::of(&visit.here).get("after_step").parse().ok();
    let id = &show::url(id);
    let (reports, after) = reports(visit, id, from).await?;
    let first = reports.first().and_then(|report| report.steps.first()).map_or(1, |step| step.step);
    let story = Story::new(reports).ok_or_else(|| Failure::not_found("This task has no record."))?;
    let (items, more_calls) = record::calls(visit, id, story.first_turn()).await?;
    let agent: Option<TaskSpec> = visit.api.find(&format!("/v1/tasks/{id}/spec")).await?;
    let spec = agent.as_ref().map(|agent| &agent.spec);
    let verdict = verdict(&story, &items, spec, Utc::now());
    let mut shell = visit.frame(show::line(&story.task.input, 60));
    if !story.task.state.is_terminal() {
        shell = shell.live(format!("/v1/tasks/{id}/events")).again(2);
    }
    Ok(Head { chains: chains::chains(&story), shell, story, part, verdict, items, agent, first, after, more_calls })
}

async fn reports(visit: &Visit, id: &str, from: Option<u32>) -> Result<(Vec<TaskReport>, Option<u32>), Failure> {
    let mut reports: Vec<TaskReport> = Vec::new();
    let mut after = from.unwrap_or(0);
    let mut query = from.map_or_else(|| format!("last={STEPS}"), |from| format!("after_step={from}"));
    for _ in 0..PAGES {
        let report: TaskReport = visit.api.get(&format!("/v1/tasks/{id}/steps?{query}")).await?;
        let (more, last) = (report.more, report.steps.last().map(|step| step.step));
        reports.push(report);
        match last.filter(|_| more) {
            Some(last) => {
                after = last;
                query = format!("after_step={last}");
            }
            None => return Ok((reports, None)),
        }
    }
    Ok((reports, Some(after)))
}

impl Head {
    /// Returns the parts: address, name, whether it is this one.
    pub(super) fn parts(&self) -> Vec<(String, String, bool)> {
        let base = format!("/console/tasks/{}", self.story.task.task);
        let corrections = match self.chains.len() {
            0 => "Corrections".to_owned(),
            n => format!("Corrections {n}"),
        };
        let part = |path: &'static str, name: String| {
            let to = if path.is_empty() { base.clone() } else { format!("{base}/{path}") };
            (to, name, path == self.part)
        };
        vec![
            part("", "Timeline".to_owned()),
            part("corrections", corrections),
            part("conversation", "Conversation".to_owned()),
            part("replay", "Replay".to_owned()),
        ]
    }

    pub(super) fn cost(&self) -> String {
        self.story.task.usage.cost_micros.map_or_else(|| "unknown".to_owned(), show::dollars)
    }

    pub(super) fn may_cancel(&self) -> bool {
        !self.story.task.state.is_terminal() && self.shell.may("submit")
    }

    pub(super) fn spec(&self) -> Option<&redial_proto::AgentSpec> {
        self.agent.as_ref().map(|agent| &agent.spec)
    }
}
