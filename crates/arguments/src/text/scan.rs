//! The structure: objects, arrays, what stands between their members.

use redial_proto::{Language, Repair, RepairKind, limits::MAX_DEPTH, repair::MAX_REPAIRS};

use super::{
    fault::{Fault, change, place},
    frame::{Frame, Next},
};
use crate::{pointer, words::pick};

/// Reads a text once and writes the JSON that it stands for.
pub(super) struct Scan<'a> {
    pub(super) text: &'a str,
    /// Bytes that were read.
    pub(super) at: usize,
    pub(super) out: String,
    frames: Vec<Frame>,
    repairs: Vec<Repair>,
    /// Of faults.
    pub(super) language: Language,
}

impl<'a> Scan<'a> {
    /// `repairs`: those that led to this text.
    pub(super) fn new(text: &'a str, repairs: Vec<Repair>, language: Language) -> Self {
        Self { text, at: 0, out: String::with_capacity(text.len()), frames: Vec::new(), repairs, language }
    }

    /// What was written, and every change.
    pub(super) fn done(self) -> (String, Vec<Repair>) {
        (self.out.trim().to_owned(), self.repairs)
    }

    /// One value with everything in it.
    pub(super) fn value(&mut self) -> Result<(), Fault> {
        self.begin_value()?;
        while let Some(frame) = self.frames.last() {
            let (next, closer) = (frame.next, frame.closer);
            self.blanks()?;
            let Some(c) = self.peek() else { return Err(self.cut_off()) };
            match (next, c) {
                (_, '`') if self.rest().starts_with("```") => Err(Fault { offset: self.at, ..self.cut_off() }),
                (Next::FirstOrEnd, c) if c == closer => self.close(),
                (Next::Member, c) if c == closer => {
                    self.drop_comma()?;
                    self.close()
                }
                (Next::CommaOrEnd, c) if c == closer => self.close(),
                (Next::CommaOrEnd, ',' | '，') => self.comma(c),
                (Next::CommaOrEnd, _) => Err(self.unexpected_after_value(c)),
                (Next::FirstOrEnd | Next::Member, _) => self.member(),
            }?;
        }
        Ok(())
    }

    fn begin_value(&mut self) -> Result<(), Fault> {
        let start = self.out.len();
        if let Some(frame) = self.frames.last_mut() {
            frame.value = start;
        }
        match self.peek() {
            None => Err(self.cut_off()),
            Some(opener @ ('{' | '[')) => {
                if self.frames.len() >= MAX_DEPTH {
                    return Err(self
                        .fault(format!("nested deeper than {MAX_DEPTH} levels"), format!("嵌套超过 {MAX_DEPTH} 层")));
                }
                self.frames.push(Frame::new(opener, self.at));
                self.copy(opener.len_utf8());
                Ok(())
            }
            Some('"' | '\'' | '“' | '‘') => self.string().and_then(|()| self.end_value()),
            Some(_) => self.bare_value().and_then(|()| self.end_value()),
        }
    }

    /// A value is whole. The same member twice is one if both have the same text, else nobody knows which was meant.
    fn end_value(&mut self) -> Result<(), Fault> {
        let end = self.out.len();
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        frame.next = Next::CommaOrEnd;
        frame.count += 1;
        if !frame.is_object() {
            return Ok(());
        }
        let value = frame.value..end;
        let Some(first) = frame.members.get(&frame.key) else {
            frame.members.insert(frame.key.clone(), value);
            return Ok(());
        };
        if self.out[first.clone()] != self.out[value] {
            return Err(self.fault(
                "the same key stands there before with another value; each key may be there once",
                "同一个键在前面已经出现过，而且值不同；每个键只能出现一次",
            ));
        }
        let ((comma, from), at) = (frame.comma, self.at);
        self.out.truncate(from);
        let text = self.text;
        self.record(RepairKind::DuplicateKey, comma, &text[comma..at], "")
    }

    fn member(&mut self) -> Result<(), Fault> {
        if self.frames.last().is_some_and(Frame::is_object) {
            let key = self.key()?;
            if let Some(frame) = self.frames.last_mut() {
                frame.key = key;
            }
            self.blanks()?;
            self.colon()?;
            self.blanks()?;
        }
        self.begin_value()
    }

