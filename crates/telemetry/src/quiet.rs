//! Keeps a terminal readable during an outage: the same warning, from the same line of the program, is shown once in a
//! while, with the number of those that were left out.

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tracing::{Event, Level, Metadata, Subscriber, callsite::Identifier};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    layer::{Context, Filter},
    registry::LookupSpan,
};

/// A warning is shown again after this.
pub(crate) const PAUSE: Duration = Duration::from_mins(1);

/// What was shown when. There is one entry for each line of the program that warns, so it stays small.
#[derive(Clone, Default)]
pub(crate) struct Quiet(Arc<Mutex<HashMap<Identifier, Shown>>>);

struct Shown {
    at: Instant,
    /// Left out since then.
    hidden: u64,
    /// Left out before then, until it was told.
    told: u64,
}

impl Quiet {
    /// Whether to show an event now.
    fn shows(&self, metadata: &Metadata<'_>, now: Instant) -> bool {
        if *metadata.level() > Level::WARN {
            return true;
        }
        let mut all = self.0.lock();
        match all.get_mut(&metadata.callsite()) {
            Some(shown) if now.saturating_duration_since(shown.at) < PAUSE => {
                shown.hidden += 1;
                false
            }
            Some(shown) => {
                *shown = Shown { at: now, hidden: 0, told: shown.told + shown.hidden };
                true
            }
            None => {
                all.insert(metadata.callsite(), Shown { at: now, hidden: 0, told: 0 });
                true
            }
        }
    }

    /// How many like this one were left out before it; 0 the second time.
    fn left_out(&self, metadata: &Metadata<'_>) -> u64 {
        let mut all = self.0.lock();
        all.get_mut(&metadata.callsite()).map_or(0, |shown| std::mem::take(&mut shown.told))
    }
}

impl<S: Subscriber> Filter<S> for Quiet {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        self.shows(event.metadata(), Instant::now())
    }
}

/// A format that also tells how many lines were left out.
pub(crate) struct Counted<F> {
    pub(crate) format: F,
    pub(crate) quiet: Quiet,
}

impl<S, N, F> FormatEvent<S, N> for Counted<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let hidden = self.quiet.left_out(event.metadata());
        if hidden > 0 {
            writeln!(writer, "({hidden} more like the next line were not shown)")?;
        }
        self.format.format_event(context, writer, event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_warning_is_shown_once_in_a_while_and_counted() {
        let quiet = Quiet::default();
        let (one, other) = (metadata_of(false), metadata_of(true));
        let begin = Instant::now();
        assert!(quiet.shows(one, begin));
        for second in 0..50 {
            assert!(!quiet.shows(one, begin + Duration::from_secs(second)));
        }
        assert!(quiet.shows(other, begin), "another line of the program");
        assert_eq!(quiet.left_out(one), 0);
        assert!(quiet.shows(one, begin + PAUSE));
        assert_eq!((quiet.left_out(one), quiet.left_out(one)), (50, 0));
        assert!(!quiet.shows(one, begin + PAUSE));
    }

    /// The metadata of one of two callsites.
    fn metadata_of(other: bool) -> &'static Metadata<'static> {
        use tracing::Callsite as _;
        if other {
            tracing::callsite! { name: "b", kind: tracing::metadata::Kind::EVENT, target: "t", level: Level::ERROR, fields: }
                .metadata()
        } else {
            tracing::callsite! { name: "a", kind: tracing::metadata::Kind::EVENT, target: "t", level: Level::WARN, fields: }
                .metadata()
        }
    }
}
