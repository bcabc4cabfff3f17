//! Text that is nearly JSON → the JSON text that it stands for. Nothing is invented, dropped or guessed: where two
//! readings are possible, or something is missing, the text is refused with the place and the reason.
//!
//! [`scan::Scan`] copies what is valid byte for byte and writes down each change. It is one pass from left to right
//! with a stack of its own: linear time, and no nesting can overflow the thread's stack.

mod fault;
mod frame;
mod scan;
mod string;
mod token;
mod wrap;

use redial_proto::{Language, Repair, RepairKind};

use self::{fault::Fault, scan::Scan};
use crate::{
    parse::{any_value, check_size, not_an_object},
    refusal::Refusal,
    words::pick,
};

/// A string in a string in a string: more layers than this nobody means.
const MAX_LAYERS: usize = 3;

/// The JSON text of an object that `raw` stands for, and what was changed to get there.
pub(crate) fn repair(raw: &str, language: Language) -> Result<(String, Vec<Repair>), Refusal> {
    let mut text = raw.to_owned();
    let mut repairs = Vec::new();
    for layer in 0..=MAX_LAYERS {
        check_size(&text, language)?;
        let mut scan = Scan::new(&text, repairs, language);
        scan.document().map_err(|fault| refusal(&fault, &text, layer, language))?;
        let (json, mut made) = scan.done();
        if json.starts_with('{') {
            return Ok((json, made));
        }
        let value = any_value(&json, language)?;
        let Some(inner) = value.as_str().filter(|inner| inner.contains('{')) else {
            return Err(not_an_object(&value, language));
        };
        let inner = inner.to_owned();
        made.push(fault::change(RepairKind::DoubleEncoded, 0, &text, &inner));
        (text, repairs) = (inner, made);
    }
    Err(Refusal::malformed(pick(
        language,
        format!("the arguments are strings in strings, more than {MAX_LAYERS} deep"),
        format!("参数是层层嵌套的字符串，超过 {MAX_LAYERS} 层"),
    )))
}

fn refusal(fault: &Fault, text: &str, layer: usize, language: Language) -> Refusal {
    match any_value(text, language) {
        Ok(value) if !value.is_object() => not_an_object(&value, language),
        _ => fault.refusal(text, layer > 0, language),
    }
}
