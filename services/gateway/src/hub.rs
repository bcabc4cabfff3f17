//! Waiting for what happens to calls and tasks.
//!
//! One subscription hears the events of all tenants. They are hints, which may be lost: whoever waits looks at the database
//! as well, through [`crate::watch`], which asks for all that is waited for in one query.

use std::{
    collections::{HashMap, VecDeque},
    ops::RangeInclusive,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use redial_proto::Tenant;
use tokio::sync::watch;
use uuid::Uuid;

/// An event that nobody waits for yet is kept so long: a call may end before the reply to its submission was read.
const KEPT: Duration = Duration::from_secs(2);
/// Bytes of such events at most; the oldest go first.
const KEPT_BYTES: usize = 8 * 1024 * 1024;

/// The database is asked about what is waited for after this, and again after an eighth of the time that the last waiter has
/// waited, within these bounds: whoever waits briefly hears of an end soon, and whoever waits long costs one look a second.
const LOOKS: RangeInclusive<Duration> = Duration::from_millis(20)..=Duration::from_secs(1);

#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    /// How often something happened; only a change matters.
    pub(crate) changes: u64,
    /// How often it was heard that it has ended: it may run again after a redrive.
    ends: u64,
    /// The end of the call, as its event told it: a [`redial_proto::CallView`].
    pub(crate) end: Option<Bytes>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subject {
    pub(crate) tenant: Tenant,
    pub(crate) id: Uuid,
}

/// Those who wait. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Hub {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    waiting: HashMap<Subject, Waiting>,
    kept: HashMap<Subject, (Instant, Bytes)>,
    /// What is kept, oldest first. An event that came again is in here twice, and counts by its later time.
    kept_order: VecDeque<(Instant, Subject)>,
    kept_bytes: usize,
}

struct Waiting {
    news: watch::Sender<News>,
    waiters: usize,
    /// When the last waiter came.
    since: Instant,
    /// When the database is asked about it.
    due: Instant,
    /// How far it was at the last look; `None` before the first.
    position: Option<i64>,
}

/// Hears of one subject until it is dropped.
pub(crate) struct Waiter {
    hub: Hub,
    subject: Subject,
    news: watch::Receiver<News>,
    ends: u64,
}

impl Hub {
    /// Waits for news of a subject from now on; an end that was heard a moment ago counts.
    pub(crate) fn wait_for(&self, subject: Subject) -> Waiter {
        let now = Instant::now();
        let mut inner = self.lock();
        let kept = inner.kept.get(&subject).map(|(_, end)| end.clone());
        let waiting = inner.waiting.entry(subject.clone()).or_insert_with(|| Waiting::new(now));
        waiting.waiters += 1;
        waiting.since = now;
        waiting.due = waiting.due.min(now + *LOOKS.start());
        let news = waiting.news.subscribe();
        let ends = news.borrow().ends;
        if kept.is_some() {
            waiting.heard(kept, true);
        }
        drop(inner);
        Waiter { hub: self.clone(), subject, news, ends }
    }

    /// Takes note of a subject's event; `end` is that of a call that ended.
    pub(crate) fn heard(&self, subject: Subject, end: Option<Bytes>) {
        let mut inner = self.lock();
        let Some(waiting) = inner.waiting.get(&subject) else {
            inner.keep(subject, end);
            return;
        };
        let has_ended = end.is_some();
        waiting.heard(end, has_ended);
    }

    /// Returns what the database is to be asked about now.
    pub(crate) fn due(&self, now: Instant) -> Vec<Subject> {
        let mut inner = self.lock();
        let due = inner.waiting.iter_mut().filter(|(_, waiting)| waiting.due <= now);
        due.map(|(subject, waiting)| {
            let waited = now.saturating_duration_since(waiting.since);
            waiting.due = now + (waited / 8).clamp(*LOOKS.start(), *LOOKS.end());
            subject.clone()
        })
        .collect()
    }

    /// Takes note of how far a subject is, as the database says. A change is news; so is the first look, because it is
    /// not known what changed since the waiter's own.
    pub(crate) fn looked(&self, subject: &Subject, position: i64, has_ended: bool) {
        let mut inner = self.lock();
        if let Some(waiting) = inner.waiting.get_mut(subject)
            && waiting.position.replace(position) != Some(position)
        {
            waiting.heard(None, has_ended);
        }
    }

    /// Counts waiters: a request or a stream counts once for each call or task that it waits for.
    pub(crate) fn waiters(&self) -> usize {
        self.lock().waiting.values().map(|waiting| waiting.waiters).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    fn keep(&mut self, subject: Subject, end: Option<Bytes>) {
        let now = Instant::now();
        let Some(end) = end else { return };
        self.kept_bytes += end.len();
        self.kept_order.push_back((now, subject.clone()));
        if let Some((_, before)) = self.kept.insert(subject, (now, end)) {
            self.kept_bytes -= before.len();
        }
        while self
            .kept_order
            .front()
            .is_some_and(|(at, _)| now.duration_since(*at) > KEPT || self.kept_bytes > KEPT_BYTES)
        {
            let Some((at, subject)) = self.kept_order.pop_front() else { return };
            if self.kept.get(&subject).is_some_and(|(kept_at, _)| *kept_at == at) {
                self.kept_bytes -= self.kept.remove(&subject).map_or(0, |(_, end)| end.len());
            }
        }
    }
}

impl Waiting {
    fn new(now: Instant) -> Self {
        Self { news: watch::Sender::default(), waiters: 0, since: now, due: now + *LOOKS.start(), position: None }
    }

