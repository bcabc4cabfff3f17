//! What waits, by who asks for it, in the turns of those.

use std::collections::{HashMap, VecDeque};

#[derive(Debug)]
pub(crate) struct Turns<T> {
    waiting: HashMap<String, VecDeque<T>>,
    /// Who has something waiting, in the order of their turns.
    order: VecDeque<String>,
}

/// What becomes of the turn of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Its next item is taken.
    Takes,
    /// It has enough; the next one has its turn.
    Passes,
    /// It is the next one to be served, and nobody overtakes it.
    Waits,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T> Turns<T> {
    pub(crate) fn push(&mut self, of: &str, item: T) {
        if let Some(items) = self.waiting.get_mut(of) {
            items.push_back(item);
        } else {
            self.waiting.insert(of.to_owned(), VecDeque::from([item]));
            self.order.push_back(of.to_owned());
        }
    }

    /// Takes the next item of the first sender whose turn it is; that one has its next turn after all others.
    pub(crate) fn next(&mut self, mut turn: impl FnMut(&str, &T) -> Turn) -> Option<(String, T)> {
        let at = self.order.iter().enumerate().find_map(|(at, of)| {
            let item = self.waiting.get(of)?.front()?;
            Some((at, turn(of, item))).filter(|(_, turn)| *turn != Turn::Passes)
        });
        let of = at.filter(|(_, turn)| *turn == Turn::Takes).and_then(|(at, _)| self.order.remove(at))?;
        let items = self.waiting.get_mut(&of)?;
        let item = items.pop_front()?;
        if items.is_empty() {
            self.waiting.remove(&of);
        } else {
            self.order.push_back(of.clone());
        }
        Some((of, item))
    }

    /// Removes the first item of a sender for which `is_such` holds.
    pub(crate) fn remove(&mut self, of: &str, is_such: impl FnMut(&T) -> bool) {
        let Some(items) = self.waiting.get_mut(of) else { return };
        if let Some(at) = items.iter().position(is_such) {
            items.remove(at);
        }
        if items.is_empty() {
            self.waiting.remove(of);
            self.order.retain(|other| other != of);
        }
    }

    /// Counts the items of a sender that wait.
    pub(crate) fn count(&self, of: &str) -> usize {
        self.waiting.get(of).map_or(0, VecDeque::len)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}
