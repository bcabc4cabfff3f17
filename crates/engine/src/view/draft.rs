//! A view in the making: what it holds, how much that is, and how it becomes less.

use std::collections::BTreeSet;

use redial_proto::{Language, Message, Role, Trimmed};
use redial_records::{Cut, ReadConversation};

use super::{
    cut::{self, Form, Text},
    groups::{Groups, Member, collect},
    limits::{Limits, OLD_RESULT, whole_feedback},
    reach,
    size::Size,
};

/// No text is cut to less.
const LEAST: usize = 200;

struct Entry {
    seq: u32,
    message: Message,
    /// The whole text, if the message holds less.
    whole: Option<Whole>,
    /// Feedback at the end of the conversation: what the model has to act on now.
    is_newest_feedback: bool,
    size: Size,
}

/// A text as far as it was read.
struct Whole {
    head: String,
    /// Set if the beginning is not all.
    rest: Option<Cut>,
}

impl Whole {
    fn text(&self) -> Text<'_> {
        match &self.rest {
            None => Text::whole(&self.head),
            Some(rest) => Text { head: &self.head, tail: &rest.tail, bytes: rest.bytes },
        }
    }
}

impl Entry {
    fn new(member: Member<'_>) -> Self {
        let (read, message) = (member.read, member.message);
        let whole = read.cut.clone().map(|rest| Whole { head: message.content.clone(), rest: Some(rest) });
        Self { seq: read.stored.seq, size: Size::of(&message), message, whole, is_newest_feedback: false }
    }

    /// Makes what is said about the conversation before its first message.
    fn note(message: Message) -> Self {
        Self { seq: 0, size: Size::of(&message), message, whole: None, is_newest_feedback: false }
    }

    /// True for feedback of at most so many bytes, which was read as a whole.
    fn is_feedback(&self, most: usize) -> bool {
        let is_failure = self.message.role == Role::Tool && self.message.class.is_some();
        is_failure && self.whole.is_none() && self.message.content.len() <= most
    }

    /// True if only the beginning of the text was read, because no more of it can be shown.
    fn is_beginning(&self) -> bool {
        let rest = self.whole.as_ref().and_then(|whole| whole.rest.as_ref());
        rest.is_some_and(|rest| rest.tail.is_empty())
    }

