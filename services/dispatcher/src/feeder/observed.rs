//! What a dispatcher observes of the health of tools until it is written, and what it read of it.

use std::{collections::HashMap, time::Instant};

use redial_engine::health::{self, Observed};
use redial_proto::ErrorClass;
use redial_records::ToolHealth;

use super::{Feeder, Known, counts::Counts};

impl Feeder {
    pub(crate) fn count(&self, tool: &str, class: Option<ErrorClass>) {
        let mut known = self.lock();
        let counts = match known.observed.get_mut(tool) {
            Some(counts) => counts,
            None => known.observed.entry(tool.to_owned()).or_default(),
        };
        match class {
            None => (counts.successes, counts.failing_since) = (counts.successes.saturating_add(1), None),
            Some(class) if health::is_outage(class) => {
                counts.failures = counts.failures.saturating_add(1);
                counts.failing_since.get_or_insert_with(Instant::now);
            }
            Some(_) => {}
        }
    }

    /// Returns the tools that fail or recover.
    pub(crate) fn unwell(&self) -> Vec<String> {
        self.lock().health.keys().cloned().collect()
    }

    /// Takes what was observed of these tools, even if nothing, and of others that failed or are unwell; or of all.
    pub(crate) fn take_observed(&self, tools: Vec<String>, all: bool) -> HashMap<String, Observed> {
        let mut known = self.lock();
        let Known { observed, health, .. } = &mut *known;
        let mut taken: HashMap<String, Observed> = tools.into_iter().map(|tool| (tool, Observed::default())).collect();
        for (tool, counts) in observed.iter_mut() {
            let wanted = counts.failures > 0
                || counts.unused_tokens > 0
                || (counts.successes > 0 && (all || health.contains_key(tool)));
            if wanted || taken.contains_key(tool) {
                taken.insert(tool.clone(), counts.take());
            }
        }
        observed.retain(|_, counts| *counts != Counts::default());
        taken
    }

    /// Puts back what was taken and could not be written.
    pub(crate) fn put_back(&self, observed: HashMap<String, Observed>) {
        let mut known = self.lock();
        for (tool, taken) in observed {
            let counts = known.observed.entry(tool).or_default();
            counts.successes = counts.successes.saturating_add(taken.successes);
            counts.failures = counts.failures.saturating_add(taken.failures);
            counts.unused_tokens = counts.unused_tokens.saturating_add(taken.unused_tokens);
        }
    }

    /// Takes note of the health of tools. Those that simply succeed are not worth remembering.
    pub(crate) fn set_health(&self, health: Vec<ToolHealth>) {
        let mut known = self.lock();
        for one in health {
            if one.failing_since.is_none() && one.recovering_since.is_none() {
                known.health.remove(&one.tool);
            } else {
                known.health.insert(one.tool.clone(), one);
            }
        }
    }
}
