//! Keeps a log readable during an outage: the same warning, from the same line of the program and with the same words, is
//! written once a minute, with the number of those that were left out. Numbers among its fields make no difference: how many
//! failed, or how long it will wait.

use std::{
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tracing::{
    Event, Level, Metadata, Subscriber,
    callsite::Identifier,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    layer::{Context, Filter},
    registry::LookupSpan,
};

/// A warning is shown again after this.
pub(crate) const PAUSE: Duration = Duration::from_mins(1);
/// Most warnings that are remembered; with more they are forgotten, and written once again.
const MOST: usize = 1_000;

/// When each warning was shown.
#[derive(Clone, Default)]
pub(crate) struct Quiet(Arc<Mutex<HashMap<Warning, Shown>>>);

/// The line of the program, and its words as a hash.
type Warning = (Identifier, u64);

struct Shown {
    at: Instant,
    /// Left out since then.
    hidden: u64,
    /// Left out before then, until it was told.
    told: u64,
}

impl Quiet {
    /// Decides whether to show a warning now.
    fn shows(&self, warning: Warning, now: Instant) -> bool {
        let mut all = self.0.lock();
        match all.get_mut(&warning) {
            Some(shown) if now.saturating_duration_since(shown.at) < PAUSE => {
                shown.hidden += 1;
                return false;
            }
            Some(shown) => *shown = Shown { at: now, hidden: 0, told: shown.told + shown.hidden },
            None => {
                if all.len() >= MOST {
                    all.clear();
                }
                all.insert(warning, Shown { at: now, hidden: 0, told: 0 });
            }
        }
        true
    }

    /// Behaves as if a minute went by.
    #[cfg(test)]
    pub(crate) fn wait(&self) {
        for shown in self.0.lock().values_mut() {
            shown.at -= PAUSE;
        }
    }

    /// Returns how many like this one were left out before it; 0 the second time.
    fn left_out(&self, warning: &Warning) -> u64 {
        let mut all = self.0.lock();
        all.get_mut(warning).map_or(0, |shown| std::mem::take(&mut shown.told))
    }
}

/// Returns the warning that an event is; `None` for one that is shown in any case.
fn warning(event: &Event<'_>) -> Option<Warning> {
    if *event.metadata().level() > Level::WARN {
        return None;
    }
    let mut words = Words(DefaultHasher::new());
    event.record(&mut words);
    Some((event.metadata().callsite(), words.0.finish()))
}

/// Hashes the values of an event that are no numbers.
struct Words(DefaultHasher);

impl Visit for Words {
    fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
        format!("{value:?}").hash(&mut self.0);
    }

    fn record_f64(&mut self, _: &Field, _: f64) {}

    fn record_i64(&mut self, _: &Field, _: i64) {}

    fn record_u64(&mut self, _: &Field, _: u64) {}

    fn record_i128(&mut self, _: &Field, _: i128) {}

    fn record_u128(&mut self, _: &Field, _: u128) {}
}

impl<S: Subscriber> Filter<S> for Quiet {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        warning(event).is_none_or(|warning| self.shows(warning, Instant::now()))
    }
}

/// A format that also tells how many lines were left out, as a field `hidden`.
pub(crate) struct Counted<F> {
    pub(crate) format: F,
    pub(crate) quiet: Quiet,
    pub(crate) json: bool,
}

impl<S, N, F> FormatEvent<S, N> for Counted<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let hidden = warning(event).map_or(0, |warning| self.quiet.left_out(&warning));
        if hidden == 0 {
            return self.format.format_event(context, writer, event);
        }
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        let line = line.trim_end();
        match line.strip_suffix('}').filter(|_| self.json) {
            Some(fields) => writeln!(writer, r#"{fields},"hidden":{hidden}}}"#),
            None => writeln!(writer, "{line} hidden={hidden}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::Callsite as _;

    use super::*;

    #[test]
    fn a_repeated_warning_is_shown_once_in_a_while_and_counted() {
        let quiet = Quiet::default();
        let callsite = tracing::callsite! { name: "a", kind: tracing::metadata::Kind::EVENT, target: "t", level: Level::WARN, fields: };
        let (one, other) = ((callsite.metadata().callsite(), 1), (callsite.metadata().callsite(), 2));
        let begin = Instant::now();
        assert!(quiet.shows(one.clone(), begin));
        for second in 0..50 {
            assert!(!quiet.shows(one.clone(), begin + Duration::from_secs(second)));
        }
        assert!(quiet.shows(other, begin), "with other words");
        assert_eq!(quiet.left_out(&one), 0);
        assert!(quiet.shows(one.clone(), begin + PAUSE));
        assert_eq!((quiet.left_out(&one), quiet.left_out(&one)), (50, 0));
        assert!(!quiet.shows(one.clone(), begin + PAUSE));
        for n in 0..10_000 {
            quiet.shows((one.0.clone(), n + 10), begin + PAUSE);
        }
        assert!(quiet.0.lock().len() <= MOST);
    }
}