    fn heard(&self, end: Option<Bytes>, has_ended: bool) {
        self.news.send_modify(|news| {
            news.changes += 1;
            news.ends += u64::from(has_ended);
            news.end = end.or_else(|| news.end.take());
        });
    }
}

impl Waiter {
    pub(crate) const fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Waits for news. Can be cancelled without loss.
    pub(crate) async fn next(&mut self) -> News {
        // The sender lives as long as there is a waiter.
        let _ = self.news.changed().await;
        self.news.borrow_and_update().clone()
    }

    /// Waits until it is heard again that the subject has ended. Can be cancelled without loss.
    pub(crate) async fn end(&mut self) {
        if let Ok(news) = self.news.wait_for(|news| news.ends > self.ends).await {
            self.ends = news.ends;
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut inner = self.hub.lock();
        if let Some(waiting) = inner.waiting.get_mut(&self.subject) {
            waiting.waiters -= 1;
            if waiting.waiters == 0 {
                inner.waiting.remove(&self.subject);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn subject(n: u128) -> Subject {
        Subject { tenant: Tenant::default(), id: Uuid::from_u128(n) }
    }

    #[tokio::test]
    async fn an_end_that_came_before_the_waiter_is_told() {
        let hub = Hub::default();
        hub.heard(subject(1), Some(Bytes::from_static(b"{}")));
        let mut waiter = hub.wait_for(subject(1));
        assert_eq!(waiter.next().await.end.as_deref(), Some(&b"{}"[..]));
        let other = Subject { tenant: "acme".parse().unwrap(), ..subject(1) };
        assert!(hub.wait_for(other).news.borrow().end.is_none(), "another tenant's call of the same id");
    }

    #[tokio::test]
    async fn every_waiter_hears_and_the_last_one_clears_up() {
        let hub = Hub::default();
        let (mut one, mut two) = (hub.wait_for(subject(1)), hub.wait_for(subject(1)));
        hub.heard(subject(1), None);
        assert_eq!((one.next().await.changes, two.next().await.changes), (1, 1));
        assert_eq!((hub.waiters(), hub.lock().waiting.len()), (2, 1));
        drop(one);
        assert_eq!((hub.waiters(), hub.lock().waiting.len()), (1, 1));
        drop(two);
        assert_eq!((hub.waiters(), hub.lock().waiting.len()), (0, 0));
    }

    #[test]
    fn looks_become_rarer_and_a_new_waiter_is_served_soon() {
        let hub = Hub::default();
        let _first = hub.wait_for(subject(1));
        let start = hub.lock().waiting[&subject(1)].since;
        let at = |ms| start + Duration::from_millis(ms);
        let looks = |times: std::ops::Range<u64>| times.filter(|ms| !hub.due(at(*ms)).is_empty()).collect::<Vec<_>>();
        assert_eq!(looks(0..100), [20, 40, 60, 80]);
        let later = looks(100..20_000);
        assert!(later.iter().zip(&later[1..]).all(|(one, next)| next - one <= (next / 8).max(20)), "{later:?}");
        assert_eq!(later.windows(2).last().map(|two| two[1] - two[0]), Some(1_000));
        let _second = hub.wait_for(subject(1));
        assert_eq!(hub.due(Instant::now() + *LOOKS.start()).len(), 1);
    }

    #[tokio::test]
    async fn a_look_tells_what_changed() {
        let hub = Hub::default();
        let mut waiter = hub.wait_for(subject(1));
        hub.looked(&subject(1), 3, false);
        assert_eq!(waiter.next().await.changes, 1, "the first look");
        hub.looked(&subject(1), 3, false);
        hub.looked(&subject(1), 4, false);
        assert_eq!(waiter.next().await.changes, 2, "the same position is no news");
    }

    #[tokio::test]
    async fn only_ends_wake_who_waits_for_the_end() {
        let (hub, ended) = (Hub::default(), Some(Bytes::from_static(b"{}")));
        let mut waiter = hub.wait_for(subject(1));
        hub.looked(&subject(1), 3, false);
        hub.heard(subject(1), None);
        assert!(waiter.end().now_or_never().is_none(), "it goes on");
        hub.heard(subject(1), ended.clone());
        hub.looked(&subject(1), 8, false);
        waiter.end().await;
        assert!(waiter.end().now_or_never().is_none(), "it was told, and it was redriven");
        hub.looked(&subject(1), 9, true);
        assert!(hub.wait_for(subject(1)).end().now_or_never().is_none(), "whoever comes later looks first");
        waiter.end().await;
        hub.heard(subject(2), ended);
        hub.wait_for(subject(2)).end().await;
    }

    #[test]
    fn events_that_nobody_waits_for_take_bounded_memory() {
        let hub = Hub::default();
        let end = Bytes::from(vec![b' '; KEPT_BYTES / 4]);
        (0..100).for_each(|n| hub.heard(subject(n), Some(end.clone())));
        assert_eq!(hub.lock().kept.len(), 4);
        assert_eq!(hub.lock().kept_bytes, KEPT_BYTES);
        (0..100).for_each(|_| hub.heard(subject(99), Some(end.clone())));
        let inner = hub.lock();
        assert_eq!((inner.kept.len(), inner.kept_bytes), (4, KEPT_BYTES), "the same one again counts once");
    }
}
