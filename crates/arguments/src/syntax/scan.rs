//! The structure of a document: objects, arrays, and the separators between their members.

use std::ops::Range;

use redial_proto::{
    Advice, Language, Limited, Repair, RepairKind,
    limits::{MAX_DEPTH, json_depth},
    repair::MAX_REPAIRS,
};
use serde_json::{Map, Value};

use super::{
    error::{SyntaxError, change, position},
    frame::{Frame, Next},
};
use crate::{language::pick, pointer};

/// Reads a text once and writes it as valid JSON.
pub(super) struct Scan<'a> {
    pub(super) text: &'a str,
    /// Offset of the next byte to read.
    pub(super) at: usize,
    pub(super) out: String,
    frames: Vec<Frame>,
    repairs: Vec<Repair>,
    /// The range of the last comment that ends with its line, in the text.
    pub(super) last_comment: Range<usize>,
    /// Words around the object may be left out.
    pub(super) takes_words: bool,
    pub(super) language: Language,
}

impl<'a> Scan<'a> {
    /// Starts a scan. `repairs`: the repairs that led to this text.
    pub(super) fn new(text: &'a str, repairs: Vec<Repair>, language: Language) -> Self {
        Self {
            text,
            at: 0,
            out: String::with_capacity(text.len()),
            frames: Vec::new(),
            repairs,
            last_comment: 0..0,
            takes_words: false,
            language,
        }
    }

    /// Returns the output and every repair.
    pub(super) fn done(self) -> (String, Vec<Repair>) {
        (self.out.trim().to_owned(), self.repairs)
    }

    /// Returns the members of the outermost object that were read for sure: each is followed by a comma, and its key
    /// appears once. For a text that could not be read to its end.
    pub(super) fn sure_members(&self) -> Map<String, Value> {
        let Some(frame) = self.frames.first().filter(|frame| frame.is_object()) else { return Map::new() };
        let before_comma = |range: &Range<usize>| range.end <= frame.comma.1;
        let mut members: Vec<(&String, &Range<usize>)> =
            frame.members.iter().filter(|(key, range)| before_comma(range) && **key != frame.key).collect();
        members.sort_unstable_by_key(|(_, range)| range.start);
        let value = |range: &Range<usize>| self.out.get(range.clone()).and_then(|json| serde_json::from_str(json).ok());
        members.into_iter().filter_map(|(key, range)| Some((key.clone(), value(range)?))).collect()
    }

