//! A damaged `agents.toml` is read or refused with the name of the file, without a panic.

#[path = "../../../../../tests/shared/damaged.rs"]
mod strategy;

use proptest::prelude::*;

use self::strategy::damaged;
use super::parse;

const AGENTS: [&str; 3] = [
    include_str!("../../../../../examples/demo/agents.toml"),
    "[agents.a]\nmodel = \"m\"\nbudgets = { turns = 3, cost_usd = 0.5 }\n",
    "[agents.a]\nmodel = \"m\"\n[agents.a.templates]\n\"timeout.message\" = \"{tool} is slow\"\n",
];

fn read(bytes: &[u8]) -> bool {
    match parse("agents.toml", &String::from_utf8_lossy(bytes)) {
        Ok(_) => true,
        Err(mistakes) => {
            let named = |mistake: &String| mistake.starts_with("agents.toml") || mistake.starts_with("… and");
            assert!(!mistakes.is_empty() && named(&mistakes[0]), "{mistakes:?}");
            false
        }
    }
}

proptest! {
    #[test]
    fn a_damaged_file_is_read_or_refused(bytes in damaged(AGENTS)) {
        read(&bytes);
    }
}

/// Damage to a file that is refused anyway would test only the first line of its reader.
#[test]
fn every_file_is_good() {
    assert!(AGENTS.iter().all(|file| read(file.as_bytes())));
}
