//! What breaks first at 100 dispatchers, 10,000 workers and a billion calls: `docs/SCALING.md` explains the tables.
//!
//! Three kinds of numbers go in ([`inputs`]): those that the code declares (the engine's and the protocol's are imported, the others are
//! compared with their source by a test), those that were measured, and assumptions. Where it is possible the engine itself decides
//! ([`windows`], and retries in [`sweeps`]); the rest is arithmetic. Nothing is random but for a fixed seed, so every run prints the same.

mod history;
mod idle;
mod inputs;
mod load;
mod numbers;
mod registrations;
mod sweeps;
mod table;
mod windows;
mod workers;

use std::fmt;

use serde_json::{Value, json};

use self::table::Table;

/// All tables.
pub struct Report {
    tables: Vec<Table>,
}

/// Computes everything; takes some seconds.
pub fn report() -> Report {
    let tables = vec![
        idle::table(),
        workers::table(),
        registrations::table(),
        load::table(),
        windows::table(),
        windows::packs(),
        sweeps::table(),
        history::growth(),
        history::partitions(),
        inputs::table(),
    ];
    Report { tables }
}

impl Report {
    /// The same for programs.
    pub fn to_json(&self) -> Value {
        json!({ "tables": self.tables.iter().map(Table::to_json).collect::<Vec<_>>() })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, table) in self.tables.iter().enumerate() {
            if n > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{table}")?;
        }
        Ok(())
    }
}
