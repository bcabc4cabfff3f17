//! A short string that matches a regular expression.

use regex_syntax::hir::{Class, ClassUnicodeRange, Hir, HirKind};

/// Longest string that is made, in bytes.
const MAX_LENGTH: usize = 200;
/// Parts of the expression inside of each other.
const MAX_LEVELS: usize = 50;
/// Steps on the way to a string: repetitions of nothing add none to it.
const MAX_STEPS: usize = 5_000;
/// Characters that read well, best first.
const READABLE: [char; 6] = ['a', 'A', '1', '0', '-', '_'];

/// Makes a string of at least so many characters if the expression has room for them. It may break other rules, or the
/// expression itself where that looks around: the caller checks.
pub(super) fn text(pattern: &str, least: usize) -> Option<String> {
    if least > MAX_LENGTH {
        return None;
    }
    let hir = regex_syntax::Parser::new().parse(pattern).ok()?;
    let mut shortest = Builder { out: String::new(), steps: MAX_STEPS, missing: 0 };
    shortest.add(&hir, 0)?;
    let missing = least.saturating_sub(shortest.out.chars().count());
    if missing == 0 {
        return Some(shortest.out);
    }
    let mut longer = Builder { out: String::new(), steps: MAX_STEPS, missing };
    longer.add(&hir, 0)?;
    Some(longer.out)
}

struct Builder {
    out: String,
    steps: usize,
    /// Repetitions that the next part with room for them takes in addition.
    missing: usize,
}

impl Builder {
    /// Adds a part; `None` if the string would be too long or the expression is too deep.
    fn add(&mut self, hir: &Hir, level: usize) -> Option<()> {
        self.steps = self.steps.checked_sub(1)?;
        if level > MAX_LEVELS {
            return None;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Some(()),
            HirKind::Literal(literal) => {
                self.out.push_str(std::str::from_utf8(&literal.0).ok()?);
                (self.out.len() <= MAX_LENGTH).then_some(())
            }
            HirKind::Class(class) => {
                self.out.push(character(class)?);
                (self.out.len() <= MAX_LENGTH).then_some(())
            }
            HirKind::Repetition(repetition) => {
                let room = repetition.max.unwrap_or(u32::MAX).saturating_sub(repetition.min);
                let more = self.missing.min(usize::try_from(room).unwrap_or(usize::MAX));
                self.missing -= more;
                let times = usize::try_from(repetition.min).ok()?.saturating_add(more);
                if times > MAX_LENGTH {
                    return None;
                }
                (0..times).try_for_each(|_| self.add(&repetition.sub, level + 1))
            }
            HirKind::Capture(capture) => self.add(&capture.sub, level + 1),
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| self.add(part, level + 1)),
            HirKind::Alternation(parts) => self.add(parts.first()?, level + 1),
        }
    }
}

/// Chooses a character of a class, one that reads well if there is one.
fn character(class: &Class) -> Option<char> {
    let Class::Unicode(class) = class else { return None };
    let has = |c: char| class.iter().any(|range| (range.start()..=range.end()).contains(&c));
    let first = || class.iter().map(ClassUnicodeRange::start).find(|c| !c.is_control());
    READABLE.into_iter().find(|c| has(*c)).or_else(first)
}
