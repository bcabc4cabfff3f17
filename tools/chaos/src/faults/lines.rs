//! Broken connections.

use std::time::{Duration, Instant};

use chrono::Utc;
use redial_testkit::Side;

use super::{Injector, Outcome, PATIENCE, Target, between, reached};
use crate::{
    fixture::LEASE,
    schedule::{Damage, Line, Step},
};

impl Injector {
    pub(super) async fn damage(&mut self, line: Line, damage: Damage, step: &Step) -> anyhow::Result<Outcome> {
        let quiet = matches!(damage, Damage::Cut | Damage::Truncate);
        // The worker may not reach a dispatcher before its leases end.
        let disturbed = if let (Line::WorkerToNats(n), false) = (line, quiet) { Some(n) } else { None };
        if let Some(n) = disturbed {
            self.fixture.disturb(n);
        }
        self.break_line(line, damage);
        let (shortest, longest) = match damage {
            Damage::Cut | Damage::Truncate => (Duration::ZERO, Duration::from_millis(1)),
            _ => (LEASE / 2, LEASE + Duration::from_secs(2)),
        };
        tokio::time::sleep(between(shortest, longest, step)).await;
        self.restore_line(line, damage);
        if let Some(n) = disturbed {
            self.fixture.healed(n);
        }
        let outcome = Outcome::recovered(self.recovered(line).await);
        let hole = matches!(damage, Damage::BlackHole | Damage::DeafServer | Damage::DeafClient);
        Ok(if hole { outcome.counts_for(Target::HoleHealed) } else { outcome })
    }

    fn break_line(&self, line: Line, damage: Damage) {
        let proxy = self.fixture.proxy(line);
        match damage {
            Damage::Cut => proxy.cut(),
            Damage::Truncate => proxy.truncate(),
            Damage::BlackHole => proxy.black_hole(true),
            Damage::DeafServer => proxy.deafen(Side::Server, true),
            Damage::DeafClient => proxy.deafen(Side::Client, true),
            Damage::LostServer => proxy.lose(Side::Server),
            Damage::LostClient => proxy.lose(Side::Client),
        }
    }

    fn restore_line(&self, line: Line, damage: Damage) {
        let proxy = self.fixture.proxy(line);
        match damage {
            Damage::Cut | Damage::Truncate => {}
            Damage::BlackHole | Damage::DeafServer | Damage::DeafClient => proxy.black_hole(false),
            // The network finally closes the connection.
            Damage::LostServer | Damage::LostClient => proxy.cut(),
        }
    }

    /// Waits until the client of a connection gets an answer to something that it sent after this.
    pub(super) async fn recovered(&self, line: Line) -> Option<Duration> {
        match line {
            Line::WorkerToNats(n) => {
                let (id, now) = (&self.fixture.workers[n].id, Utc::now());
                reached(async || self.fixture.observer.heard_since(id, now).await == Some(true)).await
            }
            other => self.answers(other).await,
        }
    }

    pub(super) async fn answers(&self, line: Line) -> Option<Duration> {
        let began = Instant::now();
        let answers = tokio::time::timeout(PATIENCE, self.fixture.proxy(line).answers()).await;
        answers.ok().map(|()| began.elapsed())
    }
}