    fn colon(&mut self) -> Result<(), Fault> {
        match self.peek() {
            Some(':') => self.copy(1),
            Some('：') => self.replace(RepairKind::Punctuation, "：".len(), ":")?,
            None => return Err(self.cut_off()),
            Some(c) => {
                return Err(self.fault(
                    format!("a colon is needed after the key, not {c:?}"),
                    format!("键之后需要冒号，而不是 {c:?}"),
                ));
            }
        }
        Ok(())
    }

    fn comma(&mut self, comma: char) -> Result<(), Fault> {
        let place = (self.at, self.out.len());
        if let Some(frame) = self.frames.last_mut() {
            frame.comma = place;
            frame.next = Next::Member;
            frame.key.clear();
        }
        if comma == ',' {
            self.copy(1);
            return Ok(());
        }
        self.replace(RepairKind::Punctuation, comma.len_utf8(), ",")
    }

    /// The comma before the end of an array or object. Only blanks follow it in the output.
    fn drop_comma(&mut self) -> Result<(), Fault> {
        let Some((at, written)) = self.frames.last().map(|frame| frame.comma) else { return Ok(()) };
        self.out.remove(written);
        self.record(RepairKind::TrailingComma, at, ",", "")
    }

    fn close(&mut self) -> Result<(), Fault> {
        self.copy(1);
        self.frames.pop();
        self.end_value()
    }

    /// Copies the next bytes as they are.
    pub(super) fn copy(&mut self, bytes: usize) {
        self.out.push_str(&self.text[self.at..self.at + bytes]);
        self.at += bytes;
    }

    /// Writes something else for the next bytes.
    pub(super) fn replace(&mut self, kind: RepairKind, bytes: usize, by: &str) -> Result<(), Fault> {
        let (text, start) = (self.text, self.at);
        self.out.push_str(by);
        self.at += bytes;
        self.record(kind, start, &text[start..self.at], by)
    }

    pub(super) fn record(&mut self, kind: RepairKind, offset: usize, before: &str, after: &str) -> Result<(), Fault> {
        if self.repairs.len() >= MAX_REPAIRS {
            return Err(self.fault(
                format!("more than {MAX_REPAIRS} repairs would be needed, and that is too many"),
                format!("需要修复的地方超过 {MAX_REPAIRS} 处，太多了"),
            ));
        }
        self.repairs.push(change(kind, offset, before, after));
        Ok(())
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// A fault right here.
    pub(super) fn fault(&self, english: impl Into<String>, chinese: impl Into<String>) -> Fault {
        let what = pick(self.language, english, chinese);
        Fault { offset: self.at, inside: self.pointer(), what, cut_off: false }
    }

    /// The text ends here, and should not.
    pub(super) fn cut_off(&self) -> Fault {
        let fault = match self.frames.last() {
            Some(frame) => {
                let (begin, name) = (place(self.text, frame.opened, self.language), frame.name(self.language));
                self.fault(
                    format!("the {name} that begins at {begin} has no end"),
                    format!("从{begin}开始的{name}没有结尾"),
                )
            }
            None => self.fault("a JSON object is needed here", "这里需要一个 JSON 对象"),
        };
        Fault { offset: self.text.len(), cut_off: true, ..fault }
    }

    fn unexpected_after_value(&self, c: char) -> Fault {
        let Some(frame) = self.frames.last() else {
            return self.fault("nothing more is needed", "后面不应再有内容");
        };
        let closer = frame.closer;
        match c {
            '}' | ']' => {
                let (begin, name) = (place(self.text, frame.opened, self.language), frame.name(self.language));
                self.fault(
                    format!("{closer:?} is needed to end the {name} of {begin}, not {c:?}"),
                    format!("{begin}的{name}需要以 {closer:?} 结尾，而不是 {c:?}"),
                )
            }
            _ => self.fault(
                format!(
                    "a comma or {closer:?} is needed after a value, not {c:?}; quotes inside of a text are written \\\""
                ),
                format!("值之后需要逗号或 {closer:?}，而不是 {c:?}；文本中的引号应写作 \\\""),
            ),
        }
    }

    /// The value that is being read.
    fn pointer(&self) -> String {
        self.frames.iter().fold(String::new(), |path, frame| match frame.is_object() {
            true if frame.key.is_empty() => path,
            true => pointer::join(&path, &frame.key),
            false => format!("{path}/{}", frame.count),
        })
    }
}
