//! The figures of the record in the text format of Prometheus: what waits, how calls of the last hour ended and how long they took, and
//! how models did.

use std::{
    collections::HashMap,
    sync::atomic::AtomicU64,
    time::{Duration, Instant},
};

use chrono::{TimeDelta, Utc};
use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use redial_api::QueueList;
use redial_proto::Tenant;
use redial_store::{
    Store, StoreError,
    stats::{By, Group, Histogram, ModelStats, ModelsBy, ModelsQuestion, Stats, StatsQuestion},
};
use tokio::sync::Mutex;

use crate::stats::encoded;

/// How long figures of a tenant are answered again as they are: scrapes of several servers cost one read.
const FRESH: Duration = Duration::from_secs(5);
/// Tenants whose figures are kept.
const TENANTS: usize = 100;
/// Tools, and pairs of tools with something else, that have series of their own; those with the most calls.
const SERIES: usize = 200;

type Labels = Vec<(&'static str, String)>;

#[derive(Default)]
pub(crate) struct Figures {
    kept: Mutex<HashMap<Tenant, (Instant, String)>>,
}

impl Figures {
    /// Returns the lines about a tenant, or about all tenants if it is that of the operators.
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
    let mut registry = Registry::with_prefix("redial");
    waiting(&mut registry, &queues);
    ended(&mut registry, &calls);
    durations(&mut registry, &tools);
    corrections(&mut registry, &models);
    costs(&mut registry, &agents);
    Ok(encoded(&registry))
}

fn counts(registry: &mut Registry, name: &str, about: &str, series: impl IntoIterator<Item = (Labels, u64)>) {
    let family: Family<Labels, Gauge> = Family::default();
    for (labels, value) in series {
        family.get_or_create(&labels).set(i64::try_from(value).unwrap_or(i64::MAX));
    }
    registry.register(name, about, family);
}

fn fractions(registry: &mut Registry, name: &str, about: &str, series: impl IntoIterator<Item = (Labels, f64)>) {
    let family: Family<Labels, Gauge<f64, AtomicU64>> = Family::default();
    for (labels, value) in series {
        family.get_or_create(&labels).set(value);
    }
    registry.register(name, about, family);
}

fn waiting(registry: &mut Registry, queues: &QueueList) {
    let about = "Calls that have not ended, by tool and state; for tenant default those of all tenants. Lower bounds with over 50,000 of them";
    let tools = || queues.queues.iter().take(SERIES);
    let states = tools().flat_map(|line| {
        let states = [
            ("ready", line.ready),
            ("running", line.running),
            ("retry_wait", line.retry_wait),
            ("client_wait", line.client_wait),
        ];
        states.map(|(state, calls)| (vec![("tool", line.tool.clone()), ("state", state.to_owned())], calls))
    });
    counts(registry, "open_calls", about, states);
    let now = Utc::now();
    let oldest = tools().filter_map(|line| {
        let seconds = (now - line.oldest_ready_at?).num_seconds();
        Some((vec![("tool", line.tool.clone())], u64::try_from(seconds).unwrap_or(0)))
    });
    let about = "For how long the oldest call of a tool has waited for a worker";
    counts(registry, "oldest_waiting_seconds", about, oldest);
}

fn ended(registry: &mut Registry, stats: &Stats) {
    let mut groups: Vec<_> = stats.groups.iter().collect();
    groups.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.calls.calls));
    let ended = groups.into_iter().take(SERIES).filter_map(|(group, sums)| match group {
        Group::Both(tool, class) => Some((vec![("tool", name(tool)), ("class", name(class))], sums.calls.calls)),
        _ => None,
    });
    let about = "Calls that ended in this hour and the one before, by tool and class";
    counts(registry, "ended_calls", about, ended);
}

fn durations(registry: &mut Registry, stats: &Stats) {
    let mut series = Vec::new();
    for (group, sums) in stats.groups.iter().take(SERIES) {
        for (quantile, share) in [("0.5", 0.5), ("0.95", 0.95), ("0.99", 0.99)] {
            if let Some(ms) = Histogram::quantile(&sums.calls.durations, share) {
                let labels = vec![("tool", name(group)), ("quantile", quantile.to_owned())];
                series.push((labels, Duration::from_millis(ms).as_secs_f64()));
            }
        }
    }
    let about = "How long calls took that ended in this hour and the one before, within 10 %";
    fractions(registry, "call_duration_seconds", about, series);
}

fn corrections(registry: &mut Registry, stats: &ModelStats) {
    let calls = stats.groups.iter().take(SERIES).flat_map(|(group, sums)| {
        let (model, tool) = (group.model.clone().unwrap_or_default(), group.tool.clone().unwrap_or_default());
        let [one, two, three] = sums.corrected;
        let kinds = [
            ("right_at_once", sums.right_at_once),
            ("repaired", sums.repaired),
            ("wrong", sums.wrong),
            ("corrected_1", one),
            ("corrected_2", two),
            ("corrected_3", three),
        ];
        kinds.map(|(how, calls)| {
            (vec![("model", model.clone()), ("tool", tool.clone()), ("how", how.to_owned())], calls)
        })
    });
    let about = "Tool calls of models in this hour and the one before, by how the model got them right";
    counts(registry, "model_calls", about, calls);
}

fn costs(registry: &mut Registry, stats: &ModelStats) {
    // Unknown is not zero.
    let known = stats
        .groups
        .iter()
        .take(SERIES)
        .filter(|(_, sums)| sums.usage.answers > sums.usage.cost_unknown || sums.usage.cost_micros != 0);
    let dollars = known.map(|(group, sums)| {
        #[expect(clippy::cast_precision_loss, reason = "exact up to nine billion dollars")]
        let dollars = sums.usage.cost_micros as f64 / 1e6;
        (vec![("agent", group.agent.clone().unwrap_or_default())], dollars)
    });
    let about = "Known price of the turns of models in this hour and the one before, by declared agent, in US dollars";
    fractions(registry, "agent_cost_usd", about, dollars);
}

fn name(group: &Group) -> String {
    match group {
        Group::Name(name) => name.clone(),
        Group::Hour(_) | Group::Both(..) => String::new(),
    }
}
