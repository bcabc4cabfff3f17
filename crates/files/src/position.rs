//! Where in a text something is.

use std::fmt;

/// A place in a text, as editors count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Counted from 1.
    pub line: u32,
    /// The character of the line, counted from 1.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Returns the position of the byte `at`; of the end if the text is shorter.
pub fn position_of(text: &str, at: usize) -> Position {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
    Position { line: number(before.matches('\n').count()), column: number(before[line_start..].chars().count()) }
}

/// What of a file a mistake is about, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// No part of it.
    File,
    At {
        /// The byte; a file that people write is smaller than 4 GiB.
        byte: u32,
        /// It is about a whole table that is named there: no part of the table is wrong by itself.
        whole: bool,
    },
}

impl Place {
    /// Returns the part of a file at this byte.
    pub fn part(byte: usize) -> Self {
        Self::At { byte: u32::try_from(byte).unwrap_or(u32::MAX), whole: false }
    }

    /// Returns the same place for a mistake of a whole table.
    #[must_use]
    pub const fn of_whole(self) -> Self {
        match self {
            Self::File => self,
            Self::At { byte, .. } => Self::At { byte, whole: true },
        }
    }

    /// Returns the byte of a part that is wrong by itself.
    pub const fn wrong_part(self) -> Option<usize> {
        match self {
            Self::At { byte, whole: false } => Some(byte as usize),
            Self::At { whole: true, .. } | Self::File => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let text = "a\n好好 x\n";
        assert_eq!(position_of(text, 0).to_string(), "1:1");
        assert_eq!(position_of(text, text.find('x').unwrap()).to_string(), "2:4");
        assert_eq!(position_of(text, 3), position_of(text, 2), "inside a character");
        assert_eq!(position_of(text, 1000).to_string(), "3:1");
        assert_eq!(position_of("", 5).to_string(), "1:1");
    }
}
