//! Waiting for what happens to calls and tasks.
//!
//! One subscription hears the events of all tenants. They are hints, which may be lost: whoever waits looks at the database
//! as well, through [`crate::watch`], which asks for all that is waited for in one query.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use redial_proto::Tenant;
use tokio::sync::watch;
use uuid::Uuid;

/// An event that nobody waits for yet is kept so long: a call may end before the reply to its submission was read.
const KEPT: Duration = Duration::from_secs(2);
/// Bytes of such events at most; the oldest go first.
const KEPT_BYTES: usize = 8 * 1024 * 1024;

/// What is known to whoever waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    /// How often something happened; only a change matters.
    pub(crate) changes: u64,
    /// The end of the call, as its event told it: a [`redial_proto::CallView`].
    pub(crate) end: Option<Bytes>,
}

/// A call or a task of a tenant.
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

#[derive(Default)]
struct Waiting {
    news: watch::Sender<News>,
    waiters: usize,
}

/// Hears of one subject until it is dropped.
pub(crate) struct Waiter {
    hub: Hub,
    subject: Subject,
    news: watch::Receiver<News>,
}

impl Hub {
    /// Waits for news of a subject from now on; an end that was heard a moment ago counts.
    pub(crate) fn wait_for(&self, subject: Subject) -> Waiter {
        let mut inner = self.lock();
        let kept = inner.kept.get(&subject).map(|(_, end)| end.clone());
        let waiting = inner.waiting.entry(subject.clone()).or_default();
        waiting.waiters += 1;
        let news = waiting.news.subscribe();
        if kept.is_some() {
            waiting.news.send_modify(|news| {
                news.changes += 1;
                news.end = kept;
            });
        }
        drop(inner);
        Waiter { hub: self.clone(), subject, news }
    }

    /// Something happened to a subject; `end` is the event of a call that ended.
    pub(crate) fn heard(&self, subject: Subject, end: Option<Bytes>) {
        let mut inner = self.lock();
        let Some(waiting) = inner.waiting.get(&subject) else {
            inner.keep(subject, end);
            return;
        };
        waiting.news.send_modify(|news| {
            news.changes += 1;
            news.end = end.or_else(|| news.end.take());
        });
    }

    /// What is waited for.
    pub(crate) fn subjects(&self) -> Vec<Subject> {
        self.lock().waiting.keys().cloned().collect()
    }

    /// How many wait: a request or a stream counts once for each call or task that it waits for.
    pub(crate) fn waiters(&self) -> usize {
        self.lock().waiting.values().map(|waiting| waiting.waiters).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Waiter {
    /// Of what it hears.
    pub(crate) const fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The next news. Can be cancelled without loss.
    pub(crate) async fn next(&mut self) -> News {
        // The sender lives as long as there is a waiter.
        let _ = self.news.changed().await;
        self.news.borrow_and_update().clone()
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
        assert_eq!((hub.waiters(), hub.subjects().len()), (2, 1));
        drop(one);
        assert_eq!((hub.waiters(), hub.subjects().len()), (1, 1));
        drop(two);
        assert_eq!((hub.waiters(), hub.subjects().len()), (0, 0));
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
