//! Seeds that once broke an invariant: each run plays them first.

/// A plan to play again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regression {
    /// Its seed.
    pub seed: u64,
    /// Its size.
    pub size: u32,
}

/// The kept plans, from `regressions.txt`. The error names the line that cannot be read.
pub fn regressions() -> Result<Vec<Regression>, String> {
    read(include_str!("../regressions.txt"))
}

fn read(text: &str) -> Result<Vec<Regression>, String> {
    let lines = (1..).zip(text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()));
    lines.filter(|(_, line)| !line.is_empty()).map(|(n, line)| read_line(n, line)).collect()
}

fn read_line(n: usize, line: &str) -> Result<Regression, String> {
    let wrong = || format!("regressions.txt, line {n}: {line:?} is not a seed and a size");
    let (seed, size) = line.split_once(' ').ok_or_else(wrong)?;
    let (seed, size) = (seed.parse().map_err(|_| wrong())?, size.trim().parse().map_err(|_| wrong())?);
    Ok(Regression { seed, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_seeds_and_sizes() {
        let text = "# why\n12 90  # a lost job\n\n3 30\n";
        assert_eq!(read(text), Ok(vec![Regression { seed: 12, size: 90 }, Regression { seed: 3, size: 30 }]));
        assert_eq!(read("12 90\n12").unwrap_err(), "regressions.txt, line 2: \"12\" is not a seed and a size");
        assert!(regressions().is_ok());
    }
}
