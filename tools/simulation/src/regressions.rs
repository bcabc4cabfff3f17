//! Plans that once violated an invariant: each run plays them first.

/// A kept plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regression {
    /// Its seed.
    pub seed: u64,
    /// Its size.
    pub size: u32,
    /// [`Plan::fingerprint`](crate::Plan::fingerprint) when it was kept.
    pub fingerprint: u32,
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
    let wrong = || format!("regressions.txt, line {n}: {line:?} is not a seed, a size and a fingerprint");
    let [seed, size, fingerprint] = line.split_whitespace().collect::<Vec<_>>()[..] else { return Err(wrong()) };
    let (seed, size) = (seed.parse().map_err(|_| wrong())?, size.parse().map_err(|_| wrong())?);
    let fingerprint = u32::from_str_radix(fingerprint, 16).map_err(|_| wrong())?;
    Ok(Regression { seed, size, fingerprint })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    #[test]
    fn lines_are_seeds_and_sizes() {
        let text = "# why\n12 90 ff  # a lost job\n\n3 30 10\n";
        let wanted = [(12, 90, 255), (3, 30, 16)];
        let wanted = wanted.map(|(seed, size, fingerprint)| Regression { seed, size, fingerprint });
        assert_eq!(read(text), Ok(wanted.into()));
        let wrong = "regressions.txt, line 2: \"12 3\" is not a seed, a size and a fingerprint";
        assert_eq!(read("12 90 0\n12 3").unwrap_err(), wrong);
    }

    #[test]
    fn every_kept_plan_is_still_the_one_that_was_kept() {
        for Regression { seed, size, fingerprint } in regressions().unwrap() {
            let found = Plan::new(seed, size).fingerprint();
            assert_eq!(
                found, fingerprint,
                "{seed} {size} is another plan now ({found:08x}): it no longer tests what it was kept for"
            );
        }
    }
}
