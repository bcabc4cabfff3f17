//! What the permissions of the NATS server do not allow this login. The server drops a message that it refuses, and says so
//! apart from any reply: whoever waits for that reply hears of it here, instead of waiting in vain.

use std::{future::Future, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::broadcast;

use crate::QueueError;

/// Refusals that may arrive before one who waits has looked. Who misses some waits for the end of its time, as before.
const KEPT: usize = 64;

/// What the server has refused.
#[derive(Clone)]
pub(crate) struct Refusals {
    /// Each refused subject as it is told.
    subjects: broadcast::Sender<Arc<str>>,
    /// The subscription that answers arrive on, if it was refused: then no request on this connection is answered.
    answers: Arc<Mutex<Option<Arc<str>>>>,
    inbox_prefix: Arc<str>,
}

impl Refusals {
    pub(crate) fn new(inbox_prefix: &str) -> Self {
        Self { subjects: broadcast::Sender::new(KEPT), answers: Arc::default(), inbox_prefix: inbox_prefix.into() }
    }

    pub(crate) fn note(&self, said: &str) {
        let Some((what, subject)) = refused(said) else { return };
        let subject: Arc<str> = subject.into();
        if what == Refused::Subscription && subject.starts_with(&*self.inbox_prefix) {
            *self.answers.lock() = Some(Arc::clone(&subject));
        }
        // Nobody may be waiting.
        let _ = self.subjects.send(subject);
    }

    /// Forgets all: the server may allow more to the next connection.
    pub(crate) fn forget(&self) {
        *self.answers.lock() = None;
    }

    /// Ends once the server has refused what was sent to the subject, or the subscription that its answer would arrive on.
    /// Listens from this call on, not from the first poll.
    pub(crate) fn of(&self, subject: &str) -> impl Future<Output = QueueError> + Send + use<> {
        let (mut heard, this, subject) = (self.subjects.subscribe(), self.clone(), subject.to_owned());
        async move {
            loop {
                let answers = this.answers.lock().clone();
                if let Some(inbox) = answers {
                    return QueueError::NoAnswersAllowed { inbox: inbox.to_string() };
                }
                match heard.recv().await {
                    Ok(refused) if *refused == *subject => return QueueError::Forbidden { subject },
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    // `this` holds a sender.
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                }
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Refused {
    Publish,
    Subscription,
}

/// Reads the subject in `Permissions Violation for Publish to "a.b"`, or the same of a subscription, which may name its
/// queue group after the subject. The client leaves the server's quotes around all of it.
fn refused(said: &str) -> Option<(Refused, &str)> {
    let (_, said) = said.split_once("Permissions Violation for ")?;
    let (what, rest) = said.split_once(" to \"")?;
    let what = match what {
        "Publish" => Refused::Publish,
        "Subscription" => Refused::Subscription,
        _ => return None,
    };
    Some((what, rest.split_once('"')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_of_a_refusal_is_read() {
        let rows = [
            ("Permissions Violation for Publish to \"a.b\"", Some((Refused::Publish, "a.b"))),
            ("'Permissions Violation for Subscription to \"a.>\"'", Some((Refused::Subscription, "a.>"))),
            (
                "Permissions Violation for Subscription to \"a.b\" using queue \"q\"",
                Some((Refused::Subscription, "a.b")),
            ),
            ("Permissions Violation for Publish with Reply of \"a\"", None),
            ("Stale Connection", None),
        ];
        for (said, wanted) in rows {
            assert_eq!(refused(said), wanted, "{said}");
        }
    }
}
