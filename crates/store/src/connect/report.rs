//! What a server says about itself, and which of several is the primary. Pure, but for the question.

use sqlx::{FromRow, PgConnection};

/// What a server says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an answer of its own")]
pub(crate) struct Report {
    /// Which database it is a copy of: the same for a primary and its standbys.
    pub(crate) system: i64,
    /// The newest timeline it knows: that which it writes, or, if it is a standby, at least which it has read. Each
    /// promotion begins a new one.
    pub(crate) timeline: i64,
    /// It follows another server, and takes no writes.
    pub(crate) is_standby: bool,
    /// It is told to take no writes.
    pub(crate) is_read_only: bool,
    /// When it was started, in µs since some fixed moment: tells two servers apart, and one server before and after a restart.
    pub(crate) started: i64,
    /// A server receives its log now: a standby, or a backup.
    pub(crate) is_followed: bool,
    /// Commits wait for a standby.
    pub(crate) is_synchronous: bool,
}

impl Report {
    /// Asks the server. A login whose own sessions are read-only (`ALTER ROLE … SET default_transaction_read_only`)
    /// does not make the server so.
    pub(crate) async fn of(connection: &mut PgConnection) -> Result<Self, sqlx::Error> {
        // The timeline of the control file is that of the last checkpoint, which comes a while after a promotion.
        let question = "SELECT c.system_identifier, \
                CASE WHEN r.standby THEN GREATEST(p.timeline_id, m.min_recovery_end_timeline)::bigint \
                    ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END, \
                r.standby, \
                EXISTS (SELECT FROM pg_settings WHERE name = 'default_transaction_read_only' AND setting = 'on' \
                    AND source NOT IN ('user', 'database user')), \
                (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint, \
                EXISTS (SELECT FROM pg_stat_replication), current_setting('synchronous_standby_names') <> '' \
            FROM (SELECT pg_is_in_recovery() AS standby OFFSET 0) r, pg_control_system() c, pg_control_checkpoint() p, \
                pg_control_recovery() m";
        let (system, timeline, is_standby, is_read_only, started, is_followed, is_synchronous) =
            // Nothing is prepared, which the next connection of a pooler would not know.
            FromRow::from_row(&sqlx::raw_sql(question).fetch_one(connection).await?)?;
        Ok(Self { system, timeline, is_standby, is_read_only, started, is_followed, is_synchronous })
    }

    /// Says why this server must not be used, if it must not. `newest`: the newest timeline that was seen.
    pub(crate) fn objection(&self, newest: Option<Newest>) -> Option<String> {
        if self.is_standby {
            return Some("is a standby".to_owned());
        }
        if self.is_read_only {
            return Some("is read-only (default_transaction_read_only)".to_owned());
        }
        let newest = newest.filter(|newest| newest.system == self.system && newest.timeline > self.timeline)?;
        let (own, newest) = (self.timeline, newest.timeline);
        Some(format!("is an old primary: it is on timeline {own}, and a newer one is on timeline {newest}"))
    }

    /// True if this is the same server as another one: it may have two addresses.
    fn is_same_server(&self, other: &Self) -> bool {
        (self.system, self.started, self.timeline) == (other.system, other.started, other.timeline)
    }
}

/// The newest timeline that was seen of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) system: i64,
    pub(crate) timeline: i64,
}

impl Newest {
    /// Returns the newer of what was seen and what is seen now.
    pub(crate) fn with(seen: Option<Self>, report: &Report) -> Self {
        let now = Self { system: report.system, timeline: report.timeline };
        seen.filter(|seen| seen.system == now.system && seen.timeline > now.timeline).unwrap_or(now)
    }
}

/// Why no server is the primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoPrimary {
    /// Each server by its index, and why it is none; those without a report are not in the list.
    Objections(Vec<(usize, String)>),
    /// Several servers take writes, and neither is newer.
    Several(Vec<usize>),
}

