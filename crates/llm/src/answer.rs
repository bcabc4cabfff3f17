//! The bytes of an answer → a reply. Pure.

use redial_proto::{
    ErrorClass, Failure, TurnReply, TurnRequest,
    limits::{self, MAX_OUTPUT},
};
use serde_json::Value;

use crate::{
    api::{Api, Piece, Stream},
    http::{Events, failure},
    limit,
};

/// serde_json reads no deeper than 128 levels; a body has a few of its own.
const MAX_DEPTH: usize = 120;
/// Bytes of a stream that are read; each piece of a few letters has some hundred bytes around it.
const MAX_STREAM: usize = 64 * MAX_OUTPUT;

/// A body, all at hand.
pub(crate) fn read(api: Api, request: &TurnRequest, body: &[u8], streamed: bool) -> Result<TurnReply, Failure> {
    if streamed { events(api, request, body) } else { whole(api, request, body) }
}

/// A body that came at once.
pub(crate) fn whole(api: Api, request: &TurnRequest, body: &[u8]) -> Result<TurnReply, Failure> {
    match serde_json::from_slice::<Value>(body) {
        Ok(body) => of_body(api, request, &body),
        Err(_) if limits::json_depth(&String::from_utf8_lossy(body)) > MAX_DEPTH => Ok(too_deep()),
        Err(_) => Err(failure::no_json(body)),
    }
}

/// A body that came in events, all at hand.
fn events(api: Api, request: &TurnRequest, body: &[u8]) -> Result<TurnReply, Failure> {
    let mut streamed = Streamed::new(api);
    streamed.take(body, &mut |_| ())?;
    streamed.end(request, Some(failure::broke_off()))
}

/// An answer of which events are still coming.
pub(crate) struct Streamed {
    api: Api,
    events: Events,
    stream: Stream,
    /// Bytes until now.
    read: usize,
    /// What was said until now, to show if it becomes too long.
    said: String,
    over: Option<TurnReply>,
}

/// Whether more is wanted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    More,
    Enough,
}

impl Streamed {
    pub(crate) fn new(api: Api) -> Self {
        let (events, stream) = (Events::default(), api.stream());
        Self { api, events, stream, read: 0, said: String::new(), over: None }
    }

    /// Takes some bytes of the stream, cut anywhere.
    pub(crate) fn take(&mut self, bytes: &[u8], watch: &mut (dyn FnMut(Piece) + Send)) -> Result<Taken, Failure> {
        self.read += bytes.len();
        let events = self.events.feed(bytes);
        for data in events.into_iter().filter(|data| !data.trim().is_empty()) {
            if data.trim() == "[DONE]" {
                return Ok(Taken::Enough);
            }
            let Ok(event) = serde_json::from_str::<Value>(&data) else {
                if limits::json_depth(&data) > MAX_DEPTH {
                    self.over = Some(too_deep());
                    return Ok(Taken::Enough);
                }
                return Err(failure::no_json(data.as_bytes()));
            };
            let piece = self.stream.event(&event)?;
            self.said.push_str(&piece.text);
            if piece != Piece::default() {
                watch(piece);
            }
        }
        if self.read > MAX_STREAM || self.stream.size() > MAX_OUTPUT || self.events.waiting() > MAX_OUTPUT * 2 {
            self.over = Some(limit::too_long(&self.said));
            return Ok(Taken::Enough);
        }
        Ok(Taken::More)
    }

    /// The reply, once nothing more comes; `why` says why if nobody said that it was the end.
    pub(crate) fn end(self, request: &TurnRequest, why: Option<Failure>) -> Result<TurnReply, Failure> {
        if let Some(over) = self.over {
            return Ok(over);
        }
        let silent = self.stream.size() == 0;
        match why.or_else(|| silent.then(failure::broke_off)).filter(|_| !self.stream.complete()) {
            Some(failure) => Err(failure),
            None => of_body(self.api, request, &self.stream.body()),
        }
    }
}

fn of_body(api: Api, request: &TurnRequest, body: &Value) -> Result<TurnReply, Failure> {
    if let Some(error) = body.get("error").filter(|error| !error.is_null() && body.get("choices").is_none()) {
        return Err(failure::told(error));
    }
    api.reply(request, body).ok_or_else(|| {
        Failure::new(ErrorClass::Unavailable, "the provider answered with JSON that is no answer of a model")
    })
}

fn too_deep() -> TurnReply {
    let problem = format!("The answer nests deeper than {} levels. Answer again, flatter.", limits::MAX_DEPTH);
    TurnReply { problem: Some(problem), ..TurnReply::default() }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::select};
    use redial_proto::TaskId;

    use super::*;

    /// JSON of the words that answers are made of, in every order but the right one.
    fn strange() -> impl Strategy<Value = Value> {
        const KEYS: &str = "choices message delta content tool_calls function name arguments index id finish_reason \
            usage prompt_tokens error code type content_block input text partial_json stop_reason thinking signature";
        const WORDS: &str = "{ {} text tool_use thinking text_delta input_json_delta signature_delta \
            content_block_start content_block_delta message_start message_delta message_stop";
        let one_of = |words: &'static str| select(words.split_whitespace().collect::<Vec<_>>());
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            (0_u64..3).prop_map(Value::from),
            one_of(WORDS).prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 40, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::vec((one_of(KEYS), inner), 0..6)
                    .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            ]
        })
    }

    /// A body or event that is right at its top.
    fn half_right() -> impl Strategy<Value = Value> {
        let parts = (strange(), strange(), strange(), select(&["content_block_start", "content_block_delta"][..]));
        parts.prop_map(|(message, delta, block, kind)| {
            serde_json::json!({"choices": [{"message": message, "delta": delta}], "content": [block, delta],
                "type": kind, "content_block": block, "delta": delta})
        })
    }

    proptest! {
        #[test]
        fn no_answer_is_too_strange(bodies in proptest::collection::vec(prop_oneof![strange(), half_right()], 1..5)) {
            let request = crate::thread::tests::request(TaskId::generate());
            let lines: Vec<String> = bodies.iter().map(|body| format!("data: {body}\n\n")).collect();
            for api in [Api::OpenAi, Api::Anthropic] {
                for body in &bodies {
                    let _ = whole(api, &request, body.to_string().as_bytes());
                }
                let at_once = events(api, &request, lines.concat().as_bytes());
                let mut streamed = Streamed::new(api);
                let bytes = lines.concat();
                let taken = bytes.as_bytes().chunks(7).try_for_each(|bytes| streamed.take(bytes, &mut |_| ()).map(|_| ()));
                let in_pieces = taken.and_then(|()| streamed.end(&request, Some(failure::broke_off())));
                prop_assert_eq!(at_once, in_pieces);
            }
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..200), events: bool) {
            let request = crate::thread::tests::request(TaskId::generate());
            let read = if events { super::events } else { whole };
            let _ = read(Api::OpenAi, &request, &bytes);
        }
    }
}
