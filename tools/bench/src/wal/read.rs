//! The lines of `pg_waldump`, added up.

use std::collections::{BTreeMap, HashMap};

use anyhow::Context as _;

/// Records of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

/// Numbers of a database (0: shared by all) and of a file of it.
type File = (u32, u32);

/// Kind of a whole page that a record carries, because it is the first change since a checkpoint.
const PAGES: &str = "whole pages";

/// Records by the first relation that they change, and by their kind.
#[derive(Debug, Default)]
pub(super) struct Log(HashMap<(Option<File>, String), Sum>);

impl Log {
    /// Adds a line such as
    /// `rmgr: Heap len (rec/tot): 54/ 8246, tx: 741, lsn: 0/01A3F0A8, prev 0/01A3F078, desc: INSERT off 5,
    /// blkref #0: rel 1663/5/16401 blk 1 FPW`. The second length contains whole pages.
    pub(super) fn add(&mut self, line: &str) -> anyhow::Result<()> {
        let (manager, lengths, description) = parts(line).with_context(|| format!("pg_waldump wrote {line:?}"))?;
        let blocks: Vec<&str> = description.split("blkref #").skip(1).collect();
        let first = blocks.first().and_then(|block| file(block));
        let kind = description.split([' ', ',', ';']).next().unwrap_or_default();
        self.sum(first, format!("{manager} {kind}"), lengths.0);
        // How long each of several pages is, only a longer form of the output tells.
        let pages: Vec<&str> = blocks.into_iter().filter(|block| block.contains("FPW")).collect();
        let share = (lengths.1 - lengths.0).checked_div(u64::try_from(pages.len())?).unwrap_or_default();
        for page in &pages {
            self.sum(file(page), PAGES.to_owned(), share);
        }
        Ok(())
    }

    fn sum(&mut self, file: Option<File>, kind: String, bytes: u64) {
        let sum = self.0.entry((file, kind)).or_default();
        sum.records += 1;
        sum.bytes += bytes;
    }

    /// By the name of the relation and the kind of the record.
    pub(super) fn by_name(self, name: impl Fn(u32, u32) -> Option<String>) -> BTreeMap<(String, String), Sum> {
        let mut by = BTreeMap::<(String, String), Sum>::new();
        for ((file, kind), sum) in self.0 {
            let name = match file {
                Some((database, file)) => name(database, file).unwrap_or_else(|| "other relations".to_owned()),
                None => "no relation".to_owned(),
            };
            let total = by.entry((name, kind)).or_default();
            total.records += sum.records;
            total.bytes += sum.bytes;
        }
        by
    }
}

/// Who wrote the record, its lengths without and with whole pages, and the description.
fn parts(line: &str) -> Option<(&str, (u64, u64), &str)> {
    let (manager, rest) = line.strip_prefix("rmgr:")?.split_once("len (rec/tot):")?;
    let (record, rest) = rest.split_once('/')?;
    let (total, rest) = rest.split_once(',')?;
    let lengths: (u64, u64) = (record.trim().parse().ok()?, total.trim().parse().ok()?);
    let (_, description) = rest.split_once("desc: ")?;
    (lengths.1 >= lengths.0).then(|| (manager.trim(), lengths, description))
}

/// Of a block reference such as `0: rel 1663/5/16401 fork vm blk 1`: tablespace, database, file.
fn file(block: &str) -> Option<File> {
    let path = block.split_once("rel ")?.1.split(' ').next()?;
    let mut numbers = path.split('/').skip(1).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by pg_waldump of Postgres 15, shortened.
    const LINES: [&str; 6] = [
        "rmgr: Heap        len (rec/tot):     63/   247, tx:        741, lsn: 0/01A3F0A8, prev 0/01A3F078, desc: INSERT off 5 flags 0x08, blkref #0: rel 1663/5/16401 blk 1 FPW",
        "rmgr: Heap        len (rec/tot):     70/    70, tx:        741, lsn: 0/01A3F1A0, prev 0/01A3F0A8, desc: HOT_UPDATE off 5 xmax 741 flags 0x10 ; new off 6 xmax 0, blkref #0: rel 1663/5/16401 blk 1",
        "rmgr: Heap        len (rec/tot):     30/    30, tx:        742, lsn: 0/01A3F1A0, prev 0/01A3F0A8, desc: INSERT off 6 flags 0x08, blkref #0: rel 1663/5/16401 blk 1",
        "rmgr: Btree       len (rec/tot):     64/  8264, tx:        741, lsn: 0/01A3F1E8, prev 0/01A3F1A0, desc: INSERT_LEAF off 5, blkref #0: rel 1663/5/16405 blk 1 FPW, blkref #1: rel 1663/5/16406 blk 3 FPW",
        "rmgr: Heap2       len (rec/tot):     59/    59, tx:          0, lsn: 0/01A3F1E8, prev 0/01A3F1A0, desc: VISIBLE cutoff xid 0 flags 0x03, blkref #0: rel 1663/9/16401 fork vm blk 0, blkref #1: rel 1663/9/16401 blk 0",
        "rmgr: Transaction len (rec/tot):     34/    34, tx:        741, lsn: 0/01A41200, prev 0/01A3F1E8, desc: COMMIT 2026-11-26 05:11:53.123456 UTC",
    ];

    #[test]
    fn records_are_summed_by_relation_and_kind_and_pages_apart() {
        let mut log = Log::default();
        for line in LINES {
            log.add(line).unwrap();
        }
        let name = |database, file| match (database, file) {
            (5, 16401) => Some("calls".to_owned()),
            (5, 16405) => Some("calls_pkey".to_owned()),
            (5, 16406) => Some("calls_key".to_owned()),
            _ => None,
        };
        let sums: Vec<(String, String, u64, u64)> =
            log.by_name(name).into_iter().map(|((name, kind), sum)| (name, kind, sum.records, sum.bytes)).collect();
        let row = |name: &str, kind: &str, records, bytes| (name.to_owned(), kind.to_owned(), records, bytes);
        assert_eq!(
            sums,
            [
                row("calls", "Heap HOT_UPDATE", 1, 70),
                row("calls", "Heap INSERT", 2, 93),
                row("calls", PAGES, 1, 184),
                row("calls_key", PAGES, 1, 4100),
                row("calls_pkey", "Btree INSERT_LEAF", 1, 64),
                row("calls_pkey", PAGES, 1, 4100),
                row("no relation", "Transaction COMMIT", 1, 34),
                row("other relations", "Heap2 VISIBLE", 1, 59),
            ]
        );
    }

    #[test]
    fn a_line_of_another_form_is_an_error() {
        for line in ["", "pg_waldump: error", "rmgr: Heap len (rec/tot): 9/ 3, tx: 1, desc: INSERT off 1"] {
            Log::default().add(line).unwrap_err();
        }
    }
}
