//! Damaged documents for decoders of what comes from outside, as a strategy of proptest. Included by path beside each
//! decoder; `PROPTEST_CASES` says how many documents are tried, and `./dev fuzz` tries many.

use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
};

/// Pieces that decoders often get wrong, besides those of the documents.
const STRANGE: [&str; 23] = [
    "\"",
    "\\",
    "\r\n",
    "\n\n",
    "'",
    "`",
    "```json\n",
    "-1",
    "1e999",
    "0.1",
    "\\ud800",
    "\\u0000",
    "\u{0}",
    "\u{feff}",
    "99999999999999999999",
    "-9223372036854775809",
    "\\x",
    "/*",
    "“",
    "：",
    "😀",
    "\u{202e}",
    "{{arguments.a}}",
];

/// A document of the corpus with up to five damages, or now and then random bytes.
pub(crate) fn damaged<T: AsRef<[u8]>>(corpus: impl IntoIterator<Item = T>) -> impl Strategy<Value = Vec<u8>> {
    let corpus: Vec<Vec<u8>> = corpus.into_iter().map(|document| document.as_ref().to_vec()).collect();
    let of_corpus = (select(corpus.clone()), vec(damage(corpus), 0..6)).prop_map(|(mut document, damages)| {
        for (at, removed, piece) in damages {
            let at = at.index(document.len() + 1);
            let end = at.saturating_add(removed).min(document.len());
            document.splice(at..end, piece);
        }
        document
    });
    prop_oneof![24 => of_corpus, 1 => vec(any::<u8>(), 0..200)]
}

/// A place in a document, how many bytes are removed there, and what stands there instead: mostly little of each, so that
/// something is left.
fn damage(corpus: Vec<Vec<u8>>) -> impl Strategy<Value = (Index, usize, Vec<u8>)> {
    let length = || prop_oneof![3 => 0..12_usize, 1 => 0..2_000_usize];
    let byte = prop_oneof![any::<u8>(), select(b" \"\\{}[],:0a-".as_slice())];
    // Deeper than any limit on the nesting of a document.
    let nested = (select(["[", "{\"a\":", "(", "\"\\\""].as_slice()), 1..200_usize);
    let borrowed = (select(corpus), any::<Index>(), length()).prop_map(|(document, from, length)| {
        let from = from.index(document.len() + 1);
        document[from..].iter().copied().take(length).collect()
    });
    let piece = prop_oneof![
        3 => Just(Vec::new()),
        3 => byte.prop_map(|byte| vec![byte]),
        5 => select(STRANGE.as_slice()).prop_map(|strange| strange.as_bytes().to_vec()),
        1 => nested.prop_map(|(open, levels)| open.repeat(levels).into_bytes()),
        2 => borrowed,
    ];
    let removed = prop_oneof![5 => Just(0), 3 => Just(1), 4 => length(), 1 => Just(usize::MAX)];
    (any::<Index>(), removed, piece)
}
