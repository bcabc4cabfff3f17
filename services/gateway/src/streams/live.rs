//! What models write, while they write it: for the streams of a task, one subscription and one text, however many they are.
//!
//! Pieces may be lost. Each says what precedes it, so a piece after a gap is known, and the whole text comes again from the worker
//! every few seconds. Until then nothing is shown: never a wrong text.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use redial_proto::{Delta, DeltaPosition, TaskId, WholeText, subjects};
use redial_queue::{Queue, Subscription};
use tokio::sync::watch;

use super::sse::Page;
use crate::{hub::Subject, problem::Problem};

/// Bytes of a text that is shown while it is written; of a longer one the message is shown once it is on record.
const LONGEST: usize = 512 * 1024;
/// How long after a failure to subscribe it is tried again.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Clone, Default)]
pub(crate) struct LiveTexts {
    tasks: Arc<Mutex<HashMap<Subject, watch::Sender<LiveText>>>>,
}

/// Hears what the model of one task writes.
pub(crate) struct Follower {
    text: watch::Receiver<LiveText>,
}

/// What of a text a stream was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    turn: u32,
    attempt: u32,
    version: u32,
    thought: usize,
    text: usize,
}

impl LiveTexts {
    pub(crate) fn follow(&self, queue: &Queue, subject: &Subject) -> Follower {
        let mut tasks = self.tasks.lock();
        if let Some(sender) = tasks.get(subject) {
            return Follower { text: sender.subscribe() };
        }
        let (sender, text) = watch::channel(LiveText::default());
        tasks.insert(subject.clone(), sender.clone());
        tokio::spawn(self.clone().hear(queue.clone(), subject.clone(), sender));
        Follower { text }
    }

    /// Hears pieces until no stream is left.
    async fn hear(self, queue: Queue, subject: Subject, sender: watch::Sender<LiveText>) {
        let name = subjects::task_deltas(subject.tenant.as_str(), TaskId(subject.id));
        let mut pieces = None::<Subscription>;
        loop {
            let Some(subscribed) = &mut pieces else {
                match queue.subscribe(&name).await {
                    Ok(subscribed) => pieces = Some(subscribed),
                    Err(error) => {
                        tracing::debug!(%error, "Failed to subscribe to what a model writes; trying again");
                        tokio::time::sleep(AGAIN).await;
                    }
                }
                if self.forget(&subject, &sender) {
                    return;
                }
                continue;
            };
            let piece = tokio::select! {
                piece = subscribed.next() => piece,
                () = sender.closed() => {
                    if self.forget(&subject, &sender) {
                        return;
                    }
                    continue;
                }
            };
            if let Ok(delta) = serde_json::from_slice::<Delta>(&piece) {
                sender.send_if_modified(|text| text.take(delta));
            }
        }
    }

    /// Forgets a task that no stream is open for. False if there is one.
    fn forget(&self, subject: &Subject, sender: &watch::Sender<LiveText>) -> bool {
        let mut tasks = self.tasks.lock();
        let is_unused = sender.receiver_count() == 0;
        if is_unused {
            tasks.remove(subject);
        }
        is_unused
    }
}

impl Follower {
    /// Waits for another piece. Can be cancelled without loss.
    pub(crate) async fn changed(&mut self) {
        if self.text.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn turn(&self) -> Option<u32> {
        let text = self.text.borrow();
        text.is_known.then_some(text.turn)
    }

    /// Adds what was written since: the text so far as `text`, if nothing of it was sent, and otherwise what follows as `delta`.
    pub(crate) fn show(&self, sent: &mut Option<Sent>, page: &mut Page) -> Result<(), Problem> {
        let text = self.text.borrow();
        if !text.is_known {
            return Ok(());
        }
        let LiveText { turn, attempt, version, .. } = *text;
        let now = Sent { turn, attempt, version, thought: text.thought.len(), text: text.text.len() };
        let before = sent.filter(|sent| (sent.turn, sent.attempt, sent.version) == (turn, attempt, version));
        if before == Some(now) {
            return Ok(());
        }
        let (name, thought, text) = match before {
            Some(before) => ("delta", &text.thought[before.thought..], &text.text[before.text..]),
            None => ("text", &*text.thought, &*text.text),
        };
        let data = serde_json::json!({"turn": turn, "attempt": attempt, "thought": thought, "text": text});
        *sent = Some(now);
        page.event(None, name, &data)
    }
}

/// What a model has written in one attempt of a turn.
#[derive(Debug, Default)]
struct LiveText {
    turn: u32,
    attempt: u32,
    /// How often it began again: an attempt that was released is granted again under its number.
    version: u32,
    thought: String,
    text: String,
    /// Nothing of it is missing.
    is_known: bool,
}

impl LiveText {
    /// Takes a piece. True if there may be something to show.
    fn take(&mut self, delta: Delta) -> bool {
        if (delta.turn, delta.attempt) < (self.turn, self.attempt) {
            return false;
        }
        if (delta.turn, delta.attempt) > (self.turn, self.attempt) {
            *self = Self { turn: delta.turn, attempt: delta.attempt, ..Self::default() };
        }
        match (delta.whole, delta.after) {
            (Some(whole), _) => self.replace(whole),
            (None, after) => self.append(&delta.thought, &delta.text, after.unwrap_or_default()),
        }
        if self.thought.len() + self.text.len() > LONGEST {
            *self = Self { turn: self.turn, attempt: u32::MAX, ..Self::default() };
        }
        self.is_known
    }