/// Elects the server to use by its index: the writable one on the newest timeline. `seen`: the newest timeline that was
/// seen before; a server that is gone now may have had a newer one.
pub(crate) fn elect(reports: &[Option<Report>], seen: Option<Newest>) -> Result<usize, NoPrimary> {
    let known = || reports.iter().enumerate().filter_map(|(n, report)| Some((n, report.as_ref()?)));
    let newest = |system: i64| {
        let of_system = known().filter(|(_, report)| report.system == system).map(|(_, report)| report.timeline);
        let before = seen.filter(|seen| seen.system == system).map(|seen| seen.timeline);
        of_system.chain(before).max().map(|timeline| Newest { system, timeline })
    };
    let mut objections = Vec::new();
    let mut fit: Vec<(usize, &Report)> = Vec::new();
    for (n, report) in known() {
        match report.objection(newest(report.system)) {
            Some(why) => objections.push((n, why)),
            None if fit.iter().any(|(_, other)| other.is_same_server(report)) => {}
            None => fit.push((n, report)),
        }
    }
    match fit.as_slice() {
        [] => Err(NoPrimary::Objections(objections)),
        [(only, _)] => Ok(*only),
        several => Err(NoPrimary::Several(several.iter().map(|(n, _)| *n).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(timeline: i64, started: i64) -> Report {
        let (is_standby, is_read_only, is_followed, is_synchronous) = (false, false, true, true);
        Report { system: 1, timeline, is_standby, is_read_only, started, is_followed, is_synchronous }
    }

    /// Elects one of servers that have all answered.
    fn elected<const N: usize>(servers: [Report; N], seen: Option<Newest>) -> Result<usize, NoPrimary> {
        elect(&servers.map(Some), seen)
    }

    fn standby(timeline: i64) -> Report {
        Report { is_standby: true, ..server(timeline, 99) }
    }

    const SEEN: Option<Newest> = Some(Newest { system: 1, timeline: 2 });

    #[test]
    fn the_writable_server_on_the_newest_timeline_is_used() {
        assert_eq!(elected([standby(1), server(1, 5)], None), Ok(1));
        assert_eq!(elect(&[None, Some(server(1, 5))], None), Ok(1), "the other one does not answer");
        assert_eq!(elected([server(1, 5), server(2, 6)], None), Ok(1));
        assert_eq!(elected([server(2, 5), server(2, 5)], SEEN), Ok(0), "one server with two addresses");
    }

    #[test]
    fn an_old_primary_is_refused_if_anything_newer_was_seen() {
        let refused = |reports: &[Option<Report>], seen| {
            let Err(NoPrimary::Objections(found)) = elect(reports, seen) else { panic!("it was used") };
            found.into_iter().map(|(_, why)| why).collect::<Vec<_>>().join("; ")
        };
        let (old, why) =
            (Some(server(1, 5)), "is an old primary: it is on timeline 1, and a newer one is on timeline 2");
        assert_eq!(refused(&[old.clone(), None], SEEN), why);
        assert_eq!(refused(std::slice::from_ref(&old), SEEN), why, "behind an address of its own");
        let told = refused(&[old.clone(), Some(standby(2))], None);
        assert_eq!(told, format!("{why}; is a standby"), "told by a standby");
        assert_eq!(elect(&[old, None], None), Ok(0), "a process that saw nothing newer cannot know");
    }

    #[test]
    fn a_server_that_takes_no_writes_is_none() {
        let fenced = Report { is_read_only: true, ..server(2, 5) };
        let Err(NoPrimary::Objections(found)) = elected([fenced, server(1, 6)], None) else { panic!("one was used") };
        assert!(
            found[0].1.contains("default_transaction_read_only") && found[1].1.contains("old primary"),
            "{found:?}"
        );
        assert_eq!(elect(&[None, None], SEEN), Err(NoPrimary::Objections(Vec::new())));
    }

    #[test]
    fn of_two_primaries_that_are_equally_new_none_is_used() {
        let both = elected([server(2, 5), standby(1), server(2, 6)], None);
        assert_eq!(both, Err(NoPrimary::Several(vec![0, 2])));
        let other = Report { system: 2, ..server(7, 6) };
        assert_eq!(elected([server(2, 5), other], None), Err(NoPrimary::Several(vec![0, 1])), "two databases");
    }

    #[test]
    fn another_database_at_the_same_address_has_timelines_of_its_own() {
        let restored = Report { system: 2, ..server(1, 5) };
        assert_eq!(Newest::with(SEEN, &restored), Newest { system: 2, timeline: 1 });
        assert_eq!(Newest::with(SEEN, &server(1, 5)), SEEN.unwrap());
        assert_eq!(elected([restored], SEEN), Ok(0));
    }
}
