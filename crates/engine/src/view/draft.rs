//! A view in the making: what it holds, how much that is, and how it becomes less.

use std::collections::BTreeSet;

use redial_proto::{Language, Message, Role, StoredMessage, Trimmed};

use super::{
    cut::{self, Form},
    groups::{Groups, collect},
    limits::Limits,
    size::Size,
};

/// Bytes of an old tool result that is cut to its beginning.
const OLD_RESULT: usize = 400;
/// No text is cut to less.
const LEAST: usize = 200;

/// A message of the view.
struct Entry {
    message: Message,
    /// The whole text, if the message holds less.
    whole: Option<String>,
    size: Size,
}

impl Entry {
    fn new(message: Message) -> Self {
        Self { size: Size::of(&message), message, whole: None }
    }

    fn whole(&self) -> &str {
        self.whole.as_deref().unwrap_or(&self.message.content)
    }

    /// Cuts the text to so many bytes, always from the whole.
    fn cut(&mut self, form: Form) {
        let shorter = match (self.message.role, &self.message.call_id) {
            (Role::Tool, Some(id)) => cut::result(self.whole(), id, form),
            _ => cut::text(self.whole(), form),
        };
        let Some(shorter) = shorter else { return };
        let before = std::mem::replace(&mut self.message.content, shorter);
        self.whole.get_or_insert(before);
        self.size = Size::of(&self.message);
    }
}

/// What is shortened together when nothing more can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Results,
    Thoughts,
    Answers,
    Users,
    System,
}

pub(super) struct Draft {
    system: Option<Entry>,
    /// What stays or goes together.
    groups: Vec<Vec<Entry>>,
    size: Size,
    limits: Limits,
    /// Of the notes.
    language: Language,
    left_out: usize,
}

impl Draft {
    pub(super) fn new(messages: &[StoredMessage], pruned: &BTreeSet<String>, limits: Limits) -> Self {
        let Groups { system, groups } = collect(messages, pruned);
        let system = system.map(Entry::new);
        let groups: Vec<Vec<Entry>> =
            groups.into_iter().map(|group| group.into_iter().map(Entry::new).collect()).collect();
        let mut size = Size { tokens: 0, bytes: "[".len() };
        system.iter().chain(groups.iter().flatten()).for_each(|entry| size.add(entry.size));
        let asked = groups.iter().flatten().rev().find(|entry| is_from_user(entry));
        let language = asked.map(|entry| Language::of(&entry.message.content)).unwrap_or_default();
        Self { system, groups, size, limits, language, left_out: 0 }
    }

    /// Cuts each tool result that is over its own limit.
    pub(super) fn shape_results(&mut self) {
        let form = self.form(self.limits.result_bytes as usize);
        for group in 0..self.groups.len() {
            self.cut_group(group, form, |entry| entry.message.role == Role::Tool);
        }
    }

    /// Cuts tool results to their beginnings, oldest first, but for those at the end.
    pub(super) fn shorten_old_results(&mut self) {
        let form = Form { tail: false, ..self.form(OLD_RESULT.min(self.limits.result_bytes as usize)) };
        for group in 0..self.groups.len().saturating_sub(1) {
            if self.fits() {
                return;
            }
            self.cut_group(group, form, |entry| entry.message.role == Role::Tool);
        }
    }

    /// Leaves out whole groups, oldest first; the end and what the user said last stay.
    pub(super) fn leave_out_oldest(&mut self) {
        if self.fits() {
            return;
        }
        let note = Entry::new(Message { by_redial: true, ..Message::text(Role::User, cut::left_out(self.language)) });
        let last = self.groups.len().saturating_sub(1);
        let asked = self.groups.iter().rposition(|group| group.iter().any(is_from_user));
        let mut kept = Vec::with_capacity(self.groups.len());
        for (n, group) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            if n == last || Some(n) == asked || self.fits() {
                kept.push(group);
                continue;
            }
            if self.left_out == 0 {
                self.size.add(note.size);
            }
            self.left_out += group.len();
            for entry in &group {
                self.size.subtract(entry.size);
            }
        }
        if self.left_out > 0 {
            kept.insert(0, vec![note]);
        }
        self.groups = kept;
    }

    /// Shortens what is left until it fits, what can best be missed first.
    pub(super) fn shorten_rest(&mut self) {
        for part in [Part::Results, Part::Thoughts, Part::Answers, Part::Users, Part::System] {
            let longest = self.entries().filter(|entry| part.holds(entry)).map(|entry| part.length(entry)).max();
            let mut most = longest.unwrap_or_default();
            while !self.fits() && most > LEAST {
                // Each pass costs what is left of the texts, so that all passes together are linear.
                most = (most / 4 * 3).max(LEAST);
                self.shorten_part(part, most);
            }
        }
    }

    fn shorten_part(&mut self, part: Part, most: usize) {
        let form = self.form(most);
        let Self { system, groups, size, .. } = self;
        for entry in system.iter_mut().chain(groups.iter_mut().flatten()).filter(|entry| part.holds(entry)) {
            size.subtract(entry.size);
            part.shorten(entry, form);
            size.add(entry.size);
        }
    }

    /// The view, and what it is not.
    pub(super) fn done(self) -> (Vec<Message>, Trimmed) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let is_cut = |entry: &&Entry| entry.message.role == Role::Tool && entry.whole.is_some();
        let trimmed = Trimmed {
            tokens: count(self.size.tokens),
            shortened: count(self.entries().filter(is_cut).count()),
            left_out: count(self.left_out),
        };
        let messages = self.system.into_iter().chain(self.groups.into_iter().flatten()).map(|entry| entry.message);
        (messages.collect(), trimmed)
    }

    fn fits(&self) -> bool {
        self.size.tokens <= self.limits.context_tokens as usize && self.size.bytes <= self.limits.bytes
    }

    fn form(&self, most: usize) -> Form {
        Form { most, tail: true, language: self.language }
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.system.iter().chain(self.groups.iter().flatten())
    }

    fn cut_group(&mut self, group: usize, form: Form, which: impl Fn(&Entry) -> bool) {
        for entry in self.groups[group].iter_mut().filter(|entry| which(entry)) {
            self.size.subtract(entry.size);
            entry.cut(form);
            self.size.add(entry.size);
        }
    }
}

impl Part {
    fn holds(self, entry: &Entry) -> bool {
        match self {
            Self::Results => entry.message.role == Role::Tool,
            Self::Thoughts => entry.message.thought.is_some(),
            Self::Answers => entry.message.role == Role::Assistant,
            Self::Users => entry.message.role == Role::User,
            Self::System => entry.message.role == Role::System,
        }
    }

    /// Bytes of the longest text of this part.
    fn length(self, entry: &Entry) -> usize {
        let message = &entry.message;
        match self {
            // They go at once.
            Self::Thoughts => LEAST + 1,
            Self::Answers => {
                message.calls.iter().map(|call| call.arguments.len()).fold(message.content.len(), usize::max)
            }
            Self::Results | Self::Users | Self::System => message.content.len(),
        }
    }

    fn shorten(self, entry: &mut Entry, form: Form) {
        match self {
            Self::Thoughts => entry.message.thought = None,
            Self::Answers => {
                for call in &mut entry.message.calls {
                    if let Some(shorter) = cut::arguments(call, form.most) {
                        call.arguments = shorter;
                    }
                }
                entry.cut(form);
            }
            Self::Results | Self::Users | Self::System => entry.cut(form),
        }
        entry.size = Size::of(&entry.message);
    }
}

fn is_from_user(entry: &Entry) -> bool {
    entry.message.role == Role::User && !entry.message.by_redial
}