    /// Reads one value with all its members.
    pub(super) fn value(&mut self) -> Result<(), SyntaxError> {
        self.begin_value()?;
        while let Some(frame) = self.frames.last() {
            let (next, closer) = (frame.next, frame.closer);
            self.whitespace()?;
            let Some(c) = self.peek() else { return Err(self.cut_off()) };
            match (next, c) {
                (_, '`') if self.rest().starts_with("```") => Err(SyntaxError { offset: self.at, ..self.unclosed() }),
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

    fn begin_value(&mut self) -> Result<(), SyntaxError> {
        let start = self.out.len();
        if let Some(frame) = self.frames.last_mut() {
            frame.value = start;
        }
        match self.peek() {
            None => Err(self.cut_off()),
            Some(opener @ ('{' | '[')) => {
                if self.frames.len() >= MAX_DEPTH {
                    let error = self
                        .error(format!("nested deeper than {MAX_DEPTH} levels"), format!("嵌套超过 {MAX_DEPTH} 层"));
                    let advice = Advice::over(Limited::Levels, MAX_DEPTH, json_depth(self.text));
                    return Err(SyntaxError { advice, ..error });
                }
                self.frames.push(Frame::new(opener, self.at));
                self.copy(opener.len_utf8());
                Ok(())
            }
            Some('"' | '\'' | '“' | '‘') => self.string().and_then(|()| self.end_value()),
            Some(_) => self.bare_value().and_then(|()| self.end_value()),
        }
    }

    /// Ends a value. A repeated member is dropped if both values have the same text; otherwise it is ambiguous which was
    /// meant.
    fn end_value(&mut self) -> Result<(), SyntaxError> {
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
            return Err(self.error(
                "the same key appears before with another value; each key may appear only once",
                "同一个键在前面已经出现过，而且值不同；每个键只能出现一次",
            ));
        }
        let ((comma, from), at) = (frame.comma, self.at);
        self.out.truncate(from);
        let text = self.text;
        self.record(RepairKind::DuplicateKey, comma, &text[comma..at], "")
    }

    fn member(&mut self) -> Result<(), SyntaxError> {
        if self.frames.last().is_some_and(Frame::is_object) {
            let key = self.key()?;
            if let Some(frame) = self.frames.last_mut() {
                frame.key = key;
            }
            self.whitespace()?;
            self.colon()?;
            self.whitespace()?;
        }
        self.begin_value()
    }

    fn colon(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            Some(':') => self.copy(1),
            Some('：') => self.replace(RepairKind::Punctuation, "：".len(), ":")?,
            None => return Err(self.cut_off()),
            Some(c) => {
                return Err(self.error(
                    format!("a colon is needed after the key, not {c:?}"),
                    format!("键之后需要冒号，而不是 {c:?}"),
                ));
            }
        }
        Ok(())
    }

    fn comma(&mut self, comma: char) -> Result<(), SyntaxError> {
        let offsets = (self.at, self.out.len());
        if let Some(frame) = self.frames.last_mut() {
            frame.comma = offsets;
            frame.next = Next::Member;
            frame.key.clear();
        }
        if comma == ',' {
            self.copy(1);
            return Ok(());
        }
        self.replace(RepairKind::Punctuation, comma.len_utf8(), ",")
    }

    /// Removes the comma before the end of an array or object. Only whitespace follows it in the output.
    fn drop_comma(&mut self) -> Result<(), SyntaxError> {
        let Some((at, written)) = self.frames.last().map(|frame| frame.comma) else { return Ok(()) };
        self.out.remove(written);
        self.record(RepairKind::TrailingComma, at, ",", "")
    }

    fn close(&mut self) -> Result<(), SyntaxError> {
        self.copy(1);
        self.frames.pop();
        self.end_value()
    }

    /// Copies the next bytes as they are.
    pub(super) fn copy(&mut self, bytes: usize) {
        self.out.push_str(&self.text[self.at..self.at + bytes]);
        self.at += bytes;
    }

    /// Writes `by` instead of the next bytes.
    pub(super) fn replace(&mut self, kind: RepairKind, bytes: usize, by: &str) -> Result<(), SyntaxError> {
        let (text, start) = (self.text, self.at);
        self.out.push_str(by);
        self.at += bytes;
        self.record(kind, start, &text[start..self.at], by)
    }

    pub(super) fn record(
        &mut self,
        kind: RepairKind,
        offset: usize,
        before: &str,
        after: &str,
    ) -> Result<(), SyntaxError> {
        if self.repairs.len() >= MAX_REPAIRS {
            let error = self.error(
                format!("more than {MAX_REPAIRS} repairs would be needed"),
                format!("需要修复的地方超过 {MAX_REPAIRS} 处"),
            );
            let advice = Advice::over(Limited::Repairs, MAX_REPAIRS, MAX_REPAIRS + 1);
            return Err(SyntaxError { advice, ..error });
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

    /// Makes an error at the current position.
    pub(super) fn error(&self, english: impl Into<String>, chinese: impl Into<String>) -> SyntaxError {
        let what = pick(self.language, english, chinese);
        SyntaxError { offset: self.at, inside: self.pointer(), what, advice: Advice::Place }
    }

    /// Makes the error of a text that ends before the document does.
    pub(super) fn cut_off(&self) -> SyntaxError {
        let comment = &self.last_comment;
        if !comment.is_empty()
            && self.text[comment.end..].trim().is_empty()
            && let Some(error) = self.hidden_by(comment.start)
        {
            return error;
        }
        SyntaxError { offset: self.text.len(), advice: Advice::CutOff, ..self.unclosed() }
    }

    /// Makes the error of a comment without an end.
    pub(super) fn endless_comment(&self) -> SyntaxError {
        self.hidden_by(self.at).unwrap_or_else(|| self.cut_off())
    }

    /// Makes the error of a comment at this offset that reaches up to the end of the text, and holds the bracket that
    /// is missing.
    fn hidden_by(&self, comment: usize) -> Option<SyntaxError> {
        let closer = self.frames.last()?.closer;
        if !self.text[comment..].contains(closer) {
            return None;
        }
        let hidden = self.unclosed().what;
        let what = pick(
            self.language,
            format!("the comment that begins here hides the end, so {hidden}; send the arguments without comments"),
            format!("从这里开始的注释把结尾也注释掉了，因此{hidden}；请不要在参数中写注释"),
        );
        Some(SyntaxError { offset: comment, what, inside: self.pointer(), advice: Advice::Comment })
    }

    fn unclosed(&self) -> SyntaxError {
        match self.frames.last() {
            Some(frame) => {
                let (begin, name) = (position(self.text, frame.opened, self.language), frame.name(self.language));
                self.error(
                    format!("the {name} that begins at {begin} is not closed"),
                    format!("从{begin}开始的{name}没有结尾"),
                )
            }
            None => self.error("a JSON object is needed here", "这里需要一个 JSON 对象"),
        }
    }

    fn unexpected_after_value(&self, c: char) -> SyntaxError {
        let Some(frame) = self.frames.last() else {
            return self.error("no more text is expected", "后面不应再有内容");
        };
        let closer = frame.closer;
        match c {
            '}' | ']' => {
                let (begin, name) = (position(self.text, frame.opened, self.language), frame.name(self.language));
                self.error(
                    format!("{closer:?} is needed to close the {name} that begins at {begin}, not {c:?}"),
                    format!("{begin}的{name}需要以 {closer:?} 结尾，而不是 {c:?}"),
                )
            }
            _ => self.error(
                format!(
                    "a comma or {closer:?} is needed after a value, not {c:?}; write a quote inside a string as \\\""
                ),
                format!("值之后需要逗号或 {closer:?}，而不是 {c:?}；文本中的引号应写作 \\\""),
            ),
        }
    }

    /// Returns the JSON pointer to the value that is being read.
    fn pointer(&self) -> String {
        self.frames.iter().fold(String::new(), |path, frame| match frame.is_object() {
            true if frame.key.is_empty() => path,
            true => pointer::join(&path, &frame.key),
            false => format!("{path}/{}", frame.count),
        })
    }
}
