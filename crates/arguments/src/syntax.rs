//! Repairs text that is nearly JSON. Nothing is invented, dropped or guessed: where two readings are possible, or
//! something is missing, the text is refused with the position and the reason.
//!
//! [`scan::Scan`] copies valid parts byte for byte and records each change. It makes one pass from left to right with
//! its own stack, so it takes linear time and nesting cannot overflow the thread's stack.

mod error;
mod escaped;
mod fence;
mod frame;
mod scan;
mod string;
mod surroundings;
mod token;

use redial_proto::{Advice, Language, Repair, RepairKind};
use serde_json::{Map, Value};

pub(crate) use self::error::change;
use self::{error::SyntaxError, scan::Scan};
use crate::{
    language::pick,
    parse::{any_value, check_size, not_an_object},
    refusal::Refusal,
};

/// JSON strings inside JSON strings that are unwrapped; models do not nest deeper on purpose.
const MAX_LAYERS: usize = 3;

/// A text that holds no arguments.
pub(crate) struct Unreadable {
    pub(crate) refusal: Refusal,
    /// The members of the object that could be read for sure.
    pub(crate) members: Box<Map<String, Value>>,
}

impl From<Refusal> for Unreadable {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, members: Box::default() }
    }
}

/// Returns the JSON text of the object in `raw`, and the changes that led to it.
pub(crate) fn repair(raw: &str, language: Language) -> Result<(String, Vec<Repair>), Unreadable> {
    check_size(raw, language)?;
    let mut text = raw.to_owned();
    let mut repairs = Vec::new();
    for layer in 0..=MAX_LAYERS {
        check_size(&text, language)?;
        let mut scan = Scan::new(&text, repairs, language);
        // A sentence in a string that holds an object is not arguments.
        scan.takes_words = layer == 0;
        if let Err(error) = scan.document() {
            let members = Box::new(scan.sure_members());
            return Err(Unreadable { refusal: refusal(&error, &text, layer, language), members });
        }
        let (json, mut made) = scan.done();
        if json.starts_with('{') {
            return Ok((json, made));
        }
        let value = any_value(&json, language)?;
        let Some(inner) = value.as_str().filter(|inner| inner.contains('{')) else {
            return Err(not_an_object(&value, language).quoting(&text, None, language).into());
        };
        let inner = inner.to_owned();
        made.push(change(RepairKind::DoubleEncoded, 0, &text, &inner));
        (text, repairs) = (inner, made);
    }
    let message = pick(
        language,
        format!("the arguments are JSON strings inside JSON strings, more than {MAX_LAYERS} deep"),
        format!("参数是层层嵌套的字符串，超过 {MAX_LAYERS} 层"),
    );
    Err(Refusal::malformed(message, Advice::Form).quoting(raw, None, language).into())
}

fn refusal(error: &SyntaxError, text: &str, layer: usize, language: Language) -> Refusal {
    match any_value(text, language) {
        Ok(value) if !value.is_object() => not_an_object(&value, language).quoting(text, None, language),
        _ => error.refusal(text, layer > 0, language),
    }
}
