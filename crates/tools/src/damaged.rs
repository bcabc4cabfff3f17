//! A damaged `tools.toml` is read or refused with the name of the file, without a panic.

#[path = "../../../tests/shared/damaged.rs"]
mod strategy;

use std::fs;

use proptest::prelude::*;

use self::strategy::damaged;
use crate::{CommandUser, load_with};

const TOOLS: &str = include_str!("../../../examples/demo/tools/tools.toml");

fn read(bytes: &[u8]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tools.toml");
    fs::write(&path, bytes).unwrap();
    load_with(&path, &CommandUser::Root, &|_| Some("value".to_owned()))
        .map_err(|error| assert!(error.to_string().contains(".toml"), "the error does not name its file: {error}"))
        .is_ok()
}

proptest! {
    // They open files and build clients.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 8, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_file_is_read_or_refused(bytes in damaged([TOOLS])) {
        read(&bytes);
    }
}

/// Damage to a file that is refused anyway would test only the first line of its reader.
#[test]
fn the_file_is_good() {
    assert!(read(TOOLS.as_bytes()));
}
