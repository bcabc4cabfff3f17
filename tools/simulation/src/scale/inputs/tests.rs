use std::{fs, path::Path};

use super::*;

type Derivation = fn(&[f64]) -> f64;

/// How the numbers of its text make a value that is none of them.
const DERIVED: [(Input, Derivation); 8] = [
    // The jitter of a backoff adds up to a half.
    (RECONNECT, |n| 1.5 * n[1]),
    (LOOKED_UP, |n| n[0] / 1e3 / n[1]),
    (WITHOUT_DEAD, |n| n[0] / 1e3),
    (VERSION, |n| (n[0] / 1e3 - WITHOUT_DEAD.value) / n[2]),
    (BEAT, |n| n[0] / 1e3),
    // Of a thousand calls.
    (PER_CALL, |n| n[0] / 1e3),
    (ROLLED_UP, |n| n[0] / n[1] / 2.0),
    // In words.
    (MOVED, |_| 1.5),
];

/// The numbers of a text, in order, with commas or underscores between thousands. Those of a name, such as `i64`, are none.
fn numbers(text: &str) -> Vec<f64> {
    let (mut numbers, mut rest) = (Vec::new(), text);
    while let Some(begin) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let word = &rest[begin..];
        let is_part = |(n, c): &(usize, char)| {
            let within = word[n + c.len_utf8()..].starts_with(|next: char| next.is_ascii_digit());
            c.is_ascii_alphanumeric() || (matches!(c, '.' | ',' | '_') && within)
        };
        let end = word.char_indices().find(|one| !is_part(one)).map_or(word.len(), |(end, _)| end);
        let number: String = word[..end].chars().filter(|c| !matches!(c, ',' | '_')).collect();
        numbers.extend(number.trim_end_matches('s').parse::<f64>());
        rest = &word[end..];
    }
    numbers
}

/// The values that a text can stand for by itself.
fn values(text: &str) -> Vec<f64> {
    let unit = [("from_millis", 1e-3), ("from_mins", 60.0)].into_iter().find(|(name, _)| text.contains(name));
    numbers(text).into_iter().map(|number| number * unit.map_or(1.0, |(_, unit)| unit)).collect()
}

#[test]
fn what_is_declared_or_measured_is_in_its_source_with_its_value() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    for Input { name, basis, source, value } in ALL {
        let (Basis::Declared(text) | Basis::Measured(text)) = basis else { continue };
        let found = fs::read_to_string(root.join(source)).unwrap_or_else(|error| panic!("{source}: {error}"));
        assert!(found.contains(text), "{name}: {source} does not say {text:?} any more");
        let derived = DERIVED.iter().find(|(input, _)| input.name == name);
        let said = derived.map_or_else(|| values(text), |(_, of)| vec![of(&numbers(text))]);
        assert!(
            said.iter().any(|said| (said - value).abs() <= 1e-9 * value),
            "{name} is {value}; {text:?} says {said:?}"
        );
    }
}

#[test]
fn numbers_are_read_from_code_and_from_sentences() {
    assert_eq!(numbers("const MOST: i64 = 1_000_000;"), [1_000_000.0]);
    assert_eq!(numbers("25 ms with 10,000 workers (0.07, 0.13 and"), [25.0, 10_000.0, 0.07, 0.13]);
    assert_eq!(numbers(r#"("lock_timeout", "4s")"#), [4.0]);
    assert_eq!(values("Duration::from_mins(1)"), [60.0]);
}