    /// Cuts the text to so many bytes, always from the whole.
    fn cut(&mut self, form: Form) {
        let whole = self.whole.as_ref().map_or(Text::whole(&self.message.content), Whole::text);
        let shorter = match (self.message.role, &self.message.call_id) {
            (Role::Tool, Some(id)) => cut::result(whole, id, form),
            _ => cut::text(whole, form),
        };
        let Some(shorter) = shorter else { return };
        let before = std::mem::replace(&mut self.message.content, shorter);
        self.whole.get_or_insert(Whole { head: before, rest: None });
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
    NewestFeedback,
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
    pub(super) fn new(read: &ReadConversation, pruned: &BTreeSet<String>, limits: Limits) -> Self {
        let Groups { system, groups } = collect(&read.messages, pruned);
        let system = system.map(Entry::new);
        let mut groups: Vec<Vec<Entry>> =
            groups.into_iter().map(|group| group.into_iter().map(Entry::new).collect()).collect();
        for entry in groups.last_mut().into_iter().flatten() {
            entry.is_newest_feedback = entry.is_feedback(whole_feedback(limits.result_bytes));
        }
        let asked = groups.iter().flatten().rev().find(|entry| is_from_user(entry));
        let language = asked.map(|entry| Language::of(&entry.message.content)).unwrap_or_default();
        let mut draft = Self { system, groups, size: Size::default(), limits, language, left_out: 0 };
        draft.left_out = draft.unread(read.from);
        draft.leave_out_what_is_out_of_reach(read, pruned);
        let mut size = Size { tokens: 0, bytes: "[".len() };
        draft.entries().for_each(|entry| size.add(entry.size));
        Self { size, ..draft }
    }

    /// Counts the messages that were not read. Sequence numbers have no gaps, and what was read of a group without its
    /// first message stands in none.
    fn unread(&self, from: u32) -> usize {
        let first = self.groups.iter().flatten().map(|entry| entry.seq).find(|seq| *seq >= from);
        let first = if from > 1 { first.unwrap_or(from) } else { 1 };
        let known = self.system.iter().chain(self.groups.iter().flatten()).filter(|entry| entry.seq < first).count();
        (first as usize).saturating_sub(1 + known)
    }

    fn leave_out_what_is_out_of_reach(&mut self, read: &ReadConversation, pruned: &BTreeSet<String>) {
        let start = reach::start(&read.messages, pruned, self.limits);
        let Some(first) = read.messages.get(start).map(|first| first.stored.seq).filter(|_| start > 0) else { return };
        let kept = self.always_kept();
        let (kept, left_out): (Vec<_>, Vec<_>) = std::mem::take(&mut self.groups)
            .into_iter()
            .enumerate()
            .partition(|(n, group)| kept.contains(n) || group.first().is_some_and(|entry| entry.seq >= first));
        self.left_out += left_out.iter().map(|(_, group)| group.len()).sum::<usize>();
        self.groups = kept.into_iter().map(|(_, group)| group).collect();
    }

    /// Cuts each tool result that is over its own limit. Where only the beginning of one was read, all up to its group
    /// have to be shortened, because the rest of the conversation and this result alone are too much.
    pub(super) fn shape_results(&mut self) {
        let (form, old) = (self.form(self.limits.result_bytes as usize), self.old_form());
        let known_old = self.groups.iter().rposition(|group| group.iter().any(Entry::is_beginning));
        for group in 0..self.groups.len() {
            let form = if known_old.is_some_and(|last| group <= last) { old } else { form };
            self.cut_results(group, form);
        }
    }

    /// Cuts tool results to their beginnings, oldest first, but for those at the end; all of them before anything may be
    /// left out.
    pub(super) fn shorten_old_results(&mut self) {
        let form = self.old_form();
        for group in 0..self.groups.len().saturating_sub(1) {
            if self.fits() && self.left_out == 0 {
                return;
            }
            self.cut_results(group, form);
        }
    }

    /// Leaves out whole groups, oldest first; the end and what the user said last stay.
    pub(super) fn leave_out_oldest(&mut self) {
        if self.fits() && self.left_out == 0 {
            return;
        }
        let text = Message::text(Role::User, cut::left_out(self.language));
        let note = Entry::note(Message { by_redial: true, ..text });
        if self.left_out > 0 {
            self.size.add(note.size);
        }
        let kept = self.always_kept();
        let mut groups = Vec::with_capacity(self.groups.len());
        for (n, group) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            if kept.contains(&n) || self.fits() {
                groups.push(group);
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
            groups.insert(0, vec![note]);
        }
        self.groups = groups;
    }

    /// Returns the groups of the end, and of what the user said last.
    fn always_kept(&self) -> [usize; 2] {
        let last = self.groups.len().saturating_sub(1);
        let asked = self.groups.iter().rposition(|group| group.iter().any(is_from_user));
        [last, asked.unwrap_or(last)]
    }

    /// Shortens what is left until it fits, what can best be missed first.
    pub(super) fn shorten_rest(&mut self) {
        for part in [Part::Results, Part::Thoughts, Part::Answers, Part::Users, Part::System, Part::NewestFeedback] {
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

    /// Returns the view, and what it is not.
    pub(super) fn done(self) -> (Vec<(u32, Message)>, Trimmed) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let is_cut = |entry: &&Entry| entry.message.role == Role::Tool && entry.whole.is_some();
        let trimmed = Trimmed {
            tokens: count(self.size.tokens),
            shortened: count(self.entries().filter(is_cut).count()),
            left_out: count(self.left_out),
        };
        let entries = self.system.into_iter().chain(self.groups.into_iter().flatten());
        (entries.map(|entry| (entry.seq, entry.message)).collect(), trimmed)
    }

    fn fits(&self) -> bool {
        self.size.tokens <= self.limits.context_tokens as usize && self.size.bytes <= self.limits.bytes
    }

    fn form(&self, most: usize) -> Form {
        Form { most, tail: true, language: self.language }
    }

    /// Returns how an old result is cut.
    fn old_form(&self) -> Form {
        Form { tail: false, ..self.form(OLD_RESULT.min(self.limits.result_bytes) as usize) }
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.system.iter().chain(self.groups.iter().flatten())
    }

    fn cut_results(&mut self, group: usize, form: Form) {
        let whole = Form { most: form.most.max(whole_feedback(self.limits.result_bytes)), ..form };
        for entry in self.groups[group].iter_mut().filter(|entry| entry.message.role == Role::Tool) {
            let form = if entry.is_newest_feedback { whole } else { form };
            self.size.subtract(entry.size);
            entry.cut(form);
            self.size.add(entry.size);
        }
    }
}

impl Part {
    fn holds(self, entry: &Entry) -> bool {
        match self {
            Self::Results => entry.message.role == Role::Tool && !entry.is_newest_feedback,
            Self::NewestFeedback => entry.is_newest_feedback,
            Self::Thoughts => entry.message.thought.is_some(),
            Self::Answers => entry.message.role == Role::Assistant,
            Self::Users => entry.message.role == Role::User,
            Self::System => entry.message.role == Role::System,
        }
    }

    /// Counts the bytes of the longest text of this part.
    fn length(self, entry: &Entry) -> usize {
        let message = &entry.message;
        match self {
            // They go at once.
            Self::Thoughts => LEAST + 1,
            Self::Answers => {
                message.calls.iter().map(|call| call.arguments.len()).fold(message.content.len(), usize::max)
            }
            Self::Results | Self::Users | Self::System | Self::NewestFeedback => message.content.len(),
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
            Self::Results | Self::Users | Self::System | Self::NewestFeedback => entry.cut(form),
        }
        entry.size = Size::of(&entry.message);
    }
}

fn is_from_user(entry: &Entry) -> bool {
    entry.message.role == Role::User && !entry.message.by_redial
}
