//! The figures of the record in the text format of Prometheus: what waits, how calls of the last hour ended and how long they took, and
//! how models did.

use std::{
    collections::HashMap,
    fmt::Write as _,
    time::{Duration, Instant},
};

use chrono::{TimeDelta, Utc};
use redial_proto::Tenant;
use redial_store::{
    Store, StoreError,
    audit::Queues,
    stats::{By, Group, Histogram, ModelStats, ModelsBy, ModelsQuestion, Stats, StatsQuestion},
};
use tokio::sync::Mutex;

use crate::stats::head;

/// How long figures of a tenant are answered again as they are: scrapes of several servers cost one read.
const FRESH: Duration = Duration::from_secs(5);
/// Tenants whose figures are kept.
const TENANTS: usize = 100;
/// Tools, and pairs of tools with something else, that have series of their own; those with the most calls.
const SERIES: usize = 200;

/// The figures of tenants as they were lately.
#[derive(Default)]
pub(crate) struct Figures {
    kept: Mutex<HashMap<Tenant, (Instant, String)>>,
}

impl Figures {
    /// The lines about a tenant, or of all tenants if it is that of the operators.
    pub(crate) async fn lines(&self, store: &Store, tenant: &Tenant) -> Result<String, StoreError> {
        // One at a time: whoever waits finds what the one before has read.
        let mut kept = self.kept.lock().await;
        if let Some((_, lines)) = kept.get(tenant).filter(|(at, _)| at.elapsed() < FRESH) {
            return Ok(lines.clone());
        }
        let lines = read(store, tenant).await?;
        if kept.len() >= TENANTS {
            kept.clear();
        }
        kept.insert(tenant.clone(), (Instant::now(), lines.clone()));
        Ok(lines)
    }
}

async fn read(store: &Store, tenant: &Tenant) -> Result<String, StoreError> {
    let store = store.of(tenant);
    let since = Utc::now() - TimeDelta::hours(1);
    let queues = store.queues(*tenant == Tenant::default()).await?;
    let question = StatsQuestion { by: By::Tool, and: Some(By::Class), since, until: None, tool: None, tenant: None };
    let calls = store.stats(&question).await?;
    let tools = store.stats(&StatsQuestion { and: None, ..question }).await?;
    let asked = |by| ModelsQuestion { by, since, until: None, model: None, tool: None, agent: None };
    let models = store.model_stats(&asked(ModelsBy::ModelAndTool)).await?;
    let agents = store.model_stats(&asked(ModelsBy::Agent)).await?;
    let mut page = String::new();
    waiting(&mut page, &queues);
    ended(&mut page, &calls);
    durations(&mut page, &tools);
    corrections(&mut page, &models);
    costs(&mut page, &agents);
    Ok(page)
}

fn waiting(page: &mut String, queues: &Queues) {
    head(
        page,
        "redial_open_calls",
        "gauge",
        "Calls that have not ended, by tool and state; for tenant default those of all tenants. Lower bounds with over 50,000 of them.",
    );
    for line in queues.tools.iter().take(SERIES) {
        let states = [
            ("ready", line.ready),
            ("running", line.running),
            ("retry_wait", line.retry_wait),
            ("client_wait", line.client_wait),
        ];
        for (state, calls) in states {
            let _ = writeln!(page, "redial_open_calls{{tool=\"{}\",state=\"{state}\"}} {calls}", label(&line.tool));
        }
    }
    head(
        page,
        "redial_oldest_waiting_seconds",
        "gauge",
        "For how long the oldest call of a tool has waited for a worker.",
    );
    for line in queues.tools.iter().take(SERIES) {
        if let Some(oldest) = line.oldest_ready_at {
            let seconds = (Utc::now() - oldest).num_seconds().max(0);
            let _ = writeln!(page, "redial_oldest_waiting_seconds{{tool=\"{}\"}} {seconds}", label(&line.tool));
        }
    }
}

fn ended(page: &mut String, stats: &Stats) {
    head(page, "redial_ended_calls", "gauge", "Calls that ended in this hour and the one before, by tool and class.");
    let mut groups: Vec<_> = stats.groups.iter().collect();
    groups.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.calls.calls));
    for (group, sums) in groups.into_iter().take(SERIES) {
        if let Group::Both(tool, class) = group {
            let labels = format!("tool=\"{}\",class=\"{}\"", label(&name(tool)), label(&name(class)));
            let _ = writeln!(page, "redial_ended_calls{{{labels}}} {}", sums.calls.calls);
        }
    }
}

fn durations(page: &mut String, stats: &Stats) {
    let about = "How long calls took that ended in this hour and the one before, within 10 %.";
    head(page, "redial_call_duration_seconds", "gauge", about);
    for (group, sums) in stats.groups.iter().take(SERIES) {
        for (quantile, share) in [("0.5", 0.5), ("0.95", 0.95), ("0.99", 0.99)] {
            if let Some(ms) = Histogram::quantile(&sums.calls.durations, share) {
                let labels = format!("tool=\"{}\",quantile=\"{quantile}\"", label(&name(group)));
                let _ = writeln!(page, "redial_call_duration_seconds{{{labels}}} {}.{:03}", ms / 1000, ms % 1000);
            }
        }
    }
}

fn corrections(page: &mut String, stats: &ModelStats) {
    let about = "Tool calls of models in this hour and the one before, by how the model got them right.";
    head(page, "redial_model_calls", "gauge", about);
    for (group, sums) in stats.groups.iter().take(SERIES) {
        let (model, tool) = (group.model.as_deref().unwrap_or_default(), group.tool.as_deref().unwrap_or_default());
        let [one, two, three] = sums.corrected;
        let kinds = [
            ("right_at_once", sums.right_at_once),
            ("repaired", sums.repaired),
            ("wrong", sums.wrong),
            ("corrected_1", one),
            ("corrected_2", two),
            ("corrected_3", three),
        ];
        for (how, calls) in kinds {
            let labels = format!("model=\"{}\",tool=\"{}\",how=\"{how}\"", label(model), label(tool));
            let _ = writeln!(page, "redial_model_calls{{{labels}}} {calls}");
        }
    }
}

fn costs(page: &mut String, stats: &ModelStats) {
    let about = "Known price of the turns of models in this hour and the one before, by declared agent, in US dollars.";
    head(page, "redial_agent_cost_usd", "gauge", about);
    for (group, sums) in stats.groups.iter().take(SERIES) {
        if sums.usage.answers <= sums.usage.cost_unknown && sums.usage.cost_micros == 0 {
            // Unknown is not zero.
            continue;
        }
        let agent = group.agent.as_deref().unwrap_or_default();
        let cost = redial_views::dollars(sums.usage.cost_micros);
        let _ = writeln!(page, "redial_agent_cost_usd{{agent=\"{}\"}} {cost}", label(agent));
    }
}

fn name(group: &Group) -> String {
    match group {
        Group::Name(name) => name.clone(),
        Group::Hour(_) | Group::Both(..) => String::new(),
    }
}

/// The value of a label.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
