//! The trace context that travels with messages: the header `traceparent` of W3C Trace Context.

/// Length of `00-<32 hex>-<16 hex>-<2 hex>`.
const LENGTH: usize = 55;

/// The trace context that a header holds; `None` for any other text, which must be ignored: a header comes from outside,
/// can hold any bytes, and goes into rows, headers and environments.
///
/// Version 00 is exactly `00-<32 hex>-<16 hex>-<2 hex>`, lower case, ids not zero. Later versions begin in the same way and
/// may have more after a `-`, which is cut off; version `ff` is forbidden (W3C Trace Context, section 3.2.2).
pub fn read(text: &str) -> Option<&str> {
    let (context, rest) = text.split_at_checked(LENGTH)?;
    let mut fields = context.split('-');
    let mut field = |length| {
        let field = fields.next()?;
        (field.len() == length && field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))).then_some(field)
    };
    let (version, trace, span, _flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
    let is_zero = |id: &str| id.bytes().all(|byte| byte == b'0');
    let rest_fits = rest.is_empty() || (version != "00" && rest.starts_with('-'));
    (version != "ff" && rest_fits && !is_zero(trace) && !is_zero(span)).then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_trace_context_is_read() {
        assert_eq!(read(GOOD), Some(GOOD));
        let later = format!("cc{}", &GOOD[2..]);
        assert_eq!(read(&later), Some(later.as_str()));
        assert_eq!(
            read(&format!("{later}-more\0{}", "x".repeat(100_000))),
            Some(later.as_str()),
            "what follows is cut off"
        );
    }

    #[test]
    fn any_other_text_is_ignored() {
        let bad = [
            String::new(),
            "00".to_owned(),
            GOOD.to_uppercase(),
            format!("{GOOD}-more"),
            format!("{GOOD}0"),
            format!("{GOOD}\0"),
            format!("cc{}0", &GOOD[2..]),
            format!(" {GOOD}"),
            format!("ff{}", &GOOD[2..]),
            GOOD.replace("0af7", "0\0f7"),
            GOOD.replace("0af7", "0zf7"),
            GOOD.replace("0af7", "0af"),
            GOOD.replace('-', "_"),
            GOOD.replace("-01", "-1"),
            GOOD.replace("-01", "-+1"),
            GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            GOOD.replace("0af7651916cd43dd8448eb211c80319c", "é".repeat(16).as_str()),
            "é".repeat(40),
        ];
        for text in bad {
            assert_eq!(read(&text), None, "{text:?}");
        }
    }
}
