//! The report for people.

use std::collections::BTreeMap;

use comfy_table::{Table, presets::NOTHING};

use super::Report;

impl Report {
    /// The whole report.
    pub(crate) fn table(&self) -> String {
        let faults = self.faults.iter().map(|row| {
            let worst = match (row.not_recovered, row.worst_recovery_ms) {
                (0, None) => String::new(),
                (0, Some(ms)) => seconds(ms),
                (n, _) => format!("{n} did not recover"),
            };
            vec![row.kind.clone(), row.injected.to_string(), worst]
        });
        let invariants = self.invariants.iter().map(|row| vec![row.name.clone(), row.word()]);
        let targets = self.targets.iter().map(|row| {
            let word = row.met.map_or("", |met| if met { "met" } else { "MISSED" });
            vec![row.target.clone(), row.limit.clone(), row.measured.clone(), row.out_of.to_string(), word.to_owned()]
        });
        let examples = self.invariants.iter().flat_map(|row| &row.examples);
        let examples = lines("  ", examples);
        let skipped = lines("not done: ", self.skipped.iter());
        format!(
            "{}\n{} faults in {:.0} s, on nats-server {}, leases of {} s\n\n{}\n\n{}\n\n{}\n{examples}\n{}\n\n{}\n{skipped}\n{}",
            self.command,
            self.faults_injected,
            self.seconds,
            self.nats_server,
            self.lease_ms / 1000,
            table(&["fault", "injected", "worst recovery"], faults),
            self.summary(),
            table(&["invariant", ""], invariants),
            table(&["target", "limit", "measured", "out of", ""], targets),
            self.machine.line(),
            if self.passes(false) { "every invariant holds" } else { "INVARIANTS ARE BROKEN" },
        )
    }

    fn summary(&self) -> String {
        let n = &self.numbers;
        let rows = [
            ("calls acknowledged", format!("{} ({} with those of tasks)", n.calls_acknowledged, n.calls_on_record)),
            ("ended", counts(&n.calls_ended)),
            ("tasks acknowledged", format!("{}; ended: {}", n.tasks_acknowledged, counts(&n.tasks_ended))),
            (
                "attempts",
                format!("{}, of which {} were lost with their worker", n.attempts, n.attempts_lost_with_their_worker),
            ),
            ("effects of tools", n.effects.to_string()),
            ("cancels acknowledged", n.cancels_acknowledged.to_string()),
            ("asked again, answer unknown", n.answers_unknown_and_asked_again.to_string()),
            ("messages repeated", n.messages_repeated.to_string()),
            ("stale results fenced", n.stale_results_fenced.to_string()),
            (
                "workers started",
                format!("{}, {} of them with a wrong clock", n.workers_started, n.workers_with_a_wrong_clock),
            ),
            (
                "received and searched",
                format!("{}, of which {} said whose they are", n.messages_searched, n.messages_with_their_own),
            ),
            ("lost", n.lost.to_string()),
            ("duplicated", n.duplicated.to_string()),
        ];
        table(&["", ""], rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]))
    }
}

/// A line for each, or nothing.
pub(crate) fn lines<'a>(begin: &str, texts: impl Iterator<Item = &'a String>) -> String {
    texts.fold(String::new(), |all, text| all + begin + text + "\n")
}

/// Rows without lines around them.
pub(crate) fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    if head.iter().any(|name| !name.is_empty()) {
        table.set_header(head.iter().copied());
    }
    for row in rows {
        table.add_row(row);
    }
    table.trim_fmt()
}

pub(crate) fn counts(counts: &BTreeMap<&'static str, usize>) -> String {
    counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(crate) fn seconds(ms: u64) -> String {
    format!("{:.2} s", ms as f64 / 1000.0)
}
