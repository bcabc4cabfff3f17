//! An answer in parts: where the next part begins.

/// Bytes that two parts must share at least to be taken for an overlap; fewer may be chance.
const LEAST: usize = 12;
/// Bytes of a part's start that are compared.
const MOST: usize = 4096;
/// A part that begins like the whole answer, for so many bytes, is the answer once more.
const SAME_START: usize = 48;

/// An answer so far and its next part, put together.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// The part continues the answer: this is both.
    Longer(String),
    /// The part begins the answer again: this is the part.
    Again(String),
    /// The part repeats the end of the answer.
    Nothing,
}

/// Puts the next part after an answer, without what it repeats of the answer's end.
pub(super) fn join(answer: &str, next: &str) -> Joined {
    let trimmed = next.trim_start();
    let same = answer.trim_start().bytes().zip(trimmed.bytes()).take_while(|(one, other)| one == other).count();
    if same >= SAME_START.min(answer.trim().len()) {
        return Joined::Again(trimmed.to_owned());
    }
    let rest = match overlap(answer, trimmed) {
        // The end may have been shown without the white space behind it.
        0 => match overlap(answer.trim_end(), trimmed) {
            0 => {
                return if trimmed.trim().is_empty() {
                    Joined::Nothing
                } else {
                    Joined::Longer(format!("{answer}{next}"))
                };
            }
            shared => return longer(answer.trim_end(), &trimmed[shared..]),
        },
        shared => &trimmed[shared..],
    };
    longer(answer, rest)
}

fn longer(answer: &str, rest: &str) -> Joined {
    if rest.trim().is_empty() { Joined::Nothing } else { Joined::Longer(format!("{answer}{rest}")) }
}

/// Returns how many bytes at the start of `next` the `answer` ends with: the most there are, or 0 if they may be
/// chance. Linear.
fn overlap(answer: &str, next: &str) -> usize {
    let next = &next.as_bytes()[..next.floor_char_boundary(MOST)];
    if next.is_empty() {
        return 0;
    }
    let tail = &answer.as_bytes()[answer.len().saturating_sub(next.len())..];
    // Knuth, Morris and Pratt: for each prefix of `next`, the longest proper prefix with which it ends.
    let mut borders = vec![0; next.len()];
    let mut matched = 0;
    for at in 1..next.len() {
        while matched > 0 && next[at] != next[matched] {
            matched = borders[matched - 1];
        }
        matched += usize::from(next[at] == next[matched]);
        borders[at] = matched;
    }
    matched = 0;
    for byte in tail {
        while matched > 0 && (matched == next.len() || *byte != next[matched]) {
            matched = borders[matched - 1];
        }
        matched += usize::from(*byte == next[matched]);
    }
    // Both are texts, and what matches ends where `answer` ends: at the end of a character.
    if matched >= LEAST { matched } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn longer_than(answer: &str, next: &str) -> String {
        match join(answer, next) {
            Joined::Longer(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parts_become_one_text() {
        let answer = "The trains from Basel to Milan leave at seven, at nine and at ";
        for (next, whole) in [
            ("eleven.", "eleven."),
            (" eleven.", " eleven."),
            ("leave at seven, at nine and at eleven.", "eleven."),
            ("\nat seven, at nine and at eleven.", "eleven."),
            ("and at eleven.", "and at eleven."),
        ] {
            assert_eq!(longer_than(answer, next), format!("{answer}{whole}"), "{next}");
        }
        let joined = longer_than("北京到上海的航班有三个：第一个", "航班有三个：第一个是早上");
        assert_eq!(joined, "北京到上海的航班有三个：第一个是早上");
    }

    proptest! {
        #[test]
        fn a_text_that_was_cut_is_whole_again(text in "[ab 好]{80,160}", at in 50_usize..70, shared in 0_usize..40) {
            let start = "start of it: ";
            let text = format!("{start}{text}");
            let at = text.floor_char_boundary(at);
            let from = text.floor_char_boundary(at.saturating_sub(shared + LEAST).max(start.len()));
            prop_assume!(!text[at..].trim().is_empty() && !text[from..].starts_with(' '));
            let joined = longer_than(&text[..at], &text[from..]);
            // Texts of few letters may share more than was meant; nothing is said twice, and the end is the end.
            prop_assert!(text.len() >= joined.len() && joined.starts_with(&text[..at]) && text.ends_with(&joined[at..]));
        }
    }
}