    fn replace(&mut self, whole: WholeText) {
        let is_same = self.is_known && goes_with(&self.thought, &whole.thought) && goes_with(&self.text, &whole.text);
        if !is_same {
            self.begin_again(true);
        }
        // It may have been sent before a piece that came first.
        if whole.thought.len() >= self.thought.len() && whole.text.len() >= self.text.len() {
            (self.thought, self.text) = (whole.thought, whole.text);
        }
    }

    fn append(&mut self, thought: &str, text: &str, after: DeltaPosition) {
        let is_first = (after.thought, after.text) == (0, 0);
        let fits = |known: &str, piece: &str, after: u64| {
            let rest = usize::try_from(after).ok().and_then(|after| known.get(after..));
            rest.is_some_and(|rest| goes_with(rest, piece))
        };
        if !fits(&self.thought, thought, after.thought) || !fits(&self.text, text, after.text) {
            self.begin_again(is_first);
        }
        self.is_known |= is_first && self.thought.is_empty() && self.text.is_empty();
        if self.is_known {
            append(&mut self.thought, thought, after.thought);
            append(&mut self.text, text, after.text);
        }
    }

    fn begin_again(&mut self, is_known: bool) {
        self.version += 1;
        self.is_known = is_known;
        self.thought.clear();
        self.text.clear();
    }
}

/// Returns true if one of two texts begins with the other.
fn goes_with(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Appends what is new of a piece that begins `after` so many bytes of the text.
fn append(text: &mut String, piece: &str, after: u64) {
    let known = text.len().saturating_sub(usize::try_from(after).unwrap_or(usize::MAX));
    if let Some(new) = piece.get(known..) {
        text.push_str(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(turn: u32, attempt: u32, after: u64, text: &str) -> Delta {
        let after = Some(DeltaPosition { thought: 0, text: after });
        Delta { turn, attempt, text: text.to_owned(), after, ..Delta::default() }
    }

    fn whole(turn: u32, attempt: u32, text: &str) -> Delta {
        let whole = Some(WholeText { text: text.to_owned(), thought: String::new() });
        Delta { turn, attempt, whole, ..Delta::default() }
    }

    /// Returns what a stream shows after each piece.
    fn shown(pieces: impl IntoIterator<Item = Delta>) -> Vec<String> {
        let (sender, receiver) = watch::channel(LiveText::default());
        let (follower, mut sent) = (Follower { text: receiver }, None);
        let show = |delta| {
            sender.send_if_modified(|text| text.take(delta));
            let mut page = Page::default();
            follower.show(&mut sent, &mut page).unwrap();
            let page = String::from_utf8(page.into_bytes().to_vec()).unwrap();
            let event = page.lines().find_map(|line| line.strip_prefix("event: ")).unwrap_or("-").to_owned();
            let data = page.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or("{}");
            let data: serde_json::Value = serde_json::from_str(data).unwrap();
            format!("{event} {}", data["text"].as_str().unwrap_or_default())
        };
        pieces.into_iter().map(show).collect()
    }

    #[test]
    fn after_a_gap_nothing_is_shown_until_the_whole_text_came() {
        let pieces = [
            piece(1, 1, 3, "is "),
            piece(1, 1, 6, "sunny"),
            whole(1, 1, "It is sunny"),
            piece(1, 1, 11, " today"),
            piece(1, 1, 99, "!"),
            piece(1, 1, 100, "?"),
            whole(1, 1, "It is sunny today, and so on!?"),
        ];
        let wanted =
            ["- ", "- ", "text It is sunny", "delta  today", "- ", "- ", "text It is sunny today, and so on!?"];
        assert_eq!(shown(pieces), wanted);
    }

    #[test]
    fn a_piece_that_is_known_already_is_not_shown_twice() {
        let pieces = [piece(1, 1, 0, "è un"), piece(1, 1, 0, "è un"), piece(1, 1, 3, "un giorno"), whole(1, 1, "è")];
        assert_eq!(shown(pieces), ["text è un", "- ", "delta  giorno", "- "]);
    }

    #[test]
    fn a_new_attempt_begins_again_and_an_older_one_is_not_heard() {
        let pieces = [piece(1, 1, 0, "It"), piece(1, 2, 0, "Rain"), piece(1, 1, 2, " is"), piece(2, 1, 0, "Bye")];
        assert_eq!(shown(pieces), ["text It", "text Rain", "- ", "text Bye"]);
    }

    #[test]
    fn an_attempt_that_is_granted_again_begins_again() {
        let pieces = [
            piece(1, 1, 0, "It is sunny"),
            piece(1, 1, 0, "Rain"),
            piece(1, 1, 4, "s"),
            whole(1, 1, "It rains"),
            piece(1, 1, 2, " was"),
        ];
        assert_eq!(shown(pieces), ["text It is sunny", "text Rain", "delta s", "text It rains", "- "]);
    }
}
